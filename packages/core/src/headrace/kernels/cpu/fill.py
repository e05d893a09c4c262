"""Values for what lies outside of the data."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from headrace.errors import NumberOverflowError
from headrace.types.fitting import check_fits


def fill_of_type(values: Sequence[float], dtype: np.dtype, name: str) -> np.ndarray:
    """Values of argument `name` as elements of `dtype`, without their fractions where it has
    none.
    """
    given = np.array(values, np.float64)
    whole = np.trunc(given) if dtype.kind in "iu" else given
    try:
        check_fits(whole, dtype, f"`{name}` becomes of the type of the output.")
    except NumberOverflowError as error:
        raise NumberOverflowError(f"`{name}`: {error}") from None
    if dtype.kind not in "iu":
        return given.astype(np.float32).astype(dtype)
    return np.where(abs(given) < 1 << 24, np.trunc(given.astype(np.float32)), whole).astype(dtype)
