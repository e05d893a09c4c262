"""How long resampled audio is, and how far apart its samples are."""

from __future__ import annotations

import numpy as np

from penstock.errors import ArgumentValueError
from penstock.operators.support.arguments import scalars
from penstock.operators.support.audio.decoding import MOST_FRAMES
from penstock.operators.support.planning import PlanContext


def resamplings_of(c: PlanContext, lengths: np.ndarray, by: str) -> tuple[np.ndarray, np.ndarray]:
    """Lengths of the outputs, int64, and how many inputs one output is, float64.

    Parameters
    ----------
    lengths
        Of the signals, int64 ``(samples,)``.
    by
        The argument that says it: ``"out_length"``, ``"scale"``, or ``"out_rate"`` with `in_rate`.

    Raises
    ------
    ArgumentValueError
        If the numbers make no sense.
    """
    size = len(lengths)
    if by == "out_length":
        given = scalars(c, by, np.int64)
        assert given is not None
        made = given[:size]
        for value in made[made < 0][:1].tolist():
            raise ArgumentValueError(f"`out_length` is {value}, but must not be negative.")
        for value in made[(made > 0) & (lengths == 0)][:1].tolist():
            raise ArgumentValueError(
                f"`out_length` is {value}, but the signal is empty: it can only stay so."
            )
        return made, np.where(made > 0, lengths / np.maximum(made, 1), 1.0)
    out_rate = _rates(c, by, size)
    for value in out_rate[~((out_rate >= 0) & (out_rate < np.inf))][:1].tolist():
        raise ArgumentValueError(f"`{by}` is {value:g}, but must be a number of at least 0.")
    in_rate = np.ones(size) if by == "scale" else _rates(c, "in_rate", size)
    for value in in_rate[~((in_rate > 0) & (in_rate < np.inf))][:1].tolist():
        raise ArgumentValueError(f"`in_rate` is {value:g}, but must be positive.")
    exact = lengths * out_rate / in_rate
    for k in np.flatnonzero(~(exact < MOST_FRAMES))[:1].tolist():
        raise ArgumentValueError(
            f"`{by}` is {out_rate[k]:g}: the {lengths[k]} samples of the signal would become too "
            "many to hold."
        )
    return np.ceil(exact).astype(np.int64), in_rate / np.where(out_rate > 0, out_rate, in_rate)


def _rates(c: PlanContext, name: str, size: int) -> np.ndarray:
    """A rate of each sample: float64 with the numbers of float32, as DALI's."""
    found = scalars(c, name, np.float64)
    assert found is not None
    with np.errstate(over="ignore"):
        return found[:size].astype(np.float32).astype(np.float64)
