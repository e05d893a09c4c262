"""Constants: numbers with a type, and the arrays behind nodes."""

from __future__ import annotations

import math

import numpy as np
import pytest

from headrace import errors, types
from headrace.types import constant

C = types.Constant
NAMES = {
    "bool": types.BOOL,
    "int8": types.INT8,
    "int16": types.INT16,
    "int32": types.INT32,
    "int64": types.INT64,
    "uint8": types.UINT8,
    "uint16": types.UINT16,
    "uint32": types.UINT32,
    "uint64": types.UINT64,
    "float16": types.FLOAT16,
    "float32": types.FLOAT,
    "float64": types.FLOAT64,
}


@pytest.fixture
def nodes(monkeypatch):
    """What the graph is asked to make nodes of."""
    made = []
    monkeypatch.setattr(constant, "node_maker", lambda *args, **kw: made.append((args, kw)))
    return made


@pytest.mark.parametrize(
    ("value", "dtype"),
    [
        (3, types.INT32),
        (3.5, types.FLOAT),
        (True, types.BOOL),
        (2**40, types.INT32),
        (np.float64(3), types.FLOAT64),
        (np.uint8(3), types.UINT8),
        (np.bool_(True), types.BOOL),
        (np.array(3, np.int16), types.INT16),
    ],
)
def test_scalar(value, dtype):
    scalar = C(value)
    assert isinstance(scalar, types.ScalarConstant)
    assert scalar.dtype == dtype
    assert scalar.value == value
    assert type(scalar.value) in (bool, int, float)
    assert scalar.shape == []
    assert str(scalar) == f"{scalar.value}:{dtype}"


@pytest.mark.parametrize("shape", [None, (), [], 1, [1], (1,)])
def test_shapes_of_a_scalar(shape):
    assert isinstance(C(3, shape=shape), types.ScalarConstant)


@pytest.mark.parametrize("name", NAMES)
def test_other_type_same_number(name):
    scalar = getattr(C(300), name)()
    assert scalar.dtype == NAMES[name]
    assert scalar.numpy_dtype == types.to_numpy_type(NAMES[name])
    assert scalar.value == (True if name == "bool" else 300)
    assert C(300, dtype=NAMES[name]) == scalar


def test_scalar_with_a_type():
    assert C(3.7, dtype=types.UINT8).value == 3
    assert C(3, dtype=9).dtype is types.FLOAT
    assert C(3, dtype=types.BOOL).value is True
    assert C(3, dtype=np.float32).dtype is C(3, dtype="float").dtype is types.FLOAT
    for dtype in (types.STRING, 12):
        with pytest.raises(TypeError, match="has one of the types"):
            C(3, dtype=dtype)
    for dtype in ("floats", True, 99):
        with pytest.raises(TypeError, match=f"`dtype` of a constant: {dtype!r} is not"):
            C(3, dtype=dtype)


@pytest.mark.parametrize("value", ["a", None, {}, 1j, b"x"])
def test_no_scalar(value):
    with pytest.raises(TypeError, match=type(value).__name__):
        C(value)
    with pytest.raises(TypeError):
        types.ScalarConstant([3])


def test_scalar_comparison():
    assert C(3) == C(3)
    assert C(3) != C(3.0)
    assert C(3) != C(4)
    assert C(3) != 3
    with pytest.raises(TypeError, match="unhashable"):
        hash(C(3))

    class Node:
        def __eq__(self, other):
            return "node"

        __hash__ = None

    assert (C(3) == Node()) == "node"


def test_scalar_is_converted_only_where_nothing_is_lost():
    assert int(C(3)) == 3
    assert bool(C(0)) is False
    assert float(C(2.5)) == 2.5
    for convert, scalar in ((int, C(3.5)), (bool, C(3.5)), (float, C(3))):
        with pytest.raises(TypeError, match="by itself"):
            convert(scalar)


def test_scalar_arithmetic_needs_a_node():
    for impossible in (
        lambda: C(3) + C(4),
        lambda: C(3) + 4,
        lambda: 4 * C(3),
        lambda: -C(3),
        lambda: np.zeros(3) + C(3),
    ):
        with pytest.raises(TypeError):
            impossible()


@pytest.mark.parametrize(
    ("value", "dtype", "expected"),
    [
        ([300, -1, 1], types.UINT8, [255, 0, 1]),
        ([1.5, 2.5, -1.5, -0.5, 0.5, 300.0, -300.0], types.INT8, [2, 3, -2, -1, 1, 127, -128]),
        ([0.49999999999999994, -0.49999999999999994], types.INT32, [0, 0]),
        ([2**40], None, [2**31 - 1]),
        ([2**40], types.INT64, [2**40]),
        ([2**63], types.UINT64, [2**63]),
        ([2**64 - 1, 0], types.UINT64, [2**64 - 1, 0]),
        ([2**63], types.INT64, [2**63 - 1]),
        ([-(2**63)], types.INT64, [-(2**63)]),
        ([1e30, -1e30], types.INT64, [2**63 - 1, -(2**63)]),
        ([float(2**63)], types.UINT64, [2**63]),
        ([math.nan, math.inf, -math.inf], types.INT32, [-(2**31), 2**31 - 1, -(2**31)]),
        ([0.0, 0.3, 2], types.BOOL, [False, False, True]),
        ([0, 3, -1], types.BOOL, [False, True, True]),
        ([True, False], None, [True, False]),
        ([True, 2], None, [1, 2]),
        ([True, 2.5], None, [1.0, 2.5]),
        ([True, False], types.UINT8, [1, 0]),
        ([1e6], types.FLOAT16, [math.inf]),
        ([70000], types.FLOAT16, [math.inf]),
        ([16777217], types.FLOAT, [16777216.0]),
        ([1.1], types.FLOAT64, [1.1]),
        ((1, 2.0), None, [1.0, 2.0]),
        ([np.int32(3), np.float64(2.5)], None, [3.0, 2.5]),
        ([], None, []),
        ([], types.INT32, []),
        ([types.RGB, types.GRAY], None, [0, 2]),
        ([types.BGR], types.INT32, [1]),
        ([types.BGR], types.FLOAT, [1.0]),
    ],
)
def test_lists(value, dtype, expected):
    array = types.constant_array(value, dtype)
    kind = types.constant_dtype(value, dtype)
    assert dtype is None or kind == dtype
    assert array.dtype == types.storage_dtype(kind)
    assert array.tolist() == expected


@pytest.mark.parametrize(
    ("values", "dtype"),
    [
        ([1, 2], types.INT32),
        ([1, 2.0], types.FLOAT),
        ([True], types.BOOL),
        ([], types.FLOAT),
        ([types.RGB], types.IMAGE_TYPE),
        ([types.FLOAT], types.DATA_TYPE),
        (types.INTERP_NN, types.INTERP_TYPE),
        (np.zeros(2), types.FLOAT),
        (np.zeros(2, np.int64), types.INT32),
        (np.zeros(2, np.uint64), types.UINT32),
        (np.zeros(2, np.int16), types.INT16),
        (np.float64(2), types.FLOAT),
        (C(3).uint8(), types.UINT8),
        (C(3).float64(), types.FLOAT64),
    ],
)
def test_type_that_follows(values, dtype):
    assert types.constant_dtype(values) is dtype
    assert types.constant_array(values).dtype == types.storage_dtype(dtype)


@pytest.mark.parametrize(
    ("value", "shape", "expected"),
    [
        (3, None, ()),
        (3, (2, 2), (2, 2)),
        ([3], (2, 2), (2, 2)),
        ([3], 4, (4,)),
        (list(range(6)), (2, 3), (2, 3)),
        (np.arange(6), (3, 2), (3, 2)),
        (np.array(3), None, ()),
        (np.int32(3), (2, 2), (2, 2)),
        (np.zeros((0, 3), np.float32), None, (0, 3)),
        ([], (0, 5), (0, 5)),
        (3, (0, 5), (0, 5)),
    ],
)
def test_shape(value, shape, expected):
    array = types.constant_array(value, None, shape)
    assert array.shape == expected
    assert array.flags.c_contiguous
    if array.size and np.size(value) == 1:
        assert (array == 3).all()


@pytest.mark.parametrize(
    ("value", "shape"),
    [([1, 2], (3,)), (np.arange(6), (2, 4)), ([], (2,)), (3, (-1,)), ([1, 2], ())],
)
def test_wrong_shape(value, shape):
    with pytest.raises(errors.ShapeError, match="shape"):
        types.constant_array(value, None, shape)


def test_64_bit_arrays_that_do_not_fit():
    for array, limit in ((np.array([2**31]), "int32"), (np.array([2**32], np.uint64), "uint32")):
        with pytest.raises(OverflowError, match=limit) as caught:
            types.constant_array(array)
        assert isinstance(caught.value, errors.HeadraceError)
        wide = types.to_dali_type(array.dtype)
        assert types.constant_array(array, wide).tolist() == array.tolist()
        assert types.constant_array(array, types.INT16).tolist() == [2**15 - 1]
    with pytest.raises(OverflowError, match="64 bits"):
        types.constant_array([2**64])
    with pytest.raises(OverflowError, match="64 bits"):
        types.constant_array([-1, 2**63])


@pytest.mark.parametrize(
    "value",
    [
        [[1], [2]],
        "a",
        None,
        ["a"],
        [types.RGB, types.FLOAT],
        [types.RGB, 1],
        [1, types.RGB],
        np.array([1j]),
        np.array(["a"]),
        np.array([None]),
    ],
    ids=repr,
)
def test_what_is_no_constant(value):
    with pytest.raises(errors.ArgumentTypeError):
        types.constant_array(value)


def test_array_is_a_copy():
    source = np.arange(3, dtype=np.int32)
    array = types.constant_array(source)
    assert not np.shares_memory(array, source)
    assert types.constant_array(source.reshape(1, 3).T).flags.c_contiguous


def test_torch_tensors():
    torch = pytest.importorskip("torch")
    assert types.constant_dtype(torch.zeros(2, dtype=torch.float64)) == types.FLOAT
    big = types.constant_array(torch.tensor([[2**40]]))
    assert (big.dtype, big.tolist()) == (np.int64, [[2**40]])


@pytest.mark.parametrize(
    ("value", "options"),
    [
        ([3], {}),
        (np.array([3]), {}),
        (types.RGB, {}),
        (3, {"dtype": types.IMAGE_TYPE}),
        (3, {"shape": (2, 2)}),
        (3, {"layout": ""}),
        (3, {"device": "cpu"}),
        (3, {"name": "three"}),
    ],
)
def test_nodes(nodes, value, options):
    C(value, **options)
    (((array, dtype, layout, device), kwargs),) = nodes
    assert array.size
    assert dtype == types.constant_dtype(value, options.get("dtype"))
    assert (layout, device) == ("", "cpu")
    assert kwargs == {k: v for k, v in options.items() if k == "name"}


def test_layout_of_a_node(nodes):
    C([1, 2], layout="A")
    assert nodes[0][0][2] == "A"
    with pytest.raises(errors.LayoutError, match='"AB"'):
        C([3], layout="AB")


def test_node_without_a_graph(monkeypatch):
    monkeypatch.setattr(constant, "node_maker", None)
    with pytest.raises(errors.UsageError, match="definition of a pipeline"):
        C([3])


def test_maker_is_installed_once_for_all(monkeypatch):
    monkeypatch.setattr(constant, "node_maker", None)
    types.install_constant_node(lambda array, dtype, layout, device, **kwargs: array.tolist())
    assert C([1, 2]) == [1, 2]
