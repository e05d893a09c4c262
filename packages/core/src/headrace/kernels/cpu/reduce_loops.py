"""The compiled loop of sums along rows."""

from __future__ import annotations

import numpy as np

from headrace.kernels.compilation import njit


@njit(nogil=True, fastmath={"reassoc", "contract"})
def sum_rows(rows: np.ndarray, squares: bool, out: np.ndarray) -> None:
    """Fill float64 ``(rows,)`` with sums of float32 ``(rows, elements)``, or of their squares."""
    for r in range(len(rows)):
        row, total = rows[r], 0.0
        if squares:
            for i in range(len(row)):
                total += np.float64(row[i]) * np.float64(row[i])
        else:
            for i in range(len(row)):
                total += np.float64(row[i])
        out[r] = total
