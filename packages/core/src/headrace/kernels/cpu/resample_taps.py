"""Source pixels, and their weights, that make an output pixel along one axis.

Coordinates are continuous: pixel i covers [i, i + 1). Output pixel o of an axis whose region of the
source is [start, end) has its centre at ``start + (o + 0.5) * (end - start) / size``; a region with
start > end flips. Source pixels outside of the image count as its outermost ones.

Filters (all symmetric, weights normalised to a sum of 1) and their radius in source pixels, where s
is the reduction, ``max(1, abs(end - start) / size)`` with and 1 without antialiasing:

============  ======  ======================================================================
filter        radius  shape
============  ======  ======================================================================
nearest       -       the pixel under the centre
triangular    s       ``1 - abs(x)`` (linear interpolation where s is 1)
cubic         2 s     Keys' cubic convolution with a = -0.5, "Cubic Convolution Interpolation
                      for Digital Image Processing" (1981)
Lanczos       3 s     ``sinc(x) * sinc(x / 3)``
Gaussian      s       ``exp(-4 x^2)``, cut off at the radius
============  ======  ======================================================================

Filters are tabulated and interpolated linearly, and positions are single precision, because that
is what DALI does, and where a position hits a discontinuity (nearest neighbours when a size is
halved, the edge of the Gaussian) it decides which pixel is taken.
"""

from __future__ import annotations

import enum
import math
from functools import cache, lru_cache
from typing import NamedTuple

import numpy as np

from headrace.kernels.compilation import njit

_USUAL_SIZE, _USUAL_COUNT = 1024, 512
_ONE, _HALF = np.float32(1), np.float32(0.5)


class Filter(enum.IntEnum):
    """Interpolation between the pixels of the source."""

    NEAREST = 0
    TRIANGULAR = 1
    CUBIC = 2
    LANCZOS = 3
    GAUSSIAN = 4


class AxisSampling(NamedTuple):
    """Resampling of one axis."""

    in_size: int
    """Extent of the whole axis, pixels."""
    out_size: int
    """Extent of the whole output axis, pixels."""
    start: float
    """Start of the region in the source; a float32 value."""
    end: float
    """End of the region."""
    filter: int
    """A `Filter`."""
    antialias: bool
    stepwise: bool
    """Nearest neighbours only: positions are found by adding up steps, not by multiplication.

    DALI does so on every axis but the innermost; the difference in rounding shows where centres
    fall on pixel borders.
    """


class Taps(NamedTuple):
    """Source pixels and weights of consecutive output pixels of an axis."""

    first: np.ndarray
    """First source pixel of each output pixel, int64."""
    weights: np.ndarray
    """Weights of this and the following pixels, float32, one row an output pixel."""
    low: int
    """First source pixel needed by any."""
    high: int
    """End of the source pixels needed by any."""


AXIS = np.dtype(
    [
        ("in_size", np.int64),
        ("out_size", np.int64),
        ("start", np.float32),
        ("end", np.float32),
        ("filter", np.int64),
        ("begin", np.int64),
        ("length", np.int64),
        ("step", np.int64),
    ],
    align=True,
)
"""An axis of a sample: the first five fields are those of `AxisSampling`; wanted are `length`
pixels of the output, from number `begin` on, in steps of 1 or -1.
"""

PlannedAxis = tuple[int, int, float, float, int, int, int, int]
"""The same as Python's numbers."""


def planned_taps(
    axis: PlannedAxis,
    first: int,
    count: int,
    antialias: bool,
    *,
    stepwise: bool,
    mirror: bool = False,
) -> Taps:
    """Taps of `count` of the wanted pixels of an axis, from number `first` on.

    With `mirror`, they come in the opposite order. Those of the sizes that training has are
    remembered for every extent of an image's side.
    """
    usual = axis[0] <= _USUAL_SIZE and count <= _USUAL_COUNT
    find = _usual_taps if usual else _found_taps
    return find(axis, first, count, antialias, stepwise, mirror)


def _found_taps(
    axis: PlannedAxis, first: int, count: int, antialias: bool, stepwise: bool, mirror: bool
) -> Taps:
    in_size, out_size, start, end, kind, begin, _, step = axis
    begin += step * first
    if mirror:
        begin, step = begin + step * (count - 1), -step
    sampling = AxisSampling(in_size, out_size, start, end, kind, antialias, stepwise)
    return axis_taps(sampling, begin, count, step)


_usual_taps = lru_cache(maxsize=2048)(_found_taps)  # some 10 KB each


def axis_taps(sampling: AxisSampling, begin: int, count: int, step: int = 1) -> Taps:
    """Taps of output pixels ``begin, begin + step, ...``, `count` of them; `step` is 1 or -1.

    The taps of an output pixel do not depend on which others are asked for.
    """
    in_size, out_size, start, end, kind, antialias, stepwise = sampling
    if kind == Filter.NEAREST:
        first = np.empty(count, np.int64)
        nearest(in_size, out_size, start, end, stepwise, begin, step, first)
        weights = np.ones((count, 1), np.float32)
    else:
        table, half_width = filter_table(kind)
        gaussian = kind == Filter.GAUSSIAN
        support = math.ceil(width_of(half_width, gaussian, antialias, start, end, out_size))
        first = np.empty(count, np.int64)
        weights = np.empty((count, min(support, in_size)), np.float32)
        weigh(
            table,
            half_width,
            gaussian,
            antialias,
            in_size,
            out_size,
            start,
            end,
            begin,
            step,
            first,
            weights,
        )
    # Starts rise or fall steadily, so the ends of the range are at the ends.
    low, high = int(first[0]), int(first[-1])
    if low > high:
        low, high = high, low
    return Taps(first, weights, low, high + weights.shape[1])


@cache
def filter_table(kind: int) -> tuple[np.ndarray, np.float32]:
    """A filter sampled from one end of its support to the other, and its radius in pixels."""
    if kind == Filter.TRIANGULAR:
        values, radius = np.array([0.0, 1.0, 0.0]), 1
    elif kind == Filter.GAUSSIAN:
        x, radius = np.linspace(-1, 1, 65), 1
        values = np.exp(-4 * x * x)
    elif kind == Filter.CUBIC:
        x, radius = np.abs(np.linspace(-2, 2, 129)), 2
        values = np.where(
            x < 1,
            (1.5 * x - 2.5) * x * x + 1,
            ((-0.5 * x + 2.5) * x - 4) * x + 2,
        )
    else:
        x, radius = np.linspace(-3, 3, 193), 3
        values = np.sinc(x) * np.sinc(x / 3)
    return values.astype(np.float32), np.float32(radius)


@njit(nogil=True)
def nearest(
    in_size: int,
    out_size: int,
    start: float,
    end: float,
    stepwise: bool,
    begin: int,
    step: int,
    first: np.ndarray,
) -> None:
    """Fill `first` with the nearest pixels of the source."""
    origin = np.float32(start)
    scale = (np.float32(end) - origin) / np.float32(out_size)
    reached = origin + _HALF * scale
    at = 0
    for i in range(first.size):
        out = begin + i * step if step > 0 else begin - (first.size - 1 - i)
        if stepwise and out >= 0:
            while at < out:
                reached += scale
                at += 1
            position = reached
        else:
            position = (np.float32(out) + _HALF) * scale + origin
        pixel = min(max(math.floor(position), 0), in_size - 1)
        first[i if step > 0 else first.size - 1 - i] = pixel


@njit(nogil=True)
def width_of(
    half_width: np.float32,
    gaussian: bool,
    antialias: bool,
    start: float,
    end: float,
    out_size: int,
) -> np.float32:
    """Extent of a filter, source pixels."""
    radius = half_width
    if antialias:
        reduction = abs(np.float32(end) - np.float32(start)) / np.float32(out_size)
        radius = half_width * max(_ONE, reduction)
    if gaussian:
        # By way of its standard deviation, as the rounding of that counts.
        deviation = np.float32(np.float64(radius) * 0.5 / math.sqrt(2.0))
        return np.float32(4 * math.sqrt(2.0)) * deviation
    return np.float32(2) * radius


@njit(nogil=True)
def weigh(
    table: np.ndarray,
    half_width: np.float32,
    gaussian: bool,
    antialias: bool,
    in_size: int,
    out_size: int,
    start: float,
    end: float,
    begin: int,
    step: int,
    first: np.ndarray,
    weights: np.ndarray,
) -> None:
    """Fill `first` and `weights`; taps outside of the axis are added to its outermost pixels."""
    width = width_of(half_width, gaussian, antialias, start, end, out_size)
    support = math.ceil(width)
    units = np.float32(table.size - 1) / width
    anchor = np.float32(0.5 * (table.size - 1)) / units
    scale = (np.float32(end) - np.float32(start)) / np.float32(out_size)
    origin = np.float32(start) + ((_HALF * scale - _HALF) - anchor)
    taps = weights.shape[1]
    last = table.size - 1
    for i in range(first.size):
        position = np.float32(begin + i * step) * scale + origin
        leftmost = math.ceil(position)
        phase = np.float32(leftmost) - position
        low = min(max(leftmost, 0), in_size - taps)
        first[i] = low
        row = weights[i]
        row[:] = 0
        inside = leftmost == low and support == taps
        total = np.float32(0)
        for k in range(support):
            place = (phase + np.float32(k)) * units
            whole = int(place)
            if whole > last:
                break
            left = table[whole]
            right = table[whole + 1] if whole < last else np.float32(0)
            weight = left + (place - np.float32(whole)) * (right - left)
            total += weight
            if inside:
                row[k] = weight
            else:
                row[min(max(leftmost + k, 0), in_size - 1) - low] += weight
        for k in range(taps):
            row[k] /= total
