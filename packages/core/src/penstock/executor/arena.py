"""Scratch memory of one worker: taken by moving a pointer, given back all at once."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

_ALIGNMENT = 64
_FIRST_BYTES = 1 << 20


def _aligned_block(size: int) -> tuple[np.ndarray, int]:
    raw = np.empty(size + _ALIGNMENT, np.uint8)
    return raw, -raw.ctypes.data % _ALIGNMENT


class Arena:
    """Memory that lives until `reset`, reused for every sample so that it stays in the cache.

    When a sample needs more than there is, further blocks are taken; `reset` replaces them by one
    block of the size that was needed.
    """

    __slots__ = ("_base", "_block", "_overflow", "_peak", "_size", "_used")

    def __init__(self) -> None:
        self._size = _FIRST_BYTES
        self._block, self._base = _aligned_block(self._size)
        self._used = 0
        self._peak = 0
        self._overflow: list[np.ndarray] = []

    def empty(self, shape: tuple[int, ...], dtype: DTypeLike) -> np.ndarray:
        """An uninitialised C-contiguous array, aligned to 64 bytes."""
        dtype = np.dtype(dtype)
        count = math.prod(shape) * dtype.itemsize
        start = self._used
        end = start + count
        self._used = -(-end // _ALIGNMENT) * _ALIGNMENT
        if end > self._size:
            block, base = _aligned_block(count)
            self._overflow.append(block)
            return np.ndarray(shape, dtype, block, base)
        return np.ndarray(shape, dtype, self._block, self._base + start)

    def rest(self) -> np.ndarray:
        """What is left in one piece, uint8, and stays so until `empty` gives its beginning away."""
        size = max(self._size - self._used, 0)
        return np.ndarray((size,), np.uint8, self._block, self._base + self._used)

    def mark(self) -> int:
        """A place to `release` down to."""
        return self._used

    def release(self, mark: int) -> None:
        """Take back what was handed out since `mark`."""
        self._peak = max(self._peak, self._used)
        self._used = mark

    def reset(self) -> None:
        """Take everything back."""
        self.release(0)
        if self._overflow:
            self._overflow.clear()
            self._size = self._peak + self._peak // 4
            self._block, self._base = _aligned_block(self._size)
