"""Pixels of masks that lie between two values."""

from __future__ import annotations

import numba
import numpy as np

from headrace.kernels.compilation import njit
from headrace.kernels.cpu.pointers import elements


@njit(nogil=True)
def count_between(
    addresses: np.ndarray, sizes: np.ndarray, low: np.ndarray, high: np.ndarray
) -> np.ndarray:
    """Number of pixels of each mask that are from ``low[k]`` to ``high[k]``, int64.

    `addresses`, `sizes`: uint64 and int64 ``(samples,)``. Masks are of the type of `low` and
    `high`.
    """
    found = np.empty(len(addresses), np.int64)
    for k in range(len(addresses)):
        mask = numba.carray(elements(addresses[k], low), sizes[k])
        first, last, count = low[k], high[k], 0
        for pixel in mask:
            count += first <= pixel <= last
        found[k] = count
    return found


@njit(nogil=True)
def place_between(
    addresses: np.ndarray, sizes: np.ndarray, low: np.ndarray, high: np.ndarray, places: np.ndarray
) -> None:
    """Turn numbers among such pixels into numbers among all of a mask; those below 0 stay."""
    for k in range(len(addresses)):
        mask = numba.carray(elements(addresses[k], low), sizes[k])
        first, last, left, at = low[k], high[k], places[k], 0
        if left < 0:
            continue
        while True:
            left -= first <= mask[at] <= last
            if left < 0:
                break
            at += 1
        places[k] = at
