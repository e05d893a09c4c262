"""Lets a thread take several samples at a time from the first iteration on.

By itself it takes one at a time until it knows how long samples take, and most tests end before
that: they compare what operators make of one sample, not of several in one call.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable

import numpy as np

from headrace.executor.cpu import chunks, tasks, worker_threads
from headrace.executor.cpu.runner import SampleRunner

SIZES = os.environ.get("HEADRACE_TEST_CHUNKS", "")
"""What all tests are to take, see `set_chunks`; some of tests/parity take whole batches anyhow."""


def set_chunks(sizes: str, set_attribute: Callable[[object, str, object], None] = setattr) -> None:
    """Set how many samples a thread takes, and how many of them go through steps together.

    `sizes`: ``"CHUNK:GROUP"``, two numbers. `set_attribute`: how, as that of `pytest.MonkeyPatch`,
    which takes it back.
    """
    chunk, group = map(int, sizes.split(":"))
    for module in (tasks, worker_threads):
        set_attribute(module, "chunk_size", lambda *_: chunk)
    set_attribute(SampleRunner, "_group_size", lambda _runner: group)


def are_set() -> bool:
    """Whether `set_chunks` is in force."""
    return tasks.chunk_size is not chunks.chunk_size


def takes_several(test: str) -> bool:
    """Whether a test, by its name, is one of the half that take several samples at a time."""
    return bool(zlib.crc32(test.encode()) & 1)


def as_one_array(batch: list[np.ndarray]) -> list[np.ndarray] | np.ndarray:
    """A batch as a source gives it in one piece, where its samples are alike."""
    kinds = {(np.shape(each), np.asarray(each).dtype) for each in batch}
    return np.stack(batch) if len(kinds) == 1 else batch
