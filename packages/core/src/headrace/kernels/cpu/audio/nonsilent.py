"""Detection of the part of a signal that is not silent: its short-term power against a
threshold.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.kernels.compilation import njit


def nonsilent_region(
    source: np.ndarray, window: int, cutoff: float, reference: float | None, reset: int
) -> tuple[int, int]:
    """First sample and length of what is not silent; both 0 if all is silent.

    `source`: 1-D: integers or float32.
    """
    if not source.size:
        return 0, 0
    interval = max(source.size, window) if reset < 0 else reset
    zero: Any = np.float32(0)
    if source.dtype.kind != "f":
        exact = source.dtype.itemsize <= 2
        zero = np.int64(0) if exact else np.float64(0)
        interval = max(source.size, window) if exact else interval
    of_largest = reference is None
    limit = np.float32(cutoff) if of_largest else np.float32(reference * cutoff)  # type: ignore[operator]
    window = min(window, source.size)
    begin, end = _find(source, window, limit, of_largest, interval, zero)
    return begin, end - begin


@njit(nogil=True)
def _find(
    source: np.ndarray, window: int, limit: Any, of_largest: bool, interval: int, zero: Any
) -> tuple[int, int]:
    count = source.size - window + 1
    powers = np.empty(count, np.float32)
    largest = np.float32(0)
    begin = 0
    # Windows that end within one interval of the signal share a running sum.
    end = min(max(interval - window + 1, 1), count)
    while begin < count:
        total = zero
        for i in range(begin, begin + window):
            value = source[i] + zero
            total += value * value
        powers[begin] = np.float32(total) / np.float32(window)
        for i in range(begin + 1, end):
            old, new = source[i - 1] + zero, source[i + window - 1] + zero
            total -= old * old
            total += new * new
            powers[i] = np.float32(total) / np.float32(window)
        begin, end = end, min(end + interval, count)
    if of_largest:
        for i in range(count):
            largest = max(largest, powers[i])
        limit = largest * limit
    first = 0
    while first < count and not powers[first] >= limit:
        first += 1
    if first == count:
        return 0, 0
    last = count - 1
    while not powers[last] >= limit:
        last -= 1
    return first, last + window
