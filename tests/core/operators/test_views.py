"""What operators cost no copy, and what they take beyond DALI."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.errors import (
    ArgumentValueError,
    DataTypeError,
    LayoutError,
    OutOfRangeError,
    ShapeError,
    UsageError,
)
from headrace.operators.support.registry import find
from headrace.operators.support.schema import Spec
from headrace.types import DALIDataType
from tests.support.run_operator import run_operator

IMAGE = np.arange(9 * 8 * 3, dtype=np.uint8).reshape(9, 8, 3)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("crop", {}),
        ("crop", {"crop": (4, 5)}),
        ("crop", {"crop": (40, 5), "out_of_bounds_policy": "trim_to_shape"}),
        ("slice", {"start": (2, 1)}),
        ("flip", {"horizontal": 0}),
        ("flip", {"horizontal": 0, "vertical": 1}),
        ("cast", {"dtype": DALIDataType.UINT8}),
        ("reshape", {"shape": (-1,)}),
        ("reshape", {"rel_shape": (1, -1)}),
        ("reinterpret", {"dtype": DALIDataType.BOOL}),
        ("transpose", {"perm": (0, 1, 2)}),
        ("expand_dims", {"axes": (0,)}),
        ("per_frame", {"replace": True}),
    ],
)
def test_views(name, arguments):
    assert np.shares_memory(run_operator(name, IMAGE, layout="HWC", **arguments), IMAGE)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("flip", {}), ("transpose", {}), ("crop", {"crop": (4, 5), "dtype": DALIDataType.FLOAT})],
)
def test_what_is_computed_is_contiguous(name, arguments):
    out = run_operator(name, IMAGE, layout="HWC", **arguments)
    assert out.flags.c_contiguous
    assert not np.shares_memory(out, IMAGE)


@pytest.mark.parametrize("layout", ["FDHWC", "FCDHW", "CFDHW"])
def test_sequences_of_volumes(layout):
    sizes = {"F": 2, "D": 5, "H": 6, "W": 7, "C": 3}
    volume = np.arange(2 * 5 * 6 * 7 * 3).reshape([sizes[letter] for letter in layout])
    out = run_operator("crop", volume, layout=layout, crop=(3, 2, 1), crop_pos_z=0.0)
    wanted = tuple(
        {"D": slice(0, 3), "H": slice(2, 4), "W": slice(3, 4)}.get(k, slice(None)) for k in layout
    )
    np.testing.assert_array_equal(out, volume[wanted])


@pytest.mark.parametrize("name", ["crop", "flip", "slice"])
@pytest.mark.parametrize("dtype", ["bool", "float16"])
def test_types_that_dali_lacks(name, dtype):
    data = (IMAGE % 2).astype(dtype)
    arguments = {
        "crop": {"crop": (11, 3), "out_of_bounds_policy": "pad"},
        "slice": {"start": (-1, 0), "shape": (3, 3), "out_of_bounds_policy": "edge"},
    }.get(name, {})
    out = run_operator(name, data, layout="HWC", **arguments)
    same = run_operator(name, data.astype(np.uint8), layout="HWC", **arguments)
    assert out.dtype == dtype
    np.testing.assert_array_equal(out.astype(np.uint8), same)


def inferred(name: str, *specs: Spec, tensors: dict[str, Spec] | None = None, **arguments) -> Spec:
    schema = find(name)
    args = {a.name: a.default for a in schema.args.values()}
    args |= {k: schema.args[k].type.constant(v) for k, v in arguments.items()}
    return schema.cls(args, tensors).infer(*specs)


UNKNOWN = Spec(DALIDataType.UINT8, None)
HWC = Spec(DALIDataType.UINT8, 3, "HWC")
INTS = Spec(DALIDataType.INT32, 1)


@pytest.mark.parametrize(
    ("name", "arguments", "expected"),
    [
        ("crop", {"crop": (2, 3)}, UNKNOWN),
        ("flip", {}, UNKNOWN),
        ("slice", {"start": 1, "axes": (0,)}, UNKNOWN),
        ("cast", {"dtype": DALIDataType.INT8}, Spec(DALIDataType.INT8, None)),
        ("reshape", {"shape": (1, 2)}, Spec(DALIDataType.UINT8, 2)),
        ("reshape", {"layout": "HW"}, Spec(DALIDataType.UINT8, 2, "HW")),
        ("transpose", {}, UNKNOWN),
        ("transpose", {"perm": (1, 0)}, Spec(DALIDataType.UINT8, 2)),
        ("squeeze", {"axes": (1,)}, UNKNOWN),
        ("expand_dims", {"axes": (1,)}, UNKNOWN),
        ("per_frame", {}, UNKNOWN),
        ("get_property", {"key": "layout"}, Spec(DALIDataType.UINT8, 1)),
    ],
)
def test_unknown_ranks(name, arguments, expected):
    assert inferred(name, UNKNOWN, **arguments) == expected


def test_shapes_told_by_data():
    by_sample = {"shape": INTS}
    assert inferred("reshape", UNKNOWN, INTS) == UNKNOWN
    assert inferred("reshape", HWC, tensors=by_sample) == HWC
    assert inferred("reshape", HWC, tensors=by_sample, layout="") == UNKNOWN
    assert inferred("reshape", HWC, tensors=by_sample, layout="AB").ndim == 2
    by_sample = {"src_dims": INTS}
    assert inferred("reshape", HWC, tensors=by_sample, rel_shape=(1, 1)).ndim == 2
    assert inferred("squeeze", HWC, tensors={"axes": INTS}) == UNKNOWN


def test_layouts_have_a_letter_for_each_axis():
    assert inferred("reshape", HWC, layout="ABC").layout == "ABC"
    with pytest.raises(LayoutError, match="3-dimensional"):
        inferred("reshape", HWC, layout="HW")


def test_source_axes_for_each_sample():
    data = np.arange(6).reshape(2, 3, 1)
    out = run_operator("reshape", data, src_dims=np.array([1, 0]))
    assert out.shape == (3, 2)
    out = run_operator("reshape", data, src_dims=np.array([1, 0]), rel_shape=np.float32([2, 0.5]))
    assert out.shape == (6, 1)


def test_squeezed_axes_for_each_sample():
    assert run_operator("squeeze", IMAGE[:1], axes=np.array([0])).shape == (8, 3)


@pytest.mark.parametrize("axes", [(-1,), (3,)])
def test_squeeze_of_axes_that_are_not_there(axes):
    with pytest.raises(OutOfRangeError, match="axes"):
        run_operator("squeeze", IMAGE, layout="HWC", axes=axes)


def test_scalars_become_bytes():
    out = run_operator("reinterpret", np.float32(1), dtype=DALIDataType.UINT8, shape=(4,))
    np.testing.assert_array_equal(out, np.frombuffer(np.float32(1).tobytes(), np.uint8))
    with pytest.raises(ShapeError, match="scalar"):
        run_operator("reinterpret", np.float32(1), dtype=DALIDataType.UINT8)


@pytest.mark.parametrize(
    ("name", "arguments", "error", "words"),
    [
        ("cast", {"dtype": DALIDataType.STRING}, DataTypeError, "dtype.*STRING"),
        ("crop", {"dtype": DALIDataType.INT16}, DataTypeError, "dtype.*INT16.*cast"),
        ("crop", {"crop": (90, 3)}, OutOfRangeError, r"\(90, 3, 3\).*\(9, 8, 3\).*trim_to_shape"),
        ("slice", {"start": 3, "end": 1}, ArgumentValueError, "start 3, end 1"),
        ("slice", {}, UsageError, "rel_start.*anchor"),
        ("reshape", {"shape": (5, -1)}, ShapeError, r"215.*216.*\(9, 8, 3\).*\(5, 43\)"),
        ("reshape", {}, UsageError, "nothing to do"),
        ("transpose", {"perm": (0, 0, 1)}, ArgumentValueError, r"perm.*\[0, 0, 1\]"),
        ("get_property", {"key": "shape"}, ArgumentValueError, '"layout" and "source_info"'),
        ("per_frame", {}, LayoutError, 'HWC.*replace=True.*"FWC"'),
        ("expand_dims", {"axes": (5,)}, OutOfRangeError, "0 to 3"),
        (
            "crop",
            {"fill_values": (1, 2), "out_of_bounds_policy": "pad", "crop": (90, 3)},
            ShapeError,
            "fill_values.*2 values.*3 channels",
        ),
    ],
)
def test_messages(name, arguments, error, words):
    with pytest.raises(error, match=words):
        run_operator(name, IMAGE, layout="HWC", **arguments)
