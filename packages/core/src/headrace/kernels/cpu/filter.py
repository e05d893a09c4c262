"""Separable filters of images and volumes with symmetric windows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numba
import numpy as np
from numba.core import types

from headrace.kernels.compilation import njit
from headrace.kernels.cpu import filter_loops
from headrace.kernels.cpu.cast import converter
from headrace.kernels.cpu.locked_cache import locked_cache
from headrace.kernels.cpu.rows import as_rows

_ONE = np.ones(1, np.float32)
_SINGLE = np.dtype(np.float32)
_DIRECT = (np.dtype(np.uint8), _SINGLE)
"""Types that the compiled loop reads and writes by itself; others go by way of float32."""


Windows = tuple[tuple[np.ndarray, int], ...]
"""Windows as compiled loops take them, one pair a pass: the weights of two axes one after another,
and how many elements the first of them reaches to either side."""


def gaussian_window(sigma: float, size: int) -> np.ndarray:
    """Right half of a Gaussian window, centre first; the whole window adds up to 1.

    `sigma`: standard deviation in elements.
    """
    distance = np.arange(size // 2 + 1, dtype=np.float64)
    weights = np.exp(distance * distance / (-2.0 * sigma * sigma))
    weights /= 2 * weights.sum() - weights[0]
    return weights.astype(np.float32)


@lru_cache(maxsize=64)  # windows of random deviations, which do not come again, stay in the cache
def gaussian_windows(sigmas: tuple[float, ...], sizes: tuple[int, ...]) -> Windows:
    """A `gaussian_window` for each of one to three axes."""
    axes = list(zip(sigmas, sizes, strict=True))
    made = {axis: gaussian_window(*axis) for axis in set(axes)}
    return _joined([made[axis] for axis in axes])


def _joined(windows: Sequence[np.ndarray]) -> Windows:
    passes = [windows]
    if len(windows) == 1:
        passes = [(_ONE, windows[0])]
    elif len(windows) == 3:
        passes = [(windows[0], _ONE), windows[1:]]
    return tuple([(np.concatenate(each), each[0].size - 1) for each in passes])


class SeparableFilter:
    """Filters arrays of one shape along neighbouring axes, the border mirrored."""

    def __init__(
        self,
        shape: tuple[int, ...],
        first_axis: int,
        axes: int,
        source: np.dtype,
        out: np.dtype,
    ) -> None:
        self._read = self._write = self._deep = None
        if source not in _DIRECT:
            self._read, source = converter(source, _SINGLE), _SINGLE
        if out not in _DIRECT:
            self._write, out = converter(_SINGLE, out), _SINGLE
        last_axis = first_axis + axes
        outer, inner = math.prod(shape[:first_axis]), math.prod(shape[last_axis:])
        extents = shape[first_axis:last_axis]
        ndim = len(shape)
        if axes == 3:
            # Along the depth first: its planes are the rows of an image, their elements its
            # columns.
            width = extents[1] * extents[2] * inner
            self._deep = _Planes(ndim, outer, extents[0], width, width, source, _SINGLE)
            outer, extents, source = outer * extents[0], extents[1:], _SINGLE
        elif axes == 1:
            outer, extents = 1, (outer, extents[0])
        height, width = extents
        self._planes = _Planes(ndim, outer, height, width * inner, inner, source, out)

    def __call__(self, source: np.ndarray, out: np.ndarray, windows: Windows) -> None:
        """Fill a contiguous array.

        Sums are float32; integers are rounded, halves away from zero, and saturate.
        """
        if not out.size:
            return
        if self._read is not None:
            source = _converted(self._read, source)
        if self._deep is not None:
            deep = np.empty(source.shape, np.float32)
            self._deep(source, deep, *windows[0])
            source = deep
        if self._write is None:
            self._planes(source, out, *windows[-1])
            return
        target = np.empty(out.shape, np.float32)
        self._planes(source, target, *windows[-1])
        self._write(target, out)


separable_filter = lru_cache(maxsize=1024)(SeparableFilter)
"""A `SeparableFilter`, made once for arrays that are alike."""


def filter_separably(
    source: np.ndarray, out: np.ndarray, first_axis: int, windows: Sequence[np.ndarray]
) -> None:
    """Fill `out` with `source`, as a `SeparableFilter` does it.

    `windows` are weights for one to three axes in order: float32, the centre's first, then those at
    distance 1 and more.
    """
    axes = len(windows)
    filtered = separable_filter(source.shape, first_axis, axes, source.dtype, out.dtype)
    filtered(source, out, _joined(windows))


def _converted(convert: Any, source: np.ndarray) -> np.ndarray:
    single = np.empty(source.shape, np.float32)
    convert(source, single)
    return single


class _Planes:
    """Filters planes of one size along columns and rows of pixels."""

    def __init__(
        self,
        ndim: int,
        planes: int,
        height: int,
        width: int,
        channels: int,
        source: np.dtype,
        out: np.dtype,
    ) -> None:
        self._types = source, out
        self._loop = _compiled(source, out, ndim)
        self._rows, self._width = planes * height, width
        self._geometry = planes, height, width, channels

    def __call__(
        self, source: np.ndarray, out: np.ndarray, weights: np.ndarray, reach: int
    ) -> None:
        flags = source.flags
        if not flags.aligned:
            source = source.copy()
        elif not flags.c_contiguous:
            flat, rows, width, stride = as_rows(source)
            if width == self._width and rows == self._rows > 1:
                loop = _compiled(*self._types, 1)
                loop(flat, stride, *self._geometry, weights, reach, out.reshape(-1))
                return
            source = flat.reshape(out.shape) if rows == 1 else np.ascontiguousarray(source)
        self._loop(source, self._width, *self._geometry, weights, reach, out)


@locked_cache
def _compiled(source: np.dtype, out: np.dtype, ndim: int) -> Any:
    """The loop, compiled once for inputs that can be written to and for others."""
    long = types.int64
    signature = types.void(
        types.Array(numba.from_dtype(source), ndim, "C", readonly=True),
        *(long, long, long, long, long, types.float32[::1], long),
        types.Array(numba.from_dtype(out), ndim, "C"),
    )
    return njit(signature=signature, nogil=True, error_model="numpy")(filter_loops.filter_planes)
