"""Arguments of all samples of a batch at once, for operators on the GPU."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from penstock.operators.planning import PlanContext


def scalars(c: PlanContext, name: str, dtype: DTypeLike) -> np.ndarray | None:
    """Argument `name`, one number a sample, as an array ``(samples,)``; `None` if not given.

    Raises
    ------
    ArgumentValueError
        If a sample has not exactly one.
    """
    found = c.array(name, dtype)
    if found is None or found.ndim == 1:
        return found
    if found.size == len(found):
        return found.reshape(-1)
    values: list[Any] = c.values(name)  # says what is wrong
    return np.array(values, dtype)
