"""Operators on the GPU that only look at data in another way."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace.errors import ShapeError
from headrace.operators.support.windows.subscript_batch import spans
from headrace.types import DALIDataType as T
from tests.support.gpu.alike import check_alike, check_same_error
from tests.support.gpu.run_operator import run_gpu_operator

_rng = np.random.default_rng(0)
IMAGES = [
    _rng.integers(0, 256, s, np.uint8) for s in [(30, 41, 3), (9, 12, 3), (1, 1, 3), (0, 4, 3)]
]


def each(*values, dtype=np.int32):
    return [np.asarray(v, dtype) for v in values]


# flip


@pytest.mark.sweep
@pytest.mark.parametrize("horizontal", [0, 1])
@pytest.mark.parametrize("vertical", [0, 1])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32, np.int64])
def test_flip(horizontal, vertical, dtype):
    rows = [row.astype(dtype) for row in IMAGES]
    check_alike("flip", rows, layout="HWC", horizontal=horizontal, vertical=vertical)


def test_flip_by_sample():
    check_alike(
        "flip", IMAGES, layout="HWC", horizontal=each(0, 1, 1, 0), vertical=each(1, 0, 2, -1)
    )


@pytest.mark.parametrize("layout", ["FDHWC", "FHWC", "DHWC", "HWC", "FCDHW", "FCHW", "CDHW", "CHW"])
def test_flip_of_layouts(layout):
    rows = [_rng.integers(0, 256, [4 + k for k in range(len(layout))], np.uint8) for _ in range(2)]
    check_alike("flip", rows, layout=layout, depthwise=each(1, 0), vertical=each(1, 1))


def test_a_flag_must_be_one_number():
    check_flags = {"layout": "HWC", "horizontal": each((0, 1), (1, 1), (1, 0), (0, 0))}
    with pytest.raises(ValueError, match="`horizontal`: expected a scalar for each sample"):
        run_gpu_operator("flip", IMAGES, **check_flags)


# transpose


@pytest.mark.sweep
@pytest.mark.parametrize("perm", [(2, 0, 1), (0, 2, 1), (1, 0, 2), (0, 1, 2), (2, 1, 0), None])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32])
def test_transpose(perm, dtype):
    rows = [row.astype(dtype) for row in IMAGES]
    check_alike("transpose", rows, **({} if perm is None else {"perm": perm}))


def test_transpose_of_ranks():
    for rank in range(7):
        rows = [_rng.integers(0, 256, [2 + k for k in range(rank)], np.uint8) for _ in range(2)]
        check_alike("transpose", rows)
        check_alike("transpose", rows, perm=tuple(np.roll(range(rank), 1).tolist()))


# [...]


@pytest.mark.parametrize(
    "arguments",
    [
        {"at_0": 0},
        {"at_2": -1},
        {"at_0": -1, "at_2": 1},
        {"lo_1": 3},
        {"hi_1": -2},
        {"lo_0": 1, "hi_0": 7, "step_0": 2},
        {"step_1": -1},
        {"step_1": -3, "lo_1": -2, "hi_1": 1},
        {"lo_1": 100},
        {"lo_0": -100, "hi_1": 1 << 70, "step_2": 1 << 70},
        {"num_subscripts": 3, "at_1": 5},
        {"at_0": 1, "at_1": 2, "at_2": 0},
    ],
)
def test_subscript(arguments):
    check_alike("_tensor_subscript", IMAGES[:2], **arguments)


def test_subscript_by_sample():
    check_alike("_tensor_subscript", IMAGES[:2], at_0=each(3, -1))
    check_alike("_tensor_subscript", IMAGES, lo_0=each(3, -4, 0, 9), hi_1=each(9, 2, -1, -9))
    check_alike("_tensor_subscript", IMAGES, step_0=each(2, -1, 5, -7), lo_0=each(3, -1, 0, 0))
    at = each(3, 2**63 + 1, dtype=np.uint64)
    check_same_error("_tensor_subscript", IMAGES[:2], at_0=at, sample=1)


def test_subscript_errors_name_the_sample():
    check_same_error("_tensor_subscript", IMAGES, at_0=5, sample=2)
    check_same_error("_tensor_subscript", IMAGES, at_0=each(1, -10, 0, 0), sample=1)
    check_same_error("_tensor_subscript", IMAGES, step_0=each(1, 1, 0, 1), at_2=0, sample=2)
    check_same_error("_tensor_subscript", IMAGES, at_0=1 << 70, sample=0)


@settings(max_examples=500, deadline=None)
@given(
    st.integers(0, 9),
    st.none() | st.integers(-12, 12),
    st.none() | st.integers(-12, 12),
    st.none() | st.integers(-11, 11).filter(bool),
)
def test_spans_are_slices(extent, low, high, step):
    given = [None if v is None else np.array([v]) for v in (low, high, step)]
    first, count, stride = (int(v[0]) for v in spans(np.array([extent]), *given))
    expected = list(range(extent)[slice(low, high, step)])
    assert [first + k * stride for k in range(count)] == expected


def test_subscripts_are_counted():
    check_alike("_subscript_dim_check", IMAGES, num_subscripts=3)


# squeeze, expand_dims, copy, per_frame


def test_squeeze():
    planes = [row[:, :, :1] for row in IMAGES]
    check_alike("squeeze", planes, axes=(2,))
    check_alike("squeeze", planes, layout="HWC", axis_names="C")
    check_alike("squeeze", planes, axes=each((2,), (2,), (2,), (2,)))
    pixels = [_rng.integers(0, 9, s, np.uint8) for s in [(1, 3, 5), (3, 1, 5), (1, 1, 2)]]
    check_alike("squeeze", pixels, axes=each((0,), (1,), (1,)))
    check_alike("squeeze", [np.empty((0, 4, 1), np.uint8)], axes=(1, 2))


def test_squeeze_errors():
    check_same_error("squeeze", IMAGES, axes=(0,), sample=0)
    pixels = [_rng.integers(0, 9, s, np.uint8) for s in [(1, 3, 5), (3, 1, 5), (1, 1, 2)]]
    check_same_error("squeeze", pixels, axes=each((0,), (1,), (2,)), sample=2)
    check_same_error("squeeze", pixels, axes=each((0,), (3,), (2,)), sample=1)
    with pytest.raises(ShapeError, match=r"different numbers of axes \(1, 2\)"):
        run_gpu_operator("squeeze", pixels, axes=each((0,), (1,), (0, 1)))


@pytest.mark.parametrize("axes", [(0,), (3,), (0, 2, 5), ()])
def test_expand_dims(axes):
    check_alike("expand_dims", IMAGES, axes=axes)


def test_copy_is_a_copy():
    for scattered in (False, True):
        check_alike("copy", IMAGES, scattered=scattered)
    check_alike("copy", [np.array(3.5)] * 3)
    check_alike("per_frame", IMAGES)


# get_property, shape


def test_properties():
    check_alike("get_property", IMAGES, key="source_info", sources=["a.jpg", "", "ü", "x" * 70])
    check_alike("get_property", IMAGES, layout="HWC", key="layout")
    check_alike("get_property", IMAGES, key="layout")


@pytest.mark.parametrize("dtype", [T.INT32, T.INT64, T.UINT32, T.UINT64, T.FLOAT, T.FLOAT64])
def test_shapes(dtype):
    check_alike("_shape", IMAGES, dtype=dtype)
    check_alike("_shape", each(1, 2), dtype=dtype)
