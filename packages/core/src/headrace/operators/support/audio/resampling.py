"""Length and spacing of resampled audio."""

from __future__ import annotations

import numpy as np

from headrace.errors import ArgumentValueError
from headrace.kernels.plan import resampling
from headrace.operators.support.arguments import numbers_of
from headrace.operators.support.audio.decoding import MOST_FRAMES
from headrace.operators.support.planning import NumberTable, PlanContext


def resampled(
    c: PlanContext, shapes: np.ndarray, by: str, rates: NumberTable
) -> tuple[np.ndarray, np.ndarray]:
    """Shapes of the outputs, and how many inputs one output is, float64 ``(samples,)``.

    `shapes`: of the signals, int64 ``(samples, ndim)``.
    """
    if by == "out_length":
        return _of_lengths(c, shapes)
    made, steps = shapes.copy(), np.empty(len(shapes), np.float64)
    numbers = rates.rows(c, len(shapes))
    bad = resampling.resampled_shapes(made, numbers, MOST_FRAMES, steps)
    if bad < 0:
        return made, steps
    in_rate, out_rate = numbers[bad]
    if not 0 <= out_rate < np.inf:
        raise ArgumentValueError(f"`{by}` is {out_rate:g}, but must be a number of at least 0.")
    if not 0 < in_rate < np.inf:
        raise ArgumentValueError(f"`in_rate` is {in_rate:g}, but must be positive.")
    raise ArgumentValueError(
        f"`{by}` is {out_rate:g}: the {shapes[bad, 0]} samples of the signal would become too many "
        "to hold."
    )


def _of_lengths(c: PlanContext, shapes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    given = numbers_of(c, "out_length", np.int64)
    made, found, lengths = shapes.copy(), given[: len(shapes)], shapes[:, 0]
    for value in found[found < 0][:1].tolist():
        raise ArgumentValueError(f"`out_length` is {value}, but must not be negative.")
    for value in found[(found > 0) & (lengths == 0)][:1].tolist():
        raise ArgumentValueError(
            f"`out_length` is {value}, but the signal is empty: it can only stay so."
        )
    made[:, 0] = found
    return made, np.where(found > 0, lengths / np.maximum(found, 1), 1.0)
