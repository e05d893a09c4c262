"""Packing of sequences into rows of one length: best fit, longest first."""

from __future__ import annotations

import numpy as np

from headrace.kernels.compilation import njit


@njit(nogil=True)
def best_fit(sizes: np.ndarray, order: np.ndarray, length: int, rows: np.ndarray) -> int:
    """Put each of `sizes`, int64 and none above `length`, into the fullest row that it fits into.

    They are taken in this `order`; `rows`, int64, is set to the row of each. Return the number of
    rows. Rows of equal room are taken the other way round: the last one first.
    """
    first = np.full(length + 1, -1)  # of the rows with so much room
    after = np.empty(len(sizes), np.int64)  # a row with as much room, or -1
    some = np.zeros((length >> 6) + 1, np.uint64)  # a bit for each room that there is
    one = np.uint64(1)
    count = 0
    for k in order:
        size = sizes[k]
        word = size >> 6
        bits = some[word] & (~np.uint64(0) << np.uint64(size & 63))
        while not bits and word < length >> 6:
            word += 1
            bits = some[word]
        if bits:
            low = np.int64(0)
            while not (bits >> np.uint64(low)) & one:
                low += 1
            room = (word << 6) + low
            row = first[room]
            first[room] = after[row]
            if after[row] < 0:
                some[word] &= ~(one << np.uint64(low))
        else:
            row, room = count, length
            count += 1
        rows[k] = row
        room -= size
        after[row] = first[room]
        first[room] = row
        some[room >> 6] |= one << np.uint64(room & 63)
    return count
