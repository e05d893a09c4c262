"""How long resampled audio is, and how far apart its samples are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from penstock.errors import ArgumentValueError
from penstock.kernels.cpu.audio.resample import resampled_length
from penstock.operators.support.arguments import scalars
from penstock.operators.support.audio.decoding import MOST_FRAMES

if TYPE_CHECKING:
    from penstock.operators.support.operator import BatchContext


def resampling_of(
    length: int,
    in_rate: float | None,
    out_rate: float | None,
    scale: float | None,
    out_length: int | None,
) -> tuple[int, float]:
    """Length of the output, and how many inputs one output is.

    Raises
    ------
    ArgumentValueError
        If the numbers make no sense.
    """
    if out_length is not None:
        if out_length < 0:
            raise ArgumentValueError(f"`out_length` is {out_length}, but must not be negative.")
        if out_length and not length:
            raise ArgumentValueError(
                f"`out_length` is {out_length}, but the signal is empty: it can only stay so."
            )
        return out_length, length / out_length if out_length else 1.0
    if scale is not None:
        if not 0 <= scale < np.inf:
            raise ArgumentValueError(f"`scale` is {scale:g}, but must be a number of at least 0.")
        in_rate, out_rate = 1.0, scale
    assert in_rate is not None
    assert out_rate is not None
    in_rate, out_rate = float(np.float32(in_rate)), float(np.float32(out_rate))
    if not 0 < in_rate < np.inf:
        raise ArgumentValueError(f"`in_rate` is {in_rate:g}, but must be positive.")
    if not 0 <= out_rate < np.inf:
        raise ArgumentValueError(f"`out_rate` is {out_rate:g}, but must not be negative.")
    if not length * out_rate / in_rate < MOST_FRAMES:
        raise ArgumentValueError(
            f"`{'scale' if scale is not None else 'out_rate'}` is {out_rate:g}: the {length} "
            "samples of the signal would become too many to hold."
        )
    return resampled_length(length, in_rate, out_rate), in_rate / out_rate if out_rate else 1.0


def resamplings_of(c: BatchContext, lengths: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """`resampling_of` of a batch: int64 and float64 ``(samples,)``.

    Raises
    ------
    ArgumentValueError
        As `resampling_of`, with the place of the sample.
    """
    out_length = scalars(c, "out_length", np.int64)
    scale = scalars(c, "scale", np.float32)
    in_rate, out_rate = (scalars(c, name, np.float32) for name in ("in_rate", "out_rate"))
    if out_length is not None:
        good = (out_length >= 0) & ((out_length == 0) | (lengths > 0))
        steps = lengths / np.maximum(out_length, 1)
        made = out_length
    else:
        if scale is not None:
            in_rate, out_rate = np.ones(len(lengths), np.float32), scale
        assert in_rate is not None
        assert out_rate is not None
        in_rate, out_rate = in_rate.astype(np.float64), out_rate.astype(np.float64)
        good = (in_rate > 0) & (in_rate < np.inf) & (out_rate >= 0) & (out_rate < np.inf)
        divisor = np.where(good, in_rate, 1.0)
        exact = lengths * np.where(good, out_rate, 0.0) / divisor
        good &= exact < MOST_FRAMES
        made = np.ceil(np.where(good, exact, 0.0)).astype(np.int64)
        steps = divisor / np.where(good & (out_rate > 0), out_rate, 1.0)
    if not good.all():
        bad = int(np.argmin(good))
        given = (in_rate, out_rate, scale, out_length)
        numbers = [None if v is None else v[bad].item() for v in given]
        if scale is not None or out_length is not None:
            numbers[:2] = None, None
        try:
            resampling_of(int(lengths[bad]), *numbers)
        except ArgumentValueError as error:
            raise c.located(error, bad) from error
    return made, np.where(made > 0, steps, 1.0)
