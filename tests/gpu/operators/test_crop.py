"""`crop` on the GPU: the CPU's values, and views wherever nothing has to be computed."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.types import DALIDataType as T
from tests.support.gpu.alike import check_alike, check_same_error, each

_rng = np.random.default_rng(0)
SHAPES = [(30, 41), (9, 12), (64, 5), (17, 17)]
POLICIES = ["pad", "edge", "reflect_1001", "reflect_101", "wrap", "trim_to_shape"]


def images(dtype=np.uint8, channels=3, shapes=SHAPES):
    return [_rng.integers(0, 256, (*s, channels)).astype(dtype) for s in shapes]


def kernels(runtime):
    return list(getattr(runtime, "launches", []))


@pytest.mark.parametrize(
    "dtype", [np.uint8, np.int16, np.float16, np.float32, np.float64, np.bool_]
)
def test_types(dtype):
    check_alike("crop", images(dtype), layout="HWC", crop=(8, 5), crop_pos_x=0.3)


def test_a_window_inside_moves_nothing_until_it_is_read(emulated_gpu):
    check_alike("crop", images(shapes=[(40, 50)] * 3), layout="HWC", crop=(7, 25))
    assert kernels(emulated_gpu) == ["copy_rows"]
    check_alike("crop", images(), layout="HWC")
    assert kernels(emulated_gpu) == ["copy_rows"]


def test_sizes_and_places_by_sample():
    check_alike(
        "crop",
        images(),
        layout="HWC",
        crop_h=each(5, 9, 40, 0),
        crop_w=each(8, 12.9, 3, 17),
        crop_pos_x=each(0, 0.25, 0.5, 1),
        crop_pos_y=each(1, 0.75, 0.5, 0),
        rounding="truncate",
    )
    check_alike("crop", images(), layout="HWC", crop=each((5, 6), (9, 1), (2, 2), (17, 17)))
    check_alike("crop", images(), layout="HWC", crop=each((5, 6), (3, 9, 1), (2, 2), (9, 17, 17)))


@pytest.mark.sweep
@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("dtype", [None, T.FLOAT])
def test_windows_that_leave_the_data(policy, dtype):
    options = {"dtype": dtype} if dtype is not None else {}
    check_alike(
        "crop",
        images(),
        layout="HWC",
        crop=(20, 33),
        crop_pos_y=0.1,
        out_of_bounds_policy=policy,
        fill_values=(1.7, 2, 300),
        **options,
    )


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", [T.FLOAT, T.FLOAT16, T.UINT8])
@pytest.mark.parametrize("source", [np.uint8, np.float32, np.float64, np.int32])
def test_conversions(source, dtype):
    check_alike("crop", images(source), layout="HWC", crop=(4, 5), dtype=dtype)


@pytest.mark.parametrize(
    ("layout", "shape"),
    [
        ("CHW", (3, 9, 14)),
        ("DHWC", (6, 9, 14, 2)),
        ("CDHW", (2, 6, 9, 14)),
        ("FHWC", (6, 9, 14, 3)),
        ("FCHW", (6, 3, 9, 14)),
        ("CFHW", (3, 6, 9, 14)),
        ("FDHWC", (2, 6, 9, 14, 3)),
        ("FCDHW", (2, 3, 6, 9, 14)),
        ("CFDHW", (3, 2, 6, 9, 14)),
    ],
)
def test_layouts(layout, shape):
    rows = [_rng.integers(0, 256, shape, np.uint8) for _ in range(3)]
    check_alike("crop", rows, layout=layout, crop=(4, 5), crop_pos_x=0.0)
    check_alike("crop", rows, layout=layout, crop=(2, 5, 6))
    check_alike("crop", rows, layout=layout, crop=(2, 20, 6), out_of_bounds_policy="pad")
    if layout.index("C") == len(layout) - 1:
        return
    fill = tuple(range(1, 1 + shape[layout.index("C")]))
    check_alike(
        "crop", rows, layout=layout, crop=(20, 6), out_of_bounds_policy="pad", fill_values=fill
    )


def test_data_without_elements():
    empty = [np.empty((0, 5, 3), np.uint8), np.empty((4, 0, 3), np.uint8)]
    check_alike("crop", empty, layout="HWC")
    check_alike("crop", empty, layout="HWC", crop=(3, 3), out_of_bounds_policy="pad")
    check_same_error("crop", empty, layout="HWC", crop=(3, 3), sample=0)
    check_same_error(
        "crop", empty, layout="HWC", crop=(3, 3), out_of_bounds_policy="wrap", sample=0
    )


def test_errors_name_the_sample():
    check_same_error("crop", images(), layout="HWC", crop=(17, 5), sample=1)
    check_same_error(
        "crop", images(), layout="HWC", crop=(3, 5), crop_pos_x=each(0, 1, 2, 3), sample=2
    )
    check_same_error("crop", images(), layout="HWC", crop=(3, 5), crop_pos_x=-0.5, sample=0)
    nan = float("nan")
    check_same_error("crop", images(), layout="HWC", crop_w=3, crop_h=each(1, 2, 3, nan), sample=3)
    check_same_error(
        "crop", images(), layout="HWC", crop=each((1, 1), (1, 2), (1,), (2, 2)), sample=2
    )
    check_same_error(
        "crop",
        images(),
        layout="HWC",
        crop=(20, 5),
        out_of_bounds_policy="pad",
        fill_values=(1, 2),
        sample=1,
    )
