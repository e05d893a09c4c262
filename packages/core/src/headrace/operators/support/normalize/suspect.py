"""Means and deviations that are hardly meant."""

from __future__ import annotations

import numpy as np

from headrace.types import DALIDataType


def suspect_moments(mean: object, std: object, dtype: DALIDataType, std_name: str) -> str:
    """A warning of constants that make no images of 0 to 255 normal; empty if they may."""
    means = np.zeros(0) if mean is None else np.asarray(mean, np.float64)
    deviations = np.ones(1) if std is None else np.asarray(std, np.float64)
    if deviations.size and (deviations == 0).any():
        return (
            f"`{std_name}` is 0, and what is divided by it becomes infinite or NaN. Leave "
            f"`{std_name}` out, or give 1, to divide by nothing."
        )
    fractions = ((means > 0) & (means < 1)).any() and (means >= 0).all() and (means <= 1).all()
    if dtype is not DALIDataType.UINT8 or not fractions or not (deviations <= 1).all():
        return ""
    return (
        f"`mean`={means.tolist()} is for images of 0 to 1, and this one is of uint8, 0 to 255. "
        f"Multiply `mean` and `{std_name}` by 255, as in `mean=[255 * m for m in mean]`."
    )
