"""The operator: shapes, memory, tiles; whole trees against one operation at a time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.errors import ArgumentValueError, LayoutError, ShapeError
from headrace.operators.support.arithmetic import program
from headrace.operators.support.arithmetic.expression import typed
from headrace.operators.support.planning import Samples
from headrace.operators.support.registry import find
from headrace.operators.support.schema import Spec
from headrace.types import DALIDataType as T
from headrace.types import to_dali_type
from tests.support.run_operator import run_operator

X, Y, Z = (("input", k) for k in range(3))


def real(value):
    return ("const", value, T.FLOAT)


def whole(value):
    return ("const", value, T.INT32)


def compute(expression, *inputs, **options):
    return run_operator("_arithmetic_generic_op", *inputs, expression=expression, **options)


IMAGE = np.random.default_rng(0).integers(0, 255, (33, 47, 3), np.uint8)


def test_image_times_factor_plus_offset():
    got = compute(("add", ("mul", X, real(1.5)), real(2.0)), IMAGE)
    assert got.dtype == np.float32
    np.testing.assert_array_equal(got, IMAGE.astype(np.float32) * np.float32(1.5) + np.float32(2))


def test_numbers_a_channel():
    mean, std = np.float32([10, 20, 30]), np.float32([2, 3, 4])
    got = compute(("div", ("sub", X, Y), Z), IMAGE, mean, std)
    np.testing.assert_array_equal(got, (IMAGE.astype(np.float32) - mean) / std)


def test_numbers_a_sample():
    scale, offset = np.asarray(1.5, np.float32), np.asarray(3, np.int32)
    got = compute(("add", ("mul", X, Y), Z), IMAGE, scale, offset)
    np.testing.assert_array_equal(got, IMAGE.astype(np.float32) * scale + np.float32(3))


def test_mixing_with_a_mask():
    other = IMAGE[::-1].copy()
    mask = np.random.default_rng(1).random((33, 47, 1), np.float32)
    mix = ("add", ("mul", X, Z), ("mul", Y, ("sub", real(1.0), Z)))
    got = compute(mix, IMAGE, other, mask)
    want = IMAGE * mask + other * (np.float32(1) - mask)
    np.testing.assert_array_equal(got, want.astype(np.float32))


def test_inputs_are_left_as_they_are():
    image = IMAGE.astype(np.float32)
    before = image.copy()
    compute(("sqrt", ("add", X, X)), image)
    np.testing.assert_array_equal(image, before)


def test_the_same_input_again_and_again():
    got = compute(("sub", ("mul", X, X), ("mul", X, whole(3))), IMAGE)
    wide = IMAGE.astype(np.int32)
    np.testing.assert_array_equal(got, (IMAGE * IMAGE).astype(np.int32) - wide * 3)


def test_unsigned_results_wrap_around():
    np.testing.assert_array_equal(compute(("add", X, X), IMAGE), IMAGE + IMAGE)


@pytest.mark.parametrize(("number", "want"), [(300, False), (-1, True), (128.5, None), (128, None)])
def test_comparison_with_a_constant(number, want):
    constant = real(number) if isinstance(number, float) else whole(number)
    got = compute(("gt", X, constant), IMAGE)
    np.testing.assert_array_equal(got, number < IMAGE if want is None else np.full_like(got, want))


def test_comparison_of_64_bit_integers():
    signed, unsigned = np.int64([-1, 5, 2**62]), np.uint64([2**64 - 1, 5, 2**62 + 1])
    assert compute(("lt", X, Y), signed, unsigned).tolist() == [True, False, True]
    assert compute(("eq", X, Y), signed, unsigned).tolist() == [False, True, False]
    assert compute(("lt", X, Y), signed[0], unsigned[0]) == np.True_
    assert compute(("gt", X, whole(-1)), unsigned).all()


def test_large_unsigned_numbers_turn_negative_in_a_signed_type():
    x = np.uint64([2**64 - 7, 7])
    assert compute(("floordiv", X, whole(2)), x).tolist() == [-3, 3]
    assert compute(("mod", X, whole(2)), x).tolist() == [-1, 1]


def test_plus_is_the_input_itself():
    assert compute(("pos", X), IMAGE) is IMAGE
    flags = np.array([True, False])
    np.testing.assert_array_equal(compute(("and", ("pos", X), Y), flags, ~flags), [False, False])


@pytest.mark.parametrize("shape", [(0,), (0, 3), (4, 0, 3), (1,), (1, 1, 1), ()])
def test_small_and_empty_samples(shape):
    x = np.full(shape, 7, np.uint8)
    np.testing.assert_array_equal(
        compute(("add", ("mul", X, whole(2)), real(0.5)), x), np.full(shape, 14.5, np.float32)
    )


def test_results_without_axes_are_arrays():
    got = compute(("mul", X, real(2.0)), np.asarray(3, np.uint8))
    assert isinstance(got, np.ndarray)
    assert got.shape == ()
    assert got.dtype == np.float32
    assert got == 6


def test_half_precision():
    x = np.float16([1, 2, 60000])
    assert compute(("add", X, X), x).dtype == np.float16
    np.testing.assert_array_equal(compute(("add", X, X), x), np.float16([2, 4, np.inf]))
    assert compute(("mul", X, real(2.0)), x).dtype == np.float32
    assert compute(("mul", X, X), x[0], np.asarray(3, np.int32)).dtype == np.float16


@pytest.mark.parametrize("view", [np.s_[::-1], np.s_[:, ::-1], np.s_[3:30, 5:40], np.s_[::2, ::3]])
def test_views_without_a_copy(view):
    x = IMAGE.astype(np.float32)
    for expression in (("add", ("mul", X, real(1.5)), Y), ("log", ("add", X, Y))):
        np.testing.assert_array_equal(
            compute(expression, x[view], np.float32([1, 2, 3])),
            compute(expression, x[view].copy(), np.float32([1, 2, 3])),
        )


def test_tiles_of_a_large_sample():
    x = np.random.default_rng(2).random((300, 500, 3), np.float32)
    assert x.size > 3 * program._TILE
    got = compute(("clamp", ("mul", ("sub", X, real(0.5)), ("sqrt", X)), Y, real(0.3)), x, -x)
    want = np.clip((x - np.float32(0.5)) * np.sqrt(x), -x, np.float32(0.3))
    np.testing.assert_array_equal(got, want)


def test_spec():
    op = find("_arithmetic_generic_op").cls({"expression": ("add", X, Y)}, {})
    assert op.infer(Spec(T.UINT8, 3, "HWC"), Spec(T.INT8, 1, "C")) == Spec(T.INT16, 3, "HWC")
    assert op.infer(Spec(T.UINT8, 2, "HW"), Spec(T.INT8, 3)) == Spec(T.INT16, 3, "")
    assert op.infer(Spec(T.UINT8, None), Spec(T.INT8, 1, "C")) == Spec(T.INT16, None, "")


def test_errors():
    with pytest.raises(ShapeError, match=r"\(3,\), \(2,\)"):
        compute(("add", X, Y), np.zeros(3), np.zeros(2))
    with pytest.raises(ArgumentValueError, match="division by zero"):
        compute(("floordiv", X, Y), np.int32([1, 2]), np.int32([1, 0]))
    with pytest.raises(ArgumentValueError, match="division by zero"):
        compute(("mod", X, Y), np.int32(1), np.int32(0))
    with pytest.raises(ArgumentValueError, match="division by zero"):
        compute(("add", X, ("floordiv", whole(1), whole(0))), np.int32([1]))
    with pytest.raises(ArgumentValueError, match="reads no input"):
        compute(("add", whole(1), whole(2)), np.int32([1]))
    op = find("_arithmetic_generic_op").cls({"expression": ("add", X, Y)}, {})
    with pytest.raises(LayoutError):
        op.infer(Spec(T.UINT8, 2, "HW"), Spec(T.UINT8, 2, "WH"))


def planned(expression, *columns):
    """The outputs of all samples, worked out at once."""
    op = find("_arithmetic_generic_op").cls({"expression": expression}, {})
    op.infer(*[Spec(to_dali_type(c.dtype), c.ndim - 1) for c in columns])
    (found,) = op.plan(None, *[Samples(values=c) for c in columns]).values
    return found


def test_small_values_of_all_samples_are_computed_at_once():
    rng = np.random.default_rng(0)
    angles, counts = rng.standard_normal(9).astype(np.float32), np.arange(9, dtype=np.int32)
    points = rng.standard_normal((9, 3)).astype(np.float32)
    for expression in (
        ("add", ("mul", X, real(1.5)), Y),
        ("sin", X),
        ("gt", X, whole(0)),
        ("floordiv", whole(7), ("add", Y, whole(1))),
        ("clamp", ("exp", X), whole(0), whole(2)),
    ):
        for first in (angles, points):
            batch = planned(expression, first, counts)
            by_sample = [compute(expression, *s) for s in zip(first, counts, strict=True)]
            assert batch.dtype == by_sample[0].dtype
            np.testing.assert_array_equal(batch, by_sample)
    with pytest.raises(ArgumentValueError, match="division by zero"):
        planned(("mod", whole(7), Y), angles, counts)


TYPES = [np.uint8, np.int16, np.int32, np.uint32, np.float32, np.float64, np.bool_]
SHAPES = [(), (1,), (3,), (5, 3), (5, 1), (1, 3), (4, 5, 3), (4, 1, 1)]


@st.composite
def trees(draw, depth=3):
    if depth == 0 or draw(st.integers(0, 4)) == 0:
        return draw(st.sampled_from([X, Y, Z, whole(3), real(1.5), ("const", True, T.BOOL)]))
    names = {1: ["neg", "sqrt", "abs", "exp"], 3: ["clamp"]}
    names[2] = ["add", "sub", "mul", "div", "min", "max", "pow", "lt", "eq", "and", "lshift"]
    arity = draw(st.sampled_from([1, 2, 2, 2, 3]))
    operands = [draw(trees(depth=depth - 1)) for _ in range(arity)]
    return (draw(st.sampled_from(names[arity])), *operands)


def one_at_a_time(expression, inputs):
    """Each operation of a tree by an operator of its own; constants stay constants."""
    if expression[0] == "input":
        return inputs[expression[1]]
    operands, arrays = [], []
    for operand in expression[1:]:
        if operand[0] == "const" or typed(operand, specs_of(inputs)).is_constant:
            operands.append(operand)
        else:
            operands.append(("input", len(arrays)))
            arrays.append(one_at_a_time(operand, inputs))
    return compute((expression[0], *operands), *arrays)


def specs_of(inputs):
    return [Spec(to_dali_type(x.dtype), x.ndim) for x in inputs]


@st.composite
def samples(draw):
    seed = draw(st.integers(0, 100))
    rng = np.random.default_rng(seed)
    arrays = []
    for _ in range(3):
        dtype = np.dtype(draw(st.sampled_from(TYPES)))
        shape = draw(st.sampled_from(SHAPES))
        arrays.append(np.asarray(rng.integers(0, 9, shape)).astype(dtype))
    return arrays


@settings(max_examples=300, deadline=None)
@given(trees(), samples())
def test_a_tree_gives_what_its_operations_give(tree, inputs):
    try:
        root = typed(tree, specs_of(inputs))
    except (TypeError, ValueError):
        return  # not defined for these types
    if root.is_constant:
        return
    whole_tree = compute(tree, *inputs)
    by_one = one_at_a_time(tree, inputs)
    assert whole_tree.dtype == by_one.dtype == root.dtype
    assert whole_tree.shape == by_one.shape
    np.testing.assert_array_equal(whole_tree, by_one)
