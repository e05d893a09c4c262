"""`resize` on the GPU gives what it gives on the CPU."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from headrace.errors import ArgumentValueError
from headrace.types import DALIDataType, DALIInterpType
from tests.support.gpu.alike import check_alike, each, random_rows
from tests.support.gpu.run_operator import run_gpu_operator

same = partial(check_alike, "resize", layout="HWC")

IMAGES = [(40, 57, 3), (61, 33, 3), (5, 7, 3), (1, 1, 3)]
FILTERS = sorted({f.value: f for f in DALIInterpType}.values())


@pytest.mark.sweep
@pytest.mark.sanitize
@pytest.mark.parametrize("antialias", [True, False])
@pytest.mark.parametrize("interpolation", FILTERS)
def test_filters(interpolation, antialias):
    for size in ((23, 29), (101, 47)):
        same(random_rows(*IMAGES), size=size, interp_type=interpolation, antialias=antialias)


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", ["uint8", "int16", "uint16", "float32"])
@pytest.mark.parametrize("size", [(23, 29), (70, 61)])
def test_types(dtype, size):
    rows = random_rows(*IMAGES, dtype=dtype)
    same(rows, size=size)
    same(rows, size=size, dtype=DALIDataType.FLOAT)


@pytest.mark.sanitize
@pytest.mark.parametrize("channels", [1, 2, 4, 5, 6, 13, 16, 17, 40])
def test_channels(channels):
    rows = random_rows((40, 57, channels), (21, 13, channels))
    same(rows, size=(17, 19))
    same(rows, size=(90, 61))
    same(rows, size=(17, 19), interp_type=DALIInterpType.INTERP_NN)


def test_numbers_of_channels_differ():
    same(random_rows((40, 57, 3), (21, 13, 1), (9, 9, 4)), size=(17, 19))


@pytest.mark.parametrize(
    ("layout", "shapes"),
    [
        ("FHWC", [(3, 21, 17, 3), (2, 14, 30, 3)]),
        ("CHW", [(3, 21, 37), (2, 30, 11)]),
        ("FCHW", [(2, 3, 21, 17), (4, 3, 9, 12)]),
        ("CFHW", [(3, 2, 21, 17), (3, 4, 9, 12)]),
    ],
)
@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_layouts(layout, shapes, dtype):
    rows = random_rows(*shapes, dtype=dtype)
    same(rows, layout=layout, size=(13, 19))
    same(rows, layout=layout, size=(0, 41))


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("layout", "shapes"),
    [
        ("DHWC", [(9, 21, 17, 3), (5, 14, 12, 3)]),
        ("CDHW", [(2, 9, 21, 17), (2, 5, 14, 12)]),
        ("FDHWC", [(2, 9, 21, 17, 3), (1, 4, 4, 4, 3)]),
        ("FCDHW", [(2, 3, 9, 11, 17)]),
        ("CFDHW", [(3, 2, 9, 11, 17)]),
    ],
)
@pytest.mark.parametrize("dtype", ["uint8", "float32"])
def test_volumes(layout, shapes, dtype):
    rows = random_rows(*shapes, dtype=dtype)
    same(rows, layout=layout, size=(4, 13, 19))
    same(rows, layout=layout, size=(12, 0, 10))
    same(rows, layout=layout, size=(-4, 13, -19), interp_type=DALIInterpType.INTERP_NN)


@pytest.mark.parametrize("dtype", ["int16", "uint16"])
def test_types_of_volumes(dtype):
    rows = random_rows((9, 21, 17, 3), (5, 14, 12, 3), dtype=dtype)
    same(rows, layout="DHWC", size=(4, 13, 19))


@pytest.mark.parametrize("layout", ["DHWC", "FDHWC"])
def test_slices_that_stay(layout):
    shape = (5, 21, 17, 3)
    rows = random_rows(*[shape if layout == "DHWC" else (2, *shape)] * 2)
    same(rows, layout=layout, size=(5, 13, 10))
    same(rows, layout=layout, size=(-5, 13, 10))


@pytest.mark.parametrize(
    "sizes",
    [
        {"size": 31},
        {"size": (20, 0)},
        {"size": (-20, 31)},
        {"size": (20, -31.5)},
        {"size": (0.2, 7.3)},
        {"size": (33, 20), "mode": "not_larger"},
        {"size": (33, -20), "mode": "not_smaller"},
        {"size": (90, 50), "max_size": 42, "mode": "not_smaller"},
        {"size": (90, 20), "max_size": (40, 15)},
        {"resize_x": 31},
        {"resize_y": 31.25, "subpixel_scale": False},
        {"resize_x": 31, "resize_y": -22},
        {"resize_shorter": 20, "max_size": 33},
        {"resize_longer": 35.5},
        {"size": (21, 20), "roi_start": (3, 30.5), "roi_end": (30.25, 2)},
        {"resize_shorter": 20, "roi_start": (0.3, 1.2), "roi_end": (0.9, -0.1)},
    ],
)
def test_sizes_and_regions(sizes):
    if "resize_shorter" in sizes and "roi_start" in sizes:
        sizes = {**sizes, "roi_relative": True}
    same(random_rows((40, 57, 3), (61, 33, 3), (25, 80, 3)), **sizes)


def test_arguments_by_sample():
    rows = random_rows((40, 57, 3), (61, 33, 3), (25, 80, 3))
    same(rows, resize_shorter=each(20, 31.5, 7))
    same(rows, resize_longer=[np.float32([20]), np.float32([31.5]), np.float32([7])])
    same(rows, size=each((20, 30), (0, 7), (-9, 8)), interp_type=each(0, 2, 1, dtype=np.int32))
    same(rows, resize_x=each(20, 0, 7), resize_y=12.0)
    same(
        rows,
        size=each((20, 30), (50, 77), (9, 8), dtype=np.int64),
        min_filter=each(2, 0, 3, dtype=np.int32),
        mag_filter=DALIInterpType.INTERP_CUBIC,
    )
    same(
        rows,
        size=(20, 20),
        roi_start=each((0, 0), (5, 9), (3.5, 1)),
        roi_end=each((10, 10), (2, 30), (20, 70)),
    )


def test_arguments_of_different_lengths_that_are_all_right():
    rows = random_rows((40, 57, 3), (61, 33, 3))
    same(rows, size=[np.float32([20]), np.float32([15, 12])])


def test_large_reductions():
    """Tiles need more columns than fit into shared memory, and sums go on from band to band."""
    same(random_rows((300, 577, 3), (700, 33, 3)), size=(9, 7))
    same(random_rows((40, 1300, 1)), size=(20, 150))
    same(random_rows((31, 900, 4), dtype=np.int16), size=(40, 33))
    same(random_rows((31, 400, 3), dtype=np.float32), size=(40, 33))


@pytest.mark.sanitize
@pytest.mark.parametrize("dtype", ["uint8", "int16"])
def test_rows_of_any_alignment(dtype):
    shapes = [(9, width, channels) for width in (29, 30, 31, 32) for channels in (3,)]
    for size in ((7, 21), (7, 13), (20, 33)):
        same(random_rows(*shapes, dtype=dtype), size=size)
        same(random_rows(*shapes, dtype=dtype), size=size, interp_type=DALIInterpType.INTERP_NN)


def test_large_tiles():
    same(random_rows((75, 90, 3), (80, 70, 3)), size=(66, 71))


def test_empty_images():
    same(random_rows((40, 57, 3), (0, 33, 3), (4, 0, 3)), size=(9, 7))
    same(random_rows((40, 57, 0), (3, 33, 0)), size=(9, 7))
    same(random_rows((0, 5, 6, 3), (2, 5, 6, 3)), layout="FHWC", size=(9, 7))


def test_what_stays_is_not_copied():
    rows = random_rows((40, 57, 3), (61, 33, 3))
    same(rows, size=each((40, 57), (61, 33)))
    same(rows, size=each((40, 57), (61, 32)))


def test_extents_before_resizing():
    rows = random_rows((40, 57, 3), (61, 33, 3))
    same(rows, size=(9, 7), save_attrs=True)
    same(random_rows((3, 4, 5, 6)), layout="CDHW", size=(9, 7, 5), save_attrs=True)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"size": each((3, 4), (np.inf, 4))}, "finite"),
        ({"resize_x": each(3, 1e12)}, "output extent"),
        ({"size": each((3, 4), (1, 2, 3))}, "`size` must have one value"),
        ({"size": 9, "interp_type": each(1, 77, dtype=np.int32)}, "77"),
    ],
)
def test_errors_name_the_sample(arguments, words):
    with pytest.raises(ArgumentValueError, match=words) as raised:
        run_gpu_operator("resize", random_rows((4, 5, 3), (5, 4, 3)), layout="HWC", **arguments)
    if "interp_type" not in arguments:
        assert "sample 1" in str(raised.value)
