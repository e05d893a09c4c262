"""Numbers that instructions are given: constants, or one for each sample.

Four words tell where a number is: the column of its address, or -1 for a constant; the column of
the extent of a vector, or -1 where there is one number; the number's type, of `CODES`; and the
constant. See `headrace.kernels.cpu.step_loops`.
"""

from __future__ import annotations

import numba
import numpy as np

from headrace.kernels.compilation import njit
from headrace.kernels.cpu.pointers import pointer

PARTS = 4
"""Words of a number."""
CODES = {np.dtype(t): k for k, t in enumerate((np.float32, np.int32, np.uint8, np.bool_))}


@njit(nogil=True)
def number_of(
    words: np.ndarray, reals: np.ndarray, at: int, columns: np.ndarray, k: int
) -> tuple[bool, float]:
    """The number of sample `k` that the words from `at` on tell; False if it has not one."""
    column, extent, code = words[at], words[at + 1], words[at + 2]
    if column < 0:
        return True, reals[at + 3]
    if extent >= 0 and columns[extent, k] != 1:
        return False, 0.0
    address = pointer(np.uint64(columns[column, k]))
    if code == 0:
        return True, np.float64(numba.carray(address, 1, np.float32)[0])
    if code == 1:
        return True, np.float64(numba.carray(address, 1, np.int32)[0])
    return True, np.float64(numba.carray(address, 1, np.uint8)[0])
