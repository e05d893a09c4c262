"""Resampling of the spatial axes of several samples: output sizes and source regions."""

from __future__ import annotations

import math

import numpy as np

from headrace.kernels.cpu.resample_taps import AXIS as AXIS
from headrace.kernels.cpu.resample_taps import Filter
from headrace.kernels.plan.compiled import compiled

SIZE, START, END, REGION, OUTPUT = 1, 2, 3, 4, 5
"""Faults of a sample: a number that is not finite, or an output that is too large."""

NEAREST, DOWN, UP = 0, 1, 2
"""Rounding of sizes to whole pixels; halves go up."""

_DEFAULT, _NOT_LARGER = 0, 2
_MAX_EXTENT = 1 << 30
_SMALLEST_OUTPUT = 0.1
_SMALLEST_REGION = 1e-3
_CUBIC = int(Filter.CUBIC)


@compiled
def _single(value: float) -> float:
    """The nearest float32: what DALI computes with, and halves of pixels depend on it."""
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
    alignment: np.ndarray,
    rounding: int,
    shrinking: np.ndarray,
    enlarging: np.ndarray,
    wrong: np.ndarray,
) -> bool:
    """Find out how the axes of all samples are resampled, all pixels of them.

    `axes`: what to fill: `AXIS` ``(axes, samples)``, outermost axis first. `in_size`: extents in
    pixels, int64 ``(axes, samples)``, or ``(axes, 1)`` if they are the same. `size`: wanted
    extents, float64, shaped likewise; 0 for an axis that follows from the others, negative to flip.
    `max_size`: largest extents, float64 ``(axes,)``, finite; 0 for no limit. `starts`, `ends`:
    region of the source, in pixels from its edges, float64, shaped like `size`. `alignment`: what
    of the region stays in place then, float64 shaped like `size`: 0 its start, 0.5 its centre, 1
    its end. `shrinking`, `enlarging`: filters for axes that shrink and for others, int64
    ``(samples,)`` or ``(1,)``. `wrong`: set where a sample cannot be done, float64 ``(2,)``: what
    is wrong (`SIZE`, ...), and the number in question.
    """
    rank = axes.shape[0]
    low, high, extents = np.empty(rank), np.empty(rank), np.empty(rank)
    wanted, sizes = np.empty(rank), np.empty(rank)
    for i in range(axes.shape[1]):
        for k in range(rank):
            length = in_size[k, i if in_size.shape[1] > 1 else 0]
            asked = size[k, i if size.shape[1] > 1 else 0]
            # Adding 0 drops the sign of a negative zero, which would flip an axis in some modes.
            wish = _single(asked) + 0.0
            if not math.isfinite(wish):
                wrong[0], wrong[1] = SIZE, asked
                return False
            low[k], high[k] = 0.0, np.float64(length)
            if starts.size:
                start = _single(starts[k, i if starts.shape[1] > 1 else 0])
                end = _single(ends[k, i if ends.shape[1] > 1 else 0])
                if not math.isfinite(start):
                    wrong[0], wrong[1] = START, starts[k, i if starts.shape[1] > 1 else 0]
                    return False
                if not math.isfinite(end):
                    wrong[0], wrong[1] = END, ends[k, i if ends.shape[1] > 1 else 0]
                    return False
                if start > end:
                    # A flipped region counts as a negative size, so that the two together cancel.
                    wish = -wish
                low[k], high[k] = min(start, end), max(start, end)
                if high[k] - low[k] < _SMALLEST_REGION:
                    middle = 0.5 * (low[k] + high[k])
                    low[k] = _single(middle - 0.5 * _SMALLEST_REGION)
                    high[k] = _single(middle + 0.5 * _SMALLEST_REGION)
            sizes[k] = wish
            extents[k] = _single(high[k] - low[k])
        _output_extents(sizes, extents, mode, max_size, wanted)
        for k in range(rank):
            target = _single(wanted[k])
            exact = abs(target)
            if not exact <= _MAX_EXTENT:
                wrong[0], wrong[1] = OUTPUT, exact
                return False
            if rounding == DOWN:
                out = max(1, math.floor(exact))
            elif rounding == UP:
                out = max(1, math.ceil(exact))
            else:
                out = max(1, math.floor(exact + 0.5))
            start, end = low[k], high[k]
            if target < 0:
                start, end = end, start
            if subpixel_scale and exact != out:
                align = alignment[k, i if alignment.shape[1] > 1 else 0]
                centre = (1.0 - align) * start + align * end
                stretch = out / max(exact, _SMALLEST_OUTPUT)
                start = _single(centre + (start - centre) * stretch)
                end = _single(centre + (end - centre) * stretch)
                if not math.isfinite(end - start):
                    wrong[0], wrong[1] = REGION, end - start
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
) -> None:
    """Unrounded output extents, negative where flipped; not finite where a scale is not."""
    rank = len(size)
    given, product = 0, 1.0
    smallest, largest = math.inf, 0.0
    for k in range(rank):
        wanted[k] = extents[k]
        if size[k] != 0 and extents[k] != 0:
            scale = _single(abs(size[k]) / extents[k])
            given += 1
            product *= scale
            smallest, largest = min(smallest, scale), max(largest, scale)
    if not given:
        return
    if mode < _NOT_LARGER:
        missing = 1.0
        if mode == _DEFAULT:
            missing = product if given == 1 else _single(product ** (1 / given))
        for k in range(rank):
            wanted[k] = size[k] if size[k] != 0 and extents[k] != 0 else extents[k] * missing
            if limits[k] > 0:
                wanted[k] = math.copysign(min(abs(wanted[k]), limits[k]), wanted[k])
        return
    scale = smallest if mode == _NOT_LARGER else largest
    for k in range(rank):
        if limits[k] > 0 and extents[k] > 0:
            scale = min(scale, _single(limits[k] / extents[k]))
    for k in range(rank):
        # An axis that decides the scale keeps its size exactly: no rounding there and back.
        if size[k] != 0 and extents[k] != 0 and _single(abs(size[k]) / extents[k]) == scale:
            wanted[k] = size[k]
        else:
            wanted[k] = math.copysign(extents[k] * scale, size[k])


@compiled
def find_copies(axes: np.ndarray, copies: np.ndarray) -> None:
    """Fill `copies`, ``(samples,)``: whether outputs of `axes`, ``(axes, samples)``, are copies."""
    for i in range(axes.shape[1]):
        copies[i] = True
        for k in range(axes.shape[0]):
            one = axes[k, i]
            if one.in_size != one.out_size or one.begin != 0 or one.length != one.out_size:
                copies[i] = False
            if one.start != 0 or one.end != one.in_size or one.filter > _CUBIC or one.step != 1:
                copies[i] = False
