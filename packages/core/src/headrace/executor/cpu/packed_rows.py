"""Memory for the rows of one batch, in one piece, so that it is copied to the GPU at once."""

from __future__ import annotations

import math
import threading
from typing import NamedTuple

import numpy as np

from headrace.tensors.pool import HostPool
from headrace.tensors.rows import Rows

_ALIGNMENT = 64


class PackedSegment(NamedTuple):
    """Samples that follow one another in memory, each at a multiple of 64 bytes.

    `first`: number of the first. `memory`: all of it, flat. `begins`: int64 ``(samples,)``: the
    element of `memory` that each begins with. `shapes`: int64 ``(samples, ndim)``. `rows`: the
    samples.
    """

    first: int
    memory: np.ndarray
    begins: np.ndarray
    shapes: np.ndarray
    rows: Rows


class PackedRows:
    """A piece of memory of which rows are taken one after the other, by any thread.

    `wanted`: bytes that were asked for so far.
    """

    __slots__ = ("_lock", "_memory", "wanted")

    def __init__(self, pool: HostPool, size: int) -> None:
        self._memory = pool.empty((size,), np.uint8) if size else None
        self._lock = threading.Lock()
        """Guards `wanted`: workers take rows at the same time."""
        self.wanted = 0

    def empty(self, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray | None:
        """An uninitialised C-contiguous array, aligned to 64 bytes; `None` if there is no place."""
        size = math.prod(shape) * dtype.itemsize
        with self._lock:
            start = self.wanted
            self.wanted = start + -(-size // _ALIGNMENT) * _ALIGNMENT
        memory = self._memory
        if memory is None or start + size > memory.size:
            return None
        return np.ndarray(shape, dtype, memory, start)
