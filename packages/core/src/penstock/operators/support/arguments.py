"""Arguments of several samples as arrays."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from penstock.errors import ShapeError

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from penstock.operators.support.operator import BatchContext
    from penstock.operators.support.planning import PlanContext

T = TypeVar("T")


def given(*inputs: T | None) -> list[T]:
    """Those of the optional inputs of an operator that it has."""
    return [each for each in inputs if each is not None]


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


def vectors(
    c: BatchContext,
    name: str,
    count: int,
    dtype: DTypeLike = np.float64,
    *,
    repeat: bool = False,
    spread: bool = True,
) -> np.ndarray | None:
    """Argument `name`, which is given, as an array ``(samples, count)``.

    Parameters
    ----------
    repeat
        Whether a single number stands for `count` equal ones.
    spread
        Whether a constant has a row a sample, too, and not only one.

    Returns
    -------
    numpy.ndarray or None
        `None` where a sample may have another count of numbers: such batches have to be looked at
        sample by sample.
    """
    try:
        found = c.array(name, dtype)
    except ShapeError:
        return None
    if found is None or not c.size:
        return None
    if not spread and getattr(c.args, name) is not None:
        found = found[:1]
    found = found.reshape(len(found), -1)
    if repeat and found.shape[1] == 1 != count:
        return np.broadcast_to(found, (len(found), count))
    return found if found.shape[1] == count else None
