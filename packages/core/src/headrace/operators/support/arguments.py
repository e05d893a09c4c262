"""Arguments of several samples as arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from headrace.errors import ShapeError

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from headrace.operators.support.operator import BatchContext
    from headrace.operators.support.planning import PlanContext

T = TypeVar("T")


def given(*inputs: T | None) -> list[T]:
    """Those of the optional inputs of an operator that it has."""
    return [each for each in inputs if each is not None]


def rows_of(c: PlanContext, name: str, dtype: DTypeLike) -> np.ndarray:
    """Argument `name`, which is given, of all samples: ``(samples, numbers)``."""
    found = c.array(name, dtype)
    assert found is not None
    return found.reshape(len(found), -1)


def numbers_of(c: PlanContext, name: str, dtype: DTypeLike) -> np.ndarray:
    """Argument `name`, which is given, one number a sample: ``(samples,)``; see `scalars`."""
    found = scalars(c, name, dtype)
    assert found is not None
    return found


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


def vectors(c: BatchContext, name: str, count: int) -> np.ndarray | None:
    """Argument `name`, which is given, as a float64 array ``(samples, count)``."""
    try:
        found = c.array(name, np.float64)
    except ShapeError:
        return None
    if found is None or not c.size:
        return None
    found = found.reshape(len(found), -1)
    return found if found.shape[1] == count else None
