"""Conversions between colour spaces as linear functions of pixels.

All are tables of fifteen numbers for `headrace.kernels.cpu.color.transform_pixels`, whose float32
arithmetic gives DALI's bytes exactly.

* Grey is the luma of ITU-R BT.601, ``0.299 R + 0.587 G + 0.114 B``, with weights that are multiples
  of 2**-15, as OpenCV has them. Sums of such products of bytes are exact.
* YCbCr is that of ITU-R BT.601 for television: Y from 16 to 235, Cb and Cr from 16 to 240 around
  128.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from headrace.kernels.cpu.color import transform_pixels
from headrace.kernels.cpu.opencv import cv2

_RED, _BLUE = 0.299, 0.114
_GREEN = 1 - _RED - _BLUE
_LUMA = (219 / 255, 255 / 219)
"""From bytes to Y without its offset, and back."""
_MIDDLE, _BLACK = 128.0, 16.0


def _to_ycbcr() -> list[list[float]]:
    blue, red = 112 / (255 * (1 - _BLUE)), 112 / (255 * (1 - _RED))
    return [
        [_LUMA[0] * _RED, _LUMA[0] * _GREEN, _LUMA[0] * _BLUE],
        [-blue * _RED, -blue * _GREEN, 112 / 255],
        [112 / 255, -red * _GREEN, -red * _BLUE],
    ]


def _from_ycbcr() -> list[list[float]]:
    blue, red = 255 / 112 * (1 - _BLUE), 255 / 112 * (1 - _RED)
    return [
        [_LUMA[1], 0.0, red],
        [_LUMA[1], -blue * _BLUE / _GREEN, -red * _RED / _GREEN],
        [_LUMA[1], blue, 0.0],
    ]


def _table(
    matrix: list[list[float]],
    offsets: tuple[float, ...] = (0.0, 0.0, 0.0),
    shifts: tuple[float, ...] = (0.0, 0.0, 0.0),
) -> np.ndarray:
    found = np.array([*np.ravel(matrix), *offsets, *shifts], np.float32)
    found.flags.writeable = False
    return found


_ZEROS = [0.0, 0.0, 0.0]
_GREY = [9798 / 2**15, 19235 / 2**15, 3735 / 2**15]
_CODED = (_BLACK, _MIDDLE, _MIDDLE)
_SAME = [[1.0, 0.0, 0.0]] * 3
_REVERSED = [[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [1.0, 0.0, 0.0]]

CHANNELS = {"RGB": 3, "BGR": 3, "GRAY": 1, "YCbCr": 3}
"""Number of channels of each colour space."""

_FROM_RGB = {
    "GRAY": _table([_GREY, _ZEROS, _ZEROS]),
    "YCbCr": _table(_to_ycbcr(), _CODED),
}
_SWAPPED = _table(_REVERSED)
_SPREAD = _table(_SAME)

CONVERSIONS: dict[tuple[str, str], tuple[np.ndarray, bool]] = {
    ("RGB", "BGR"): (_SWAPPED, False),
    ("BGR", "RGB"): (_SWAPPED, False),
    **{("RGB", target): (table, False) for target, table in _FROM_RGB.items()},
    **{("BGR", target): (table, True) for target, table in _FROM_RGB.items()},
    ("GRAY", "RGB"): (_SPREAD, False),
    ("GRAY", "BGR"): (_SPREAD, False),
    ("GRAY", "YCbCr"): (_table([[_LUMA[0], 0.0, 0.0], _ZEROS, _ZEROS], _CODED), False),
    ("YCbCr", "RGB"): (_table(_from_ycbcr(), shifts=_CODED), False),
    ("YCbCr", "BGR"): (_table(_from_ycbcr()[::-1], shifts=_CODED), False),
    ("YCbCr", "GRAY"): (_table([[_LUMA[1], 0.0, 0.0], _ZEROS, _ZEROS], shifts=_CODED), False),
}
"""By the names of both spaces: the numbers, and whether channels are taken in the opposite order,
since the order of sums is that of red, green and blue.
"""

_IN_OPENCV = {
    ("RGB", "BGR"): "COLOR_RGB2BGR",
    ("BGR", "RGB"): "COLOR_RGB2BGR",
    ("RGB", "GRAY"): "COLOR_RGB2GRAY",
    ("BGR", "GRAY"): "COLOR_BGR2GRAY",
    ("GRAY", "RGB"): "COLOR_GRAY2RGB",
    ("GRAY", "BGR"): "COLOR_GRAY2RGB",
}
"""Conversions for which OpenCV has the same bytes sooner: up to ten times where bytes only move."""


@cache
def _in_opencv(pair: tuple[str, str]) -> tuple[Callable[..., Any], int] | None:
    """OpenCV's function for a conversion, and its number there; `None` if it has none."""
    name = _IN_OPENCV.get(pair)
    return None if name is None else (cv2().cvtColor, getattr(cv2(), name))


def convert_pixels(source: np.ndarray, pair: tuple[str, str], out: np.ndarray) -> None:
    """Convert pixels from one colour space to another.

    `source`: uint8 ``(..., H, W, C)``, of any strides.
    """
    found = _in_opencv(pair)
    if found is not None and source.flags.c_contiguous and source.size:
        if source.ndim != 3:
            source, out = (a.reshape(-1, *a.shape[-2:]) for a in (source, out))
        convert, code = found
        convert(source, code, out)
        return
    numbers, reverses = CONVERSIONS[pair]
    transform_pixels(source, numbers, out, reverses=reverses)
