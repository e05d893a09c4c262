"""Numbers of brightness and contrast, for several samples."""

from __future__ import annotations

import numpy as np

from headrace.kernels.plan.compiled import compiled

_ZERO, _ONE = np.float32(0), np.float32(1)


@compiled
def scales_and_offsets(
    numbers: np.ndarray, shift_unit: float, keeps: bool, table: np.ndarray
) -> None:
    """Factors of elements, and offsets added then.

    `numbers`: brightness, its shift, contrast and its centre, float32 ``(samples, 4)``. `table`:
    what to fill, float32 ``(samples, 3)``: factor, summand, and 1 where the sample stays what it
    is, else 0.
    """
    for i in range(len(table)):
        by, added, factor, middle = numbers[i, 0], numbers[i, 1], numbers[i, 2], numbers[i, 3]
        # One product and one sum for each element, as DALI does it: rounding follows.
        table[i, 0] = by * factor
        in_units = np.float32(np.float64(added) * shift_unit)
        table[i, 1] = in_units + by * (middle - factor * middle)
        table[i, 2] = _ZERO
        if keeps and by == _ONE and factor == _ONE and added == _ZERO:
            table[i, 2] = _ONE
            # A negative zero, as a sum with it changes no number; one with 0 changes that of -0.
            table[i, 1] = -_ZERO
