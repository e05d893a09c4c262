"""`crop_mirror_normalize` on the GPU gives what it gives on the CPU."""

from __future__ import annotations

import itertools
from functools import partial

import numpy as np
import pytest

from headrace.errors import ArgumentValueError, OutOfRangeError
from headrace.types import DALIDataType
from tests.support.gpu.alike import check_alike, each, random_rows
from tests.support.gpu.run_operator import run_gpu_operator

same = partial(check_alike, "crop_mirror_normalize", layout="HWC")

IMAGES = [(20, 31, 3), (17, 22, 3), (30, 30, 3)]
STATISTICS = {"mean": [120.0, 110.5, 100.0], "std": [50.0, 61.0, 70.0]}
MIRRORS = each(0, 1, 1, dtype=np.int32)
OUT_TYPES = [DALIDataType.FLOAT, DALIDataType.FLOAT16, DALIDataType.UINT8, DALIDataType.INT8]


@pytest.mark.sweep
@pytest.mark.sanitize
@pytest.mark.parametrize("dtype", OUT_TYPES)
@pytest.mark.parametrize("given", ["uint8", "int16", "uint16", "int32", "float16", "float32"])
def test_types(given, dtype):
    for layout in ("CHW", "HWC"):
        same(
            random_rows(*IMAGES, dtype=given),
            output_layout=layout,
            dtype=dtype,
            crop=(12, 15),
            mirror=MIRRORS,
            scale=3.0,
            shift=5.0,
            **STATISTICS,
        )


@pytest.mark.sweep
@pytest.mark.parametrize("layout", ["".join(axes) for axes in itertools.permutations("HWC")])
@pytest.mark.parametrize("given", ["HWC", "CHW"])
def test_layouts(given, layout):
    shapes = IMAGES if given == "HWC" else [(3, 20, 31), (3, 17, 22), (3, 30, 30)]
    rows = random_rows(*shapes)
    common = {"output_layout": layout, "mirror": MIRRORS, "pad_output": True, **STATISTICS}
    same(rows, layout=given, dtype=DALIDataType.FLOAT16, crop=(12, 15), **common)
    same(rows, layout=given, **common)
    same(
        rows,
        layout=given,
        dtype=DALIDataType.UINT8,
        crop=(35, 15),
        out_of_bounds_policy="pad",
        fill_values=(7.0, 8.9, -9.0, 10.0),
        **common,
    )


@pytest.mark.sanitize
@pytest.mark.parametrize("channels", [1, 2, 4, 5, 8])
@pytest.mark.parametrize("layout", ["HWC", "CHW"])
def test_channels(channels, layout):
    rows = random_rows((20, 31, channels), (37, 40, channels))
    for dtype in (DALIDataType.FLOAT, DALIDataType.UINT8):
        for pad in (True, False):
            same(rows, output_layout=layout, dtype=dtype, pad_output=pad, mirror=1, shift=99.0)


def test_numbers_of_channels_differ():
    same(random_rows((20, 31, 3), (17, 22, 1), (9, 9, 4)), mean=3.0, pad_output=True)
    same(random_rows((20, 31, 3), (17, 22, 1)), mean=each(3, 4), std=each(2, 0.5))


@pytest.mark.parametrize(
    ("given", "shapes"),
    [
        ("FHWC", [(3, 21, 17, 3), (2, 14, 30, 3)]),
        ("FCHW", [(2, 3, 21, 17), (4, 3, 19, 12)]),
        ("CFHW", [(3, 2, 21, 17), (3, 4, 19, 12)]),
        ("DHWC", [(9, 21, 17, 3), (5, 14, 12, 3)]),
        ("CDHW", [(3, 9, 21, 17), (3, 5, 14, 12)]),
        ("FDHWC", [(2, 9, 21, 17, 3)]),
        ("FCDHW", [(2, 3, 9, 11, 17)]),
        ("CFDHW", [(3, 2, 9, 11, 17)]),
    ],
)
def test_sequences_and_volumes(given, shapes):
    rows = random_rows(*shapes)
    others = given.replace("C", "")
    for layout in ("", "C" + others, others + "C", others[::-1] + "C", "C" + others[::-1]):
        same(rows, layout=given, output_layout=layout, crop=(8, 9), mirror=1, **STATISTICS)
    if "D" in given or "F" in given:
        same(rows, layout=given, output_layout="", crop_d=2, crop_h=8, crop_w=9, crop_pos_z=1.0)


@pytest.mark.parametrize("policy", ["pad", "trim_to_shape"])
def test_windows_that_leave_the_data(policy):
    rows = random_rows(*IMAGES)
    for crop in ((40, 12), (12, 40), (40, 50)):
        for layout in ("HWC", "CHW"):
            same(
                rows,
                crop=crop,
                crop_pos_x=each(0, 0.3, 1),
                crop_pos_y=each(1, 0, 0.7),
                mirror=MIRRORS,
                output_layout=layout,
                out_of_bounds_policy=policy,
                fill_values=5.5,
                **STATISTICS,
            )


def test_statistics_by_sample():
    rows = random_rows(*IMAGES)
    same(rows, mean=each((1, 2, 3), (4, 5, 6), (7, 8, 9)), std=each(2, 3, 4), shift=0.5)
    same(rows, mean=each(2, 3, 4), std=[5.0, 6.0, 7.0], scale=2.0)
    same(rows, mean=[np.float32([1, 2, 3]), np.float32([1]), np.float32([4, 5, 6])])


def test_large_images():
    """More than one block a sample, and rows that cross from one to the next."""
    rows = random_rows((75, 90, 3), (1, 2100, 3), (1500, 1, 3))
    for layout in ("HWC", "CHW"):
        for dtype in (DALIDataType.FLOAT, DALIDataType.INT8):
            same(rows, output_layout=layout, dtype=dtype, mirror=MIRRORS, **STATISTICS)


def test_empty_windows():
    same(random_rows((20, 31, 3), (0, 22, 3), (30, 0, 3)))
    same(random_rows((5, 5, 0), (3, 4, 0)), pad_output=True)
    same(random_rows((0, 5, 6, 3), (2, 5, 6, 3)), layout="FHWC", output_layout="")


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not(value):
    rows = random_rows((5, 6, 3), dtype=np.float32)
    rows[0][2, 3] = value
    for dtype in OUT_TYPES:
        same(rows, dtype=dtype)


@pytest.mark.parametrize(
    ("error", "words", "arguments"),
    [
        (OutOfRangeError, "leaves the data", {"crop": each((3, 3), (30, 3))}),
        (
            ArgumentValueError,
            "`mean` has 2 values",
            {"mean": [np.float32([1]), np.float32([1, 2])]},
        ),
        (ArgumentValueError, "out of range", {"crop": (3, 3), "crop_pos_x": each(0, -1)}),
    ],
)
def test_errors_name_the_sample(error, words, arguments):
    with pytest.raises(error, match=words) as raised:
        run_gpu_operator(
            "crop_mirror_normalize",
            random_rows((4, 5, 3), (5, 4, 3)),
            layout="HWC",
            **arguments,
        )
    assert "sample 1" in str(raised.value)


@pytest.mark.parametrize(
    ("words", "arguments"),
    [
        ("`mean` has 2 values", {"mean": (1.0, 2.0)}),
        ("`fill_values` has 2 values", {"fill_values": (1.0, 2.0), "out_of_bounds_policy": "pad"}),
    ],
)
def test_errors_of_constants(words, arguments):
    with pytest.raises(ArgumentValueError, match=words):
        run_gpu_operator("crop_mirror_normalize", random_rows((4, 5, 3)), layout="HWC", **arguments)


def test_fewer_numbers_than_channels():
    rows = random_rows((7, 9, 3), (4, 9, 3))
    window = {"crop": [11, 12], "out_of_bounds_policy": "pad", "pad_output": True}
    same(rows, mean=[1.0, 2.0, 3.0], fill_values=[9.0, 8.0, 7.0], **window)
    same(rows, mean=[1.0, 2.0], std=[3.0, 4.0], fill_values=[9.0, 8.0], shift=2.0, **window)
