"""Affine warps of images and volumes: every output element looks up where it comes from.

The centre of an output element, mapped by the matrix, is a point of the input, whose elements'
centres lie at halves. Coordinates are float32 and are advanced along a row by adding the matrix's
first column, starting afresh from a multiple of it every 256 elements. That is DALI's arithmetic
to the last bit: positions that are only equal within rounding would move several thousandths of all
8-bit values of a noisy image by one level.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numba
import numpy as np
from numba.core import types

from headrace.kernels.compilation import njit
from headrace.kernels.cpu import warp_image, warp_rgb, warp_volume
from headrace.kernels.cpu.cast import converter
from headrace.kernels.cpu.locked_cache import locked_cache


class Warp:
    """Fills arrays with others of their rank, seen through affine maps.

    `source`: element type of what is seen: uint8, int16, int32 or float32. `out`: element type of
    what is filled: the same or float32, or any of them if `source` is float32.
    """

    def __init__(
        self, source: np.dtype, out: np.dtype, *, nearest: bool, fill: float | None
    ) -> None:
        self._fill = saturated_number(fill or 0.0, out)
        """Value of all elements if there is no input."""
        self._clamp = fill is None
        self._nearest = nearest
        self._convert = None if source == out or not nearest else converter(source, out)
        self._moved = nearest and out == np.float32
        """True if floats are moved as integers: one compiled loop an element size is enough."""
        self._outside: float
        if nearest:
            element = np.dtype(np.int32) if self._moved else out
            self._types = element, element
            self._outside = np.array([self._fill], out).view(element)[0].item()
        else:
            self._types = source, out
            # Neighbours outside of the image have the fill value, which first takes the type of
            # the output and then that of the input.
            self._outside = (
                0.0 if fill is None else saturated_number(saturated_number(fill, out), source)
            )
        self._may_be_rgb = not nearest and source == out == np.uint8

    def __call__(self, source: np.ndarray, out: np.ndarray, matrix: np.ndarray) -> None:
        """Fill an array.

        `source`: ``(H, W, C)`` or ``(D, H, W, C)``; any strides. `out`: contiguous, same rank and
        channels. `matrix`: contiguous float32 ``(2, 3)`` or ``(3, 4)``; maps (x, y[, z], 1) of the
        output to the input, in elements.
        """
        if not out.size:
            return
        if not source.size:
            out[...] = self._fill
            return
        if self._convert is not None:
            converted = np.empty(source.shape, out.dtype)
            self._convert(source, converted)
            source = converted
        else:
            flags = source.flags
            if not (flags.c_contiguous and flags.aligned):
                source = source.copy()
        if self._moved:
            source, out = source.view(np.int32), out.view(np.int32)
        if source.ndim == 4:
            loop = self._volumes
        elif self._may_be_rgb and warp_rgb.fits(*source.shape):
            loop = self._rgb_images
        else:
            loop = self._images
        loop(source, out, matrix, self._clamp, self._outside)

    @cached_property
    def _images(self) -> Any:
        loop = warp_image.nearest if self._nearest else warp_image.linear
        return _compiled(loop, 3, *self._types, self._nearest)

    @cached_property
    def _rgb_images(self) -> Any:
        return _compiled(warp_rgb.linear_rgb, 3, *self._types, False)

    @cached_property
    def _volumes(self) -> Any:
        loop = warp_volume.nearest if self._nearest else warp_volume.linear
        return _compiled(loop, 4, *self._types, self._nearest)


@locked_cache
def _compiled(
    loop: Callable[..., None], ndim: int, source: np.dtype, out: np.dtype, nearest: bool
) -> Any:
    """A loop, compiled once for inputs that can be written to and for others."""
    signature = types.void(
        types.Array(numba.from_dtype(source), ndim, "C", readonly=True),
        types.Array(numba.from_dtype(out), ndim, "C"),
        types.Array(types.float32, 2, "C", readonly=True),
        types.boolean,
        numba.from_dtype(out) if nearest else types.float32,
    )
    return njit(signature=signature, nogil=True, error_model="numpy")(loop)


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
