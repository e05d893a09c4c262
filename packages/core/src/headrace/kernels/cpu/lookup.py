"""Numbers replaced by the values that a table has for them."""

from __future__ import annotations

import numpy as np

from headrace.kernels.compilation import njit
from headrace.kernels.cpu.rows import as_rows

UNSIGNED = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}


def look_up(source: np.ndarray, table: np.ndarray, out: np.ndarray) -> None:
    """Fill `out` with what `table` has for `source`."""
    flat, rows, width, stride = as_rows(source.view(UNSIGNED[source.itemsize]))
    bits = UNSIGNED[table.itemsize]
    _look_up(flat, table.view(bits), out.view(bits).reshape(-1), rows, width, stride)


@njit(nogil=True)
def _look_up(
    source: np.ndarray, table: np.ndarray, out: np.ndarray, rows: int, width: int, stride: int
) -> None:
    last, bounded = np.uint64(len(table) - 1), source.itemsize <= 2
    for row in range(rows):
        taken = source[row * stride : row * stride + width]
        given = out[row * width : (row + 1) * width]
        for i in range(width):
            entry = np.uint64(taken[i])
            given[i] = table[entry if bounded else min(entry, last)]
