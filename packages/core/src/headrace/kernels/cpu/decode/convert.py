"""Turn decoded pixels into the colour space and element type that the user asked for.

Element types are converted between their full ranges, DALI's rule for decoders: the largest value
of an integer type is 1.0, and signed types use their positive half.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from headrace.kernels.cpu.opencv import cv2

# ITU-R BT.601: luma and chroma of RGB in [0, 1], as fractions of the full range.
_YCBCR = np.array(
    [
        [0.25678824, 0.50412941, 0.09790588],
        [-0.14822290, -0.29099279, 0.43921569],
        [0.43921569, -0.36778831, -0.07142737],
    ],
    np.float32,
)
_LUMA = np.array([0.299, 0.587, 0.114], np.float32)
_YCBCR_BLACK = np.array([1 / 16, 1 / 2, 1 / 2], np.float32)


def largest(dtype: np.dtype) -> float:
    """Value of full intensity in `dtype`."""
    return 1.0 if dtype.kind == "f" else float(np.iinfo(dtype).max)


def rescale(pixels: np.ndarray, out: np.ndarray) -> None:
    """Convert `pixels` to the type of `out`, full range to full range, and store them there."""
    if pixels.dtype == out.dtype:
        np.copyto(out, pixels)
    elif pixels.dtype.kind == "f":
        _store(pixels * np.float32(largest(out.dtype)), out)
    elif out.dtype.kind == "f":
        np.multiply(pixels, np.float32(1 / largest(pixels.dtype)), out=out, dtype=np.float32)
    else:
        np.take(_table(pixels.dtype, out.dtype), pixels, out=out, mode="clip")


@cache
def _table(source: np.dtype, target: np.dtype) -> np.ndarray:
    """The value in `target` of every value of the integer type `source`."""
    full = int(largest(source))
    fraction = np.arange(full + 1).astype(np.float32) * np.float32(1 / full)
    table = np.empty(full + 1, target)
    _store(fraction * np.float32(largest(target)), table)
    return table


def _store(values: np.ndarray, out: np.ndarray) -> None:
    """Store float32 `values` in `out`, rounded half up and clipped if its type is integer."""
    if out.dtype.kind == "f":
        np.copyto(out, values)
        return
    limits = np.iinfo(out.dtype)
    # In float64, which holds every 32-bit integer and its halves.
    rounded = np.floor(values.astype(np.float64) + 0.5)
    np.copyto(out, np.clip(rounded, limits.min, limits.max), casting="unsafe")


def ycbcr_matrix(source: np.dtype, target: np.dtype) -> np.ndarray:
    """Matrix that converts RGB of type `source` to YCbCr of type `target`: float32 (3, 4), offsets
    last.
    """
    full = largest(target)
    matrix = np.empty((3, 4), np.float32)
    matrix[:, :3] = _YCBCR * np.float32(full / largest(source))
    matrix[:, 3] = _YCBCR_BLACK * np.float32(full + (target.kind != "f"))
    return matrix


def ycbcr(rgb: np.ndarray, out: np.ndarray) -> None:
    """Convert RGB `rgb`, HWC of any type, to YCbCr of the type of `out`.

    Luma is in [16, 235] and chroma in [16, 240] of 0...255, or in as large a part of another type.
    """
    values = cv2().transform(rgb.astype(np.float32), ycbcr_matrix(rgb.dtype, out.dtype))
    if out.dtype == np.uint8:
        cv2().convertScaleAbs(np.maximum(values, 0, out=values), dst=out)
    else:
        _store(values, out)


def gray(rgb: np.ndarray, out: np.ndarray) -> None:
    """Luma (ITU-R BT.601) of RGB pixels of any type, rounded to the nearest."""
    red, green, blue = (rgb[..., k].astype(np.float32) for k in range(3))
    luma = (_LUMA[0] * red + _LUMA[1] * green) + _LUMA[2] * blue
    _store(luma, out[..., 0])


def gray_of_inks(rgb: np.ndarray, out: np.ndarray) -> None:
    """Luma of the 8-bit RGB pixels of a CMYK image, rounded down: DALI's gray of such images."""
    weights = np.array([299, 587, 114], np.int32)
    np.copyto(out[..., 0], rgb.astype(np.int32) @ weights // 1000, casting="unsafe")
