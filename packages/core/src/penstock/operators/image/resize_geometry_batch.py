"""Output sizes and source regions for whole batches: `resize_geometry`, compiled.

The numbers are those of the functions for one sample, to the last bit.
"""

from __future__ import annotations

import math

import numpy as np

from penstock.kernels.gpu.compiled import compiled
from penstock.kernels.gpu.resample_axes import AXIS
from penstock.operators.image.one_by_one import OneByOneError
from penstock.operators.image.resize_geometry import (
    MAX_EXTENT,
    MODES,
    SMALLEST_OUTPUT,
    SMALLEST_REGION,
)

_NOTHING = np.empty((0, 0), np.float64)
_MODE = {mode: number for number, mode in enumerate(MODES)}


def batch_geometry(
    in_size: np.ndarray,
    size: np.ndarray,
    mode: str = "default",
    max_size: tuple[float, ...] | None = None,
    roi: tuple[np.ndarray, np.ndarray] | None = None,
    subpixel_scale: bool = True,
    filters: tuple[np.ndarray, np.ndarray] | None = None,
) -> np.ndarray:
    """How the axes of all samples are resampled, all pixels of them.

    Parameters
    ----------
    in_size
        Extents in pixels, int64 ``(axes, samples)``, outermost axis first.
    size, roi
        As of `resize_geometry`, float64 ``(axes, samples)``.
    mode, max_size, subpixel_scale
        As of `resize_geometry`.
    filters
        For axes that shrink, and for others, int64 ``(samples,)``.

    Returns
    -------
    numpy.ndarray
        `AXIS` ``(axes, samples)``.

    Raises
    ------
    OneByOneError
        If a number is not finite, or an output too large: `resize_geometry` says which.

    Notes
    -----
    What all samples have in common may have one column instead of one a sample. If everything has,
    there is one column of axes.
    """
    starts, ends = (_NOTHING, _NOTHING) if roi is None else roi
    shrinking, enlarging = (_ANY, _ANY) if filters is None else filters
    count = max(in_size.shape[1], size.shape[1], starts.shape[1], ends.shape[1])
    count = max(count, len(shrinking), len(enlarging))
    if not in_size.shape[1]:
        count = 0
    limits = np.zeros(len(in_size))
    if max_size is not None:
        limits[:] = max_size
    axes = np.empty((len(in_size), count), AXIS)
    good = _resize(
        axes,
        in_size,
        size,
        _MODE[mode],
        limits,
        starts,
        ends,
        subpixel_scale,
        shrinking,
        enlarging,
        MAX_EXTENT,
        SMALLEST_OUTPUT,
        SMALLEST_REGION,
    )
    if not good:
        raise OneByOneError
    return axes


_ANY = np.zeros(1, np.int64)


@compiled
def _single(value: float) -> float:
    """The nearest float32."""
    return np.float64(np.float32(value))


@compiled
def _resize(
    axes: np.ndarray,
    in_size: np.ndarray,
    size: np.ndarray,
    mode: int,
    max_size: np.ndarray,
    starts: np.ndarray,
    ends: np.ndarray,
    subpixel_scale: bool,
    shrinking: np.ndarray,
    enlarging: np.ndarray,
    max_extent: int,
    smallest_output: float,
    smallest_region: float,
) -> bool:
    """Fill `axes`; whether all samples could be done, without the error that one of them has."""
    rank = axes.shape[0]
    low, high, extents = np.empty(rank), np.empty(rank), np.empty(rank)
    wanted, limits, sizes = np.empty(rank), np.empty(rank), np.empty(rank)
    for k in range(rank):
        limits[k] = _single(max_size[k])
        if not math.isfinite(limits[k]):
            return False
    for i in range(axes.shape[1]):
        for k in range(rank):
            length = in_size[k, i if in_size.shape[1] > 1 else 0]
            wish = _single(size[k, i if size.shape[1] > 1 else 0]) + 0.0
            if not math.isfinite(wish):
                return False
            low[k], high[k] = 0.0, np.float64(length)
            if starts.size:
                start = _single(starts[k, i if starts.shape[1] > 1 else 0])
                end = _single(ends[k, i if ends.shape[1] > 1 else 0])
                if not (math.isfinite(start) and math.isfinite(end)):
                    return False
                if start > end:
                    wish = -wish
                low[k], high[k] = min(start, end), max(start, end)
                if high[k] - low[k] < smallest_region:
                    middle = 0.5 * (low[k] + high[k])
                    low[k] = _single(middle - 0.5 * smallest_region)
                    high[k] = _single(middle + 0.5 * smallest_region)
            sizes[k] = wish
            extents[k] = _single(high[k] - low[k])
        if not _output_extents(sizes, extents, mode, limits, wanted):
            return False
        for k in range(rank):
            target = _single(wanted[k])
            exact = abs(target)
            if not exact <= max_extent:
                return False
            out = max(1, math.floor(exact + 0.5))
            start, end = low[k], high[k]
            if target < 0:
                start, end = end, start
            if subpixel_scale and exact != out:
                centre = 0.5 * (start + end)
                stretch = out / max(exact, smallest_output)
                start = _single(centre + (start - centre) * stretch)
                end = _single(centre + (end - centre) * stretch)
                if not (math.isfinite(start) and math.isfinite(end)):
                    return False
            axis = axes[k, i]
            axis.in_size = in_size[k, i if in_size.shape[1] > 1 else 0]
            axis.out_size = out if axis.in_size > 0 else 0
            axis.start, axis.end = start, end
            # The extent is rounded to single precision, so that equal extents count as equal.
            if _single(abs(end - start)) > axis.out_size:
                axis.filter = shrinking[i if len(shrinking) > 1 else 0]
            else:
                axis.filter = enlarging[i if len(enlarging) > 1 else 0]
            axis.begin = 0
            axis.length = axis.out_size
            axis.step = 1
    return True


@compiled
def _output_extents(
    size: np.ndarray, extents: np.ndarray, mode: int, limits: np.ndarray, wanted: np.ndarray
) -> bool:
    """Unrounded output extents, negative where flipped; false if a scale has no float32."""
    rank = len(size)
    given, product = 0, 1.0
    smallest, largest = math.inf, 0.0
    for k in range(rank):
        wanted[k] = extents[k]
        if size[k] != 0 and extents[k] != 0:
            scale = _single(abs(size[k]) / extents[k])
            if not math.isfinite(scale):
                return False
            given += 1
            product *= scale
            smallest, largest = min(smallest, scale), max(largest, scale)
    if not given:
        return True
    if mode < _NOT_LARGER:
        missing = 1.0
        if mode == _DEFAULT:
            missing = product if given == 1 else _single(product ** (1 / given))
        for k in range(rank):
            wanted[k] = size[k] if size[k] != 0 and extents[k] != 0 else extents[k] * missing
            if limits[k] > 0:
                wanted[k] = math.copysign(min(abs(wanted[k]), limits[k]), wanted[k])
        return True
    scale = smallest if mode == _NOT_LARGER else largest
    for k in range(rank):
        if limits[k] > 0 and extents[k] > 0:
            most = _single(limits[k] / extents[k])
            if not math.isfinite(most):
                return False
            scale = min(scale, most)
    for k in range(rank):
        # An axis that decides the scale keeps its size exactly: no rounding there and back.
        if size[k] != 0 and extents[k] != 0 and _single(abs(size[k]) / extents[k]) == scale:
            wanted[k] = size[k]
        else:
            wanted[k] = math.copysign(extents[k] * scale, size[k])
    return True


_DEFAULT, _NOT_LARGER = _MODE["default"], _MODE["not_larger"]
assert tuple(_MODE) == ("default", "stretch", "not_larger", "not_smaller")
