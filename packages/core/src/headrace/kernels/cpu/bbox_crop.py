"""Windows that are drawn until boxes lie in them well enough."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.kernels.compilation import njit

LEFT, FOUND, WHOLE, EXHAUSTED = range(4)
"""Results of some attempts: more are left, a window was found, no crop was chosen, or there are no
more and the best window is given.
"""

# Extents are handled one by one: with assignments of slices, Numba takes twice as long to compile
# this.


@njit(nogil=True)
def _common(boxes: np.ndarray, b: int, low: np.ndarray, high: np.ndarray) -> Any:
    """The volumes of a box and of its part within a window."""
    ndim = len(low)
    common, own = np.float32(1), np.float32(1)
    for d in range(ndim):
        begin, end = boxes[b, d], boxes[b, ndim + d]
        own *= end - begin
        common *= max(min(end, high[d]) - max(begin, low[d]), np.float32(0))
    return own, common


@njit(nogil=True)
def _keep(
    boxes: np.ndarray, low: np.ndarray, high: np.ndarray, prune: float, kept: np.ndarray
) -> int:
    """Mark the boxes that stay with a window, by their middles, or their shares with `prune`."""
    ndim, count = len(low), 0
    for b in range(len(boxes)):
        inside = True
        if prune >= 0:
            own, common = _common(boxes, b, low, high)
            inside = common > 0 and common >= prune * own
        else:
            for d in range(ndim):
                middle = (boxes[b, d] + boxes[b, ndim + d]) * np.float32(0.5)
                inside = inside and low[d] <= middle <= high[d]
        kept[b] = inside
        count += inside
    return count


@njit(nogil=True)
def _largest(extents: np.ndarray) -> Any:
    """The largest of some extents."""
    found = extents[0]
    for extent in extents:
        found = max(found, extent)
    return found


@njit(nogil=True)
def _keep_in(
    boxes: np.ndarray,
    window: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
    prune: float,
    kept: np.ndarray,
) -> None:
    """`_keep` for a window of begins and extents, whose ends go to `low` and `high`."""
    ndim = len(low)
    for d in range(ndim):
        low[d] = window[d]
        high[d] = window[d] + window[ndim + d]
    _keep(boxes, low, high, prune, kept)


@njit(nogil=True)
def _shaped(window: np.ndarray, data: np.ndarray, aspects: np.ndarray, unit: float) -> bool:
    """Give a window, relative extents, the aspect ratios that are single values; return whether
    all of its ratios are allowed.

    Of two extents whose ratio is fixed, the one stays that is first in an order that `unit` draws;
    then all are scaled to have the largest extent that was drawn. All that is DALI's, to the bit.
    """
    ndim = len(window)
    order = np.empty(ndim, np.int64)
    for d in range(ndim):
        order[d] = d
    drawn = int(unit * ndim * (ndim - 1))
    other = drawn // 3 if ndim == 3 else drawn
    order[1], order[other] = order[other], order[1]
    if ndim == 3:
        other = drawn % 3
        order[2], order[other] = order[other], order[2]
    for d in range(ndim):
        window[d] *= data[d]
    largest = _largest(window)
    for k in range(ndim):
        for m in range(k + 1, ndim):
            one, other = order[k], order[m]
            low, high = aspects[one + other - 1]
            if low == high:
                window[other] = window[one] * (np.float32(1) / low if one < other else low)
    most = _largest(window)
    if most == 0:
        return False
    for d in range(ndim):
        window[d] = window[d] * largest / most
    allowed = True
    for one in range(ndim):
        for other in range(one + 1, ndim):
            low, high = aspects[one + other - 1]
            ratio = window[one] / window[other] if window[other] > 0 else np.float32(np.inf)
            allowed = allowed and low <= ratio <= high
    for d in range(ndim):
        window[d] /= data[d]
    return allowed


@njit(nogil=True)
def _draw_window(
    boxes: np.ndarray,
    units: np.ndarray,
    first: int,
    attempts: int,
    total: int,
    options: np.ndarray,
    state: np.ndarray,
    scaling: np.ndarray,
    aspects: np.ndarray,
    data: np.ndarray,
    crop: np.ndarray,
    overlap: bool,
    every: bool,
    prune: float,
    window: np.ndarray,
    kept: np.ndarray,
) -> int:
    """Try windows, `len(units) // (1 + 2 * ndim)` of them.

    `boxes`: float32 ``(boxes, 2 * ndim)``: where they begin, and where they end. `units`: float64
    ``(attempts * (1 + 2 * ndim),)``: numbers from 0 to 1. `state`: float32 ``(3 + 2 * ndim,)``: the
    option, the best window's metric, the window, and how many numbers were taken. `scaling`,
    `aspects`: ranges of extents, ``(2,)``, and of their ratios, ``(pairs, 2)``. `data`, `crop`:
    float32 ``(ndim,)``: extents of the data, and of the window, whose first is 0 where it is to be
    drawn.
    """
    ndim = len(data)
    low = np.empty(ndim, np.float32)
    high = np.empty(ndim, np.float32)
    size = np.empty(ndim, np.float32)
    numbers = 1 + 2 * ndim
    at = 0
    is_found = False
    attempted = len(units) // numbers
    for row in range(attempted + 1):
        chooses = (first + row) % attempts == 0
        if is_found and (row == attempted or chooses):
            _keep_in(boxes, window, low, high, prune, kept)
            return FOUND
        if row == attempted:
            break
        state[-1] = at
        if total >= 0 and first + row >= total and chooses:
            for d in range(2 * ndim):
                window[d] = state[2 + d]
            _keep_in(boxes, window, low, high, prune, kept)
            return EXHAUSTED
        if chooses:
            choice = min(int(units[at] * len(options)), len(options) - 1)
            state[0] = options[choice]
            at += 1
        if state[0] < 0:
            for d in range(ndim):
                window[d], window[ndim + d] = 0, 1
            for b in range(len(boxes)):
                kept[b] = True
            return WHOLE
        if crop[0] > 0:
            for d in range(ndim):
                gap = data[d] - crop[d]
                size[d] = crop[d] / data[d]
                if gap == 0:
                    low[d] = 0
                else:
                    low[d] = (min(gap, 0) + np.floor(units[at] * (abs(gap) + 1))) / data[d]
                    at += 1
            state[-1] = at
        else:
            for d in range(ndim):
                size[d] = scaling[0] + np.float32(units[at + d]) * (scaling[1] - scaling[0])
            at += ndim
            state[-1] = at
            # Without slack, ratios that rounding moves are drawn anew, as in DALI.
            if not _shaped(size, data, aspects, units[at]):
                continue
            for d in range(ndim):
                low[d] = units[at + d] * (1 - size[d])
            at += ndim
            state[-1] = at
        volume = np.float32(1)
        for d in range(ndim):
            high[d] = low[d] + size[d]
            volume *= size[d]
        least, most = np.float32(np.inf), np.float32(-1)
        for b in range(len(boxes)):
            own, common = _common(boxes, b, low, high)
            metric = common / own if overlap else common / (own + volume - common)
            least, most = min(least, metric), max(most, metric)
            if total < 0 and (not least >= state[0] if every else most >= state[0]):
                break  # the others change nothing, unless the best window is wanted
        metric = least if every else most
        if len(boxes) and not metric >= state[0]:
            good = False
        else:
            # In DALI, a window without a box also drops what was found before.
            is_found = good = _keep(boxes, low, high, prune, kept) > 0 or len(boxes) == 0
        if good:
            for d in range(ndim):
                window[d], window[ndim + d] = low[d], size[d]
        if metric > state[1]:
            state[1] = metric
            for d in range(ndim):
                state[2 + d], state[2 + ndim + d] = low[d], size[d]
    return LEFT


@njit(nogil=True)
def draw_windows(
    left: np.ndarray,
    boxes: np.ndarray,
    firsts: np.ndarray,
    units: np.ndarray,
    first: int,
    attempts: int,
    total: int,
    options: np.ndarray,
    states: np.ndarray,
    scaling: np.ndarray,
    aspects: np.ndarray,
    data: np.ndarray,
    crop: np.ndarray,
    overlap: bool,
    every: bool,
    prune: float,
    windows: np.ndarray,
    kept: np.ndarray,
    found: np.ndarray,
) -> None:
    """`_draw_window` for some samples; those of boxes are from row ``firsts[k]`` on.

    `left`: int64: the samples that have no window yet; `units` has a row for each of them.
    """
    for place in range(len(left)):
        k = left[place]
        begin, end = firsts[k], firsts[k + 1]
        found[k] = _draw_window(
            boxes[begin:end],
            units[place],
            first,
            attempts,
            total,
            options,
            states[k],
            scaling,
            aspects,
            data[k],
            crop[k],
            overlap,
            every,
            prune,
            windows[k],
            kept[begin:end],
        )
