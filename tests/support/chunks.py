"""Lets a thread take several samples at a time from the first iteration on.

By itself it takes one at a time until it knows how long samples take, and most tests end before
that: they compare what operators make of one sample, not of several in one call.
"""

from __future__ import annotations

import numpy as np

from penstock.executor.cpu import tasks, worker_threads
from penstock.executor.cpu.runner import SampleRunner


def set_chunks(sizes: str) -> None:
    """Set how many samples a thread takes, and how many of them go through steps together.

    Parameters
    ----------
    sizes
        ``"CHUNK:GROUP"``, two numbers.
    """
    chunk, group = map(int, sizes.split(":"))

    def chunk_size(*_: object) -> int:
        return chunk

    tasks.chunk_size = worker_threads.chunk_size = chunk_size
    SampleRunner._group_size = lambda _runner: group


def as_one_array(batch: list[np.ndarray]) -> list[np.ndarray] | np.ndarray:
    """A batch as a source gives it in one piece, where its samples are alike."""
    kinds = {(np.shape(each), np.asarray(each).dtype) for each in batch}
    return np.stack(batch) if len(kinds) == 1 else batch
