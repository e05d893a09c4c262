"""Scratch memory of one worker: taken by moving a pointer, given back all at once."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

_ALIGNMENT = 64
_FIRST_BYTES = 1 << 20
_LARGEST_BYTES = 64 << 20
"""A block that is kept for further samples is not larger."""
_MOST_REMEMBERED = 64
"""Arrays that are kept for further samples."""


def _aligned_block(size: int) -> tuple[np.ndarray, int]:
    raw = np.empty(size + _ALIGNMENT, np.uint8)
    return raw, -raw.ctypes.data % _ALIGNMENT


class Arena:
    """Memory that lives until `reset`, reused for every sample so that it stays in the cache.

    What does not fit gets blocks of its own, which are dropped by `release` and `reset`. `reset`
    then takes a larger block, up to a bound: scratch of large samples is no memory to keep for each
    thread.
    """

    __slots__ = ("_arrays", "_base", "_block", "_overflow", "_peak", "_size", "_used")

    def __init__(self) -> None:
        self._size = _FIRST_BYTES
        self._block, self._base = _aligned_block(self._size)
        self._used = 0
        self._peak = 0
        self._overflow: list[tuple[int, np.ndarray]] = []
        """Allocations that did not fit: offset they would have had, and memory, in order of
        offsets."""
        self._arrays: dict[int, tuple[np.ndarray, DTypeLike, int]] = {}
        """By their place in the block, arrays that were handed out, their types as asked for, and
        the places after them: samples of one shape get the same arrays."""

    def empty(self, shape: tuple[int, ...], dtype: DTypeLike) -> np.ndarray:
        """An uninitialised C-contiguous array, aligned to 64 bytes."""
        start = self._used
        known = self._arrays.get(start)
        if known is not None and known[1] is dtype and known[0].shape == shape:
            self._used = known[2]
            return known[0]
        asked, dtype = dtype, np.dtype(dtype)
        end = start + math.prod(shape) * dtype.itemsize
        self._used = end + -end % _ALIGNMENT
        if end <= self._size:
            array = np.ndarray(shape, dtype, self._block, self._base + start)
            if len(self._arrays) >= _MOST_REMEMBERED:
                self._arrays.clear()
            self._arrays[start] = array, asked, self._used
            return array
        block, base = _aligned_block(end - start)
        self._overflow.append((start, block))
        return np.ndarray(shape, dtype, block, base)

    def mark(self) -> int:
        """A place to `release` down to."""
        return self._used

    def release(self, mark: int) -> None:
        """Free all allocations since `mark`."""
        if self._used > self._peak:  # in less time than by `max`
            self._peak = self._used
        self._used = mark
        overflow = self._overflow
        while overflow and overflow[-1][0] >= mark:
            overflow.pop()

    def reset(self) -> None:
        """Take everything back."""
        if not self._used and self._peak <= self._size:
            return
        self.release(0)
        if self._peak > self._size < _LARGEST_BYTES:
            size = min(self._peak + self._peak // 4, _LARGEST_BYTES)
            self._block, self._base = _aligned_block(size)
            self._arrays.clear()
            self._size = size
