"""Windows of signals, cut by instructions: see `headrace.kernels.cpu.step_loops`.

Words: columns of the address and extent of the signals and of the windows; column of the windows'
anchors; kind of the start, its value as an integer and as a fraction, column of the address of its
values, or -1, and column of their extents, or -1; the same of the end; largest coordinate; True if
windows may reach beyond signals; True if they are copied in any case; and the bits of the number
outside of signals. Elements have 32 bits.
"""

from __future__ import annotations

import numba
import numpy as np

from headrace.kernels.compilation import njit
from headrace.kernels.cpu.pointers import pointer
from headrace.kernels.cpu.step_loops import columns_at, floats, reals_at, words_at
from headrace.kernels.plan.windows import slice_span

_START, _END = 5, 10


@njit(nogil=True)
def _coordinate(
    words: np.ndarray, reals: np.ndarray, at: int, columns: np.ndarray, k: int
) -> tuple[bool, int, float]:
    """Coordinate of sample `k`: True if it is one number, and that as integer and fraction.

    `at` is the word that tells its kind.
    """
    if words[at + 3] < 0:
        return True, words[at + 1], reals[at + 2]
    if words[at + 4] >= 0 and columns[words[at + 4], k] != 1:
        return False, 0, 0.0
    address = np.uint64(columns[words[at + 3], k])
    if words[at] == 2 or words[at] == 4:
        return True, 0, np.float64(floats(address, 1)[0])
    return True, int(numba.carray(pointer(address), 1, np.int32)[0]), 0.0


def plan(words_address: int, table: int, count: int, _: int) -> int:
    """Find all windows; one that is none, or that leaves its signal but must not, is refused."""
    words, reals = words_at(words_address), reals_at(words_address)
    columns = columns_at(table, count)
    farthest, may_leave = words[15], words[16] != 0
    for k in range(count):
        extent = columns[words[1], k]
        is_start, first, first_fraction = _coordinate(words, reals, _START, columns, k)
        is_end, last, last_fraction = _coordinate(words, reals, _END, columns, k)
        first = min(max(first, -farthest), farthest)
        last = min(max(last, -farthest), farthest)
        begin, end = words[_START], words[_END]
        wrong, anchor, size = slice_span(
            extent, begin, first, first_fraction, end, last, last_fraction, farthest
        )
        if wrong or not (is_start and is_end):
            return 1
        if not may_leave and (anchor < 0 or anchor + size > extent):
            return 1
        columns[words[4], k] = anchor
        columns[words[3], k] = size
    return 0


def carry(words_address: int, table: int, count: int, k: int) -> int:
    """Cut a window: a view of the signal, unless it reaches beyond it or is to be copied."""
    words, columns = words_at(words_address), columns_at(table, count)
    extent, anchor, size = columns[words[1], k], columns[words[4], k], columns[words[3], k]
    inside = anchor >= 0 and anchor + size <= extent
    source = columns[words[0], k]
    if inside and words[17] == 0:
        columns[words[2], k] = source + 4 * anchor
        return 0
    signal = numba.carray(pointer(np.uint64(source)), extent, np.uint32)
    out = numba.carray(pointer(np.uint64(columns[words[2], k])), size, np.uint32)
    fill = np.uint32(words[18])
    first = min(max(-anchor, 0), size)
    last = max(min(extent - anchor, size), first)
    out[:first] = fill
    out[first:last] = signal[anchor + first : anchor + last]
    out[last:] = fill
    return 0
