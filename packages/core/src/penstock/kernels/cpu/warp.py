"""Affine warps of images and volumes: every output element looks up where it comes from.

The centre of an output element, mapped by the matrix, is a point of the input, whose elements'
centres lie at halves. Coordinates are float32 and are advanced along a row by adding the matrix's
first column, starting afresh from a multiple of it every 256 elements. That is DALI's arithmetic
to the last bit: positions that are only equal within rounding would move several thousandths of all
8-bit values of a noisy image by one level.
"""

from __future__ import annotations

import numpy as np

from penstock.kernels.cpu import warp_image, warp_rgb, warp_volume
from penstock.kernels.cpu.cast import converter
from penstock.kernels.cpu.rows import read_only

_CACHE_LINE_BYTES = 64
_FITS_INTO_CACHE_BYTES = 1 << 20


def warp(
    source: np.ndarray,
    out: np.ndarray,
    matrix: np.ndarray,
    *,
    nearest: bool,
    fill: float | None,
) -> None:
    """Fill `out` with `source` seen through an affine map.

    Parameters
    ----------
    source
        ``(H, W, C)`` or ``(D, H, W, C)``, of type uint8, int16, int32 or float32; any strides.
    out
        Contiguous, same rank and channels, of the same type or float32, or of any of the types
        if `source` is float32.
    matrix
        float32 ``(2, 3)`` or ``(3, 4)``; maps (x, y[, z], 1) of the output to the input, in
        elements.
    nearest
        Take the nearest element instead of interpolating between 4 (8) neighbours.
    fill
        Value of everything outside of the input, in the units of `out`; `None` repeats the
        border, for which `source` must not be empty.
    """
    if out.size == 0:
        return
    if source.size == 0:
        out[...] = saturated_number(fill or 0.0, out.dtype)
        return
    _bring_near(source)
    if nearest:
        _nearest(source, out, matrix, fill)
    else:
        _linear(source, out, matrix, fill)


def _bring_near(source: np.ndarray) -> None:
    """Read every cache line of an image once, in order.

    A turned image is read across its rows, which no processor foresees: what lies in memory costs
    twice what lies in the cache. In order, memory is read ten times as fast.
    """
    if source.flags.c_contiguous and source.nbytes <= _FITS_INTO_CACHE_BYTES:
        np.bitwise_or.reduce(source.reshape(-1).view(np.uint8)[::_CACHE_LINE_BYTES])


def _linear(source: np.ndarray, out: np.ndarray, matrix: np.ndarray, fill: float | None) -> None:
    source = read_only(np.ascontiguousarray(source))
    # Neighbours outside of the image have the fill value, which first takes the type of the
    # output and then that of the input.
    outside = np.float32(0)
    if fill is not None:
        outside = np.float32(saturated_number(saturated_number(fill, out.dtype), source.dtype))
    if source.ndim == 4:
        linear = warp_volume.linear

        linear(source, out, matrix, fill is None, outside)
        return
    height, width, channels = source.shape
    if (
        channels == 3
        and source.dtype == out.dtype == np.uint8
        and min(height, width) >= 2
        and max(height, width) <= 2**24
        and source.size >= 16
        and source.size < 2**31
    ):
        linear_rgb = warp_rgb.linear_rgb

        linear_rgb(source, out, matrix, fill is None, outside)
        return
    linear_image = warp_image.linear

    linear_image(source, out, matrix, fill is None, outside)


def _nearest(source: np.ndarray, out: np.ndarray, matrix: np.ndarray, fill: float | None) -> None:
    if source.dtype == out.dtype:
        source = np.ascontiguousarray(source)
    else:
        converted = np.empty(source.shape, out.dtype)
        converter(source.dtype, out.dtype)(source, converted)
        source = converted
    outside = np.empty(1, out.dtype)
    outside[0] = saturated_number(fill or 0.0, out.dtype)
    if source.dtype == np.float32:
        # Elements are only moved: one compiled loop an element size is enough.
        source, out, outside = (array.view(np.int32) for array in (source, out, outside))
    if source.ndim == 4:
        nearest = warp_volume.nearest

        nearest(read_only(source), out, matrix, fill is None, outside)
        return
    nearest_image = warp_image.nearest

    nearest_image(read_only(source), out, matrix, fill is None, outside)


def saturated_number(value: float, dtype: np.dtype) -> float:
    """`value` as an element of type `dtype` has it."""
    single = float(np.float32(value))
    if dtype.kind == "f":
        return single
    if single != single:
        return 0.0
    info = np.iinfo(dtype)
    limited = min(max(single, float(info.min)), float(info.max))
    return float(np.trunc(limited + np.copysign(float(np.nextafter(0.5, 0)), limited)))
