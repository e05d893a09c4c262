"""Windows of signals that reach beyond them."""

from __future__ import annotations

import numba
import numpy as np

from headrace.kernels.compilation import njit
from headrace.kernels.cpu.pointers import elements


@njit(nogil=True)
def pad_signals(
    addresses: np.ndarray,
    sizes: np.ndarray,
    anchors: np.ndarray,
    out: np.ndarray,
    begins: np.ndarray,
    lengths: np.ndarray,
    fill: np.ndarray,
) -> None:
    """Fill `out` with windows of signals, and with ``fill[0]`` outside of these.

    `addresses`, `sizes`: uint64 and int64 ``(signals,)``: where each is in memory, and how long it
    is. `out`, `begins`, `lengths`: the windows: flat, the element of it with which each begins, and
    how long it is.
    """
    for k in range(len(addresses)):
        source = numba.carray(elements(addresses[k], out), sizes[k])
        anchor, begin, length = anchors[k], begins[k], lengths[k]
        first = min(max(-anchor, 0), length)
        last = max(min(sizes[k] - anchor, length), first)
        out[begin : begin + first] = fill[0]
        out[begin + first : begin + last] = source[anchor + first : anchor + last]
        out[begin + last : begin + length] = fill[0]
