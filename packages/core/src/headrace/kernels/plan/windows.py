"""Windows of several samples at once: at relative positions, or between coordinates."""

from __future__ import annotations

import math

import numpy as np

from headrace.kernels.plan.compiled import compiled

BEGINS = {"": 0, "start": 1, "rel_start": 2}
"""Ways to give the start of a window, with their numbers for `slice_spans`."""
ENDS = {"": 0, "end": 1, "rel_end": 2, "shape": 3, "rel_shape": 4}
"""Ways to give its end."""


@compiled
def cut_windows(
    extents: np.ndarray,
    axes: np.ndarray,
    sizes: np.ndarray,
    places: np.ndarray,
    truncates: bool,
    anchors: np.ndarray,
    shapes: np.ndarray,
    wrong: np.ndarray,
) -> None:
    """Anchors and shapes of windows of given sizes at relative positions.

    `extents`: of the samples, int64 ``(samples, ndim)``. `axes`: the axes that are cut, int64
    ``(n,)``. `sizes`, `places`: extents of the windows along these, int64, and where between 0 and
    1 they lie, float64: ``(n, samples)``, or ``(n, 1)`` if they are the same. `wrong`: set where a
    sample has a position that is none, ``(samples,)``.
    """
    for i in range(len(extents)):
        for axis in range(extents.shape[1]):
            anchors[i, axis] = 0
            shapes[i, axis] = extents[i, axis]
        for k in range(len(axes)):
            axis = axes[k]
            size = sizes[k, i if sizes.shape[1] > 1 else 0]
            place = places[k, i if places.shape[1] > 1 else 0]
            bad, anchors[i, axis], shapes[i, axis] = cut_window(
                extents[i, axis], size, place, truncates
            )
            wrong[i] |= bad


@compiled
def cut_window(extent: int, size: int, place: float, truncates: bool) -> tuple[bool, int, int]:
    """The window along one axis: True if its position is none, where it begins, and its extent."""
    if size <= 0:
        return False, 0, extent
    if not (0.0 <= place <= 1.0):
        return True, 0, extent
    start = place * (extent - size)
    return False, int(start) if truncates else _rounded(start, math.inf), size


@compiled
def leaves(
    anchors: np.ndarray, shapes: np.ndarray, extents: np.ndarray, outside: np.ndarray
) -> bool:
    """True if any window leaves its sample; the samples with such windows go to `outside`,
    ``(samples,)``.
    """
    some = False
    for i in range(len(anchors)):
        outside[i] = False
        for axis in range(anchors.shape[1]):
            if anchors[i, axis] < 0 or anchors[i, axis] + shapes[i, axis] > extents[i, axis]:
                outside[i] = some = True
    return some


@compiled
def slice_spans(
    extents: np.ndarray,
    axes: np.ndarray,
    begin: int,
    begins: np.ndarray,
    fractional_begins: np.ndarray,
    end: int,
    ends: np.ndarray,
    fractional_ends: np.ndarray,
    farthest: int,
    anchors: np.ndarray,
    shapes: np.ndarray,
    wrong: np.ndarray,
) -> bool:
    """Anchors and shapes of windows between coordinates along some axes.

    `extents`: of the samples, int64 ``(samples, ndim)``. `axes`: the axes that are cut, int64
    ``(n,)``. `begins`, `ends`: coordinates in elements, int64 ``(samples, n)``, or ``(1, n)`` if
    they are the same. `fractional_begins`, `fractional_ends`: the same as fractions of the extents,
    float64. `farthest`: where coordinates are cut off, so that sums of two are no larger than int64
    can be. `wrong`: filled: which samples have no valid window, ``(samples,)``.
    """
    none = False
    for i in range(len(extents)):
        wrong[i] = False
        for axis in range(extents.shape[1]):
            anchors[i, axis] = 0
            shapes[i, axis] = extents[i, axis]
        for k in range(len(axes)):
            axis = axes[k]
            first, given_first, last, given_last = 0, 0.0, 0, 0.0
            if begin == 1:
                first = begins[i if len(begins) > 1 else 0, k]
            elif begin == 2:
                given_first = fractional_begins[i if len(fractional_begins) > 1 else 0, k]
            if end == 1 or end == 3:
                last = ends[i if len(ends) > 1 else 0, k]
            elif end == 2 or end == 4:
                given_last = fractional_ends[i if len(fractional_ends) > 1 else 0, k]
            bad, anchor, shape = slice_span(
                extents[i, axis], begin, first, given_first, end, last, given_last, farthest
            )
            wrong[i] |= bad
            if shape >= 0:
                anchors[i, axis], shapes[i, axis] = anchor, shape
        none |= wrong[i]
    return none


@compiled
def slice_span(
    extent: int,
    begin: int,
    first: int,
    given_first: float,
    end: int,
    value: int,
    fraction: float,
    farthest: int,
) -> tuple[bool, int, int]:
    """The window along one axis: True if it is wrong, where it begins, and its extent, -1 for none.

    Its coordinates are integers or fractions, as `begin` and `end` say; see `slice_spans`.
    """
    limit = float(farthest)
    wrong = False
    # A coordinate is an integer or, if `is_real`, a floating point number.
    real_first = float(np.float32(given_first * extent)) if begin == 2 else 0.0
    last, real_last, last_is_real = extent, 0.0, False
    if end == 1:
        last = value
    elif end == 3:
        wrong = value < 0
        last, last_is_real = first + value, begin == 2
        real_last = real_first + float(value)
    elif end == 2:
        real_last, last_is_real = float(np.float32(fraction * extent)), True
    elif end == 4:
        last_is_real = True
        wrong = not (fraction >= 0)
        if begin == 2:
            real_last = (given_first + fraction) * extent
        else:
            real_last = float(first) + float(np.float32(fraction * extent))
    if begin == 2:
        if not math.isfinite(real_first):
            return True, 0, -1
        behind = real_last if last_is_real else float(last)
        # The start was rounded: an end that is the same number would lie before it.
        wrong |= not (float(np.float32(behind)) >= real_first)
        first = _rounded(real_first, limit)
    elif last_is_real:
        wrong |= not (real_last >= float(first))
    else:
        wrong |= last < first
    if last_is_real:
        if not math.isfinite(real_last):
            return True, 0, -1
        last = _rounded(real_last, limit)
    first = min(max(first, -farthest), farthest)
    return wrong, first, max(min(max(last, -farthest), farthest) - first, 0)


@compiled
def _rounded(value: float, limit: float) -> int:
    """The nearest integer, halves away from zero; what is huge is cut off."""
    value = min(max(value, -limit), limit)
    whole = int(value)
    rest = value - whole
    if rest >= 0.5:
        whole += 1
    elif rest <= -0.5:
        whole -= 1
    return whole
