"""Kernels of resampling where tiles, bands and blocks begin and end."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.kernels.gpu import resample
from headrace.types import DALIInterpType
from tests.support.gpu.alike import check_alike, random_rows


def same(rows, height, width, layout="HWC", **arguments):
    check_alike("resize", rows, layout=layout, size=(float(height), float(width)), **arguments)


@pytest.mark.parametrize("height", [1, 31, 32, 33, 65])
def test_rows_of_tiles(height):
    same(random_rows((70, 40, 3), (9, 50, 3)), height, 10)


@pytest.mark.parametrize("width", [1, 31, 32, 33, 65])
def test_columns_of_tiles(width):
    same(random_rows((20, 70, 3), (20, 33, 3)), 10, width)
    same(random_rows((20, 70, 4), (20, 33, 4)), 10, width)


@pytest.mark.parametrize("width", [127, 128, 129, 257])
def test_columns_of_tiles_of_single_channels(width):
    same(random_rows((20, 300, 1), (20, 140, 1)), 10, width)


@pytest.mark.sanitize
@pytest.mark.parametrize("dtype", ["uint8", "uint16", "float32"])
def test_bands_that_end_anywhere(dtype):
    """As many source columns as fill part of a band, all of it, or a little more."""
    for width in (10, 11, 21, 22, 32, 42, 43, 44, 64, 85, 86, 170, 171, 175):
        same(random_rows((5, width, 3), dtype=dtype), 3, 8)


def test_a_pixel_of_many_bands():
    same(random_rows((3, 3000, 3)), 2, 1)
    same(random_rows((3, 700, 16)), 2, 3)


@pytest.mark.sanitize
@pytest.mark.parametrize("interpolation", [DALIInterpType.INTERP_NN, DALIInterpType.INTERP_LINEAR])
@pytest.mark.parametrize("channels", [1, 3, 5])
def test_blocks_of_units(interpolation, channels):
    """Blocks that end within rows, rows longer than a block, rows of a single pixel."""
    rows = random_rows((9, 9, channels), (4, 30, channels))
    for height, width in ((40, 37), (3, 2100), (1100, 1), (2, 512)):
        same(rows, height, width, interp_type=interpolation, antialias=False)


def test_planes_of_sequences():
    rows = random_rows((2, 3, 9, 40), (3, 3, 30, 12), dtype=np.float32)
    same(rows, 7, 40, "FCHW")
    same(rows, 40, 7, "FCHW", interp_type=DALIInterpType.INTERP_LANCZOS3)


@pytest.mark.parametrize("tiles", [2, 3, 4])
def test_blocks_of_several_tiles(tiles, monkeypatch):
    """Large batches: a block makes tiles one after the other, of one band or of many."""
    monkeypatch.setattr(resample, "_STRIP", (tiles, 256, 1))
    rows = random_rows((40, 301, 3), (70, 90, 3), (9, 2000, 3))
    same(rows, 33, 200)
    same(rows, 5, 250, interp_type=DALIInterpType.INTERP_LANCZOS3)
    same(random_rows((40, 301, 1), dtype=np.uint16), 33, 400)
    same(random_rows((20, 3000, 3)), 4, 40)


@pytest.mark.sanitize
@pytest.mark.parametrize("channels", [1, 3, 4])
@pytest.mark.parametrize("dtype", ["uint8", "uint16"])
def test_pairs_of_distant_pixels(channels, dtype):
    """Two source pixels along each axis, of many: lines that begin and end anywhere in words."""
    rows = random_rows((9, 23, channels), (31, 7, channels), (12, 40, channels), dtype=dtype)
    for height, width in ((3, 4), (2, 3), (5, 7)):
        same(rows, height, width, antialias=False)
