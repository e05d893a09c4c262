"""Output sizes and source regions of resized batches, worked out on the host."""

from __future__ import annotations

import math

import numpy as np

from penstock.kernels.plan.compiled import compiled

_DEFAULT, _NOT_LARGER = 0, 2


@compiled
def _single(value: float) -> float:
    """The nearest float32."""
    return np.float64(np.float32(value))


@compiled
def resize_axes(
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
    """Find out how the axes of all samples are resampled, all pixels of them.

    Parameters
    ----------
    axes
        What to fill: `AXIS` ``(axes, samples)``, outermost axis first.
    in_size
        Extents in pixels, int64 ``(axes, samples)``, or ``(axes, 1)`` if they are the same.
    size, starts, ends
        Wanted extents, and region of the source, in pixels, float64; shaped likewise. Where
        regions are the whole axes, `starts` and `ends` have no elements.
    mode
        0: axes without a size get the mean scale of the others; 1: they keep theirs; 2 and 3: all
        axes get the same scale, the smallest, or the largest.
    max_size
        Largest extents, float64 ``(axes,)``; 0 for no limit.
    subpixel_scale
        Whether regions stretch as much as rounding stretches the output.
    shrinking, enlarging
        Filters for axes that shrink and for others, int64 ``(samples,)`` or ``(1,)``.
    max_extent, smallest_output, smallest_region
        Limits in pixels.

    Returns
    -------
    bool
        Whether all samples could be done, without the error that one of them has.
    """
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
