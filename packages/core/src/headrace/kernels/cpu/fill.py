"""Values for what lies outside of the data."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from headrace.types.constant import lowest_bits


def fill_of_type(values: Sequence[float] | np.ndarray, dtype: np.dtype) -> np.ndarray:
    """Fill values as elements of `dtype`; integers as by `lowest_bits`."""
    with np.errstate(over="ignore"):
        single = np.asarray(values, np.float64).astype(np.float32)
        return lowest_bits(single, dtype) if dtype.kind in "iu" else single.astype(dtype)
