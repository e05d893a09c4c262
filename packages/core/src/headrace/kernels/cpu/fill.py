"""Values for what lies outside of the data."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def fill_of_type(values: Sequence[float], dtype: np.dtype) -> np.ndarray:
    """Fill values as elements of `dtype`.

    Integers are converted as C converts them: fractions are dropped, and what does not fit keeps
    its lowest bits.
    """
    single = np.array(values, np.float32)
    if dtype.kind not in "iu":
        with np.errstate(over="ignore"):
            return single.astype(dtype)
    with np.errstate(invalid="ignore"):
        return np.trunc(single).astype(np.int64).astype(dtype)
