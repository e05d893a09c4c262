"""Number of workers that makes as many batches as the trainer takes."""

from __future__ import annotations

import math

LOOK_EVERY = 8
"""Batches from one look at the rates to the next."""
_SPARE = 1.15
"""Workers are to be faster than the trainer by so much."""
_TOO_MANY = 1.3
"""Fewer are enough if they would still be faster by so much, so that the number is steady."""


def wanted_workers(
    trainer_seconds: float, worker_seconds: float, now: int, least: int, most: int
) -> int:
    """Number of workers to have.

    `trainer_seconds`: time the trainer spends on a batch, not waiting. `worker_seconds`: time one
    worker spends on a batch; 0 where it is unknown. `now`: present number. `least`, `most`: bounds.
    """
    if worker_seconds <= 0:
        return min(max(now, least), most)
    rate = worker_seconds / max(trainer_seconds, 1e-9)
    needed = math.ceil(min(rate * _SPARE, most))
    if needed < now:
        needed = min(now, math.ceil(min(rate * _TOO_MANY, most)))
    return min(max(needed, least), most)
