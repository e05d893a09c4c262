"""Errors that kernels find in samples, reported to the host when it looks at finished work anyway.

A kernel cannot raise, and the host does not wait for it. So it leaves the index of the bad sample
in a word of device memory, which is copied to the host after it; the thread that finds the work
done calls `check`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from headrace.tensors.gpu.queue import Queue

Fault = Callable[[int], BaseException]
"""Makes the error for a sample of this number."""

_BYTE_OF_NONE = 0x7F
_NONE = 0x7F7F7F7F


class FaultReport:
    """Words (int32, page-locked) that kernels may have written, on their way to the host: the
    lowest index of a bad sample for each kind of fault, and the errors to raise.
    """

    def __init__(self, words: np.ndarray, errors: Sequence[Fault]) -> None:
        self._words = words
        self._errors = tuple(errors)

    def check(self) -> None:
        """Raise the error of the first fault, if there is one; only once the work is done."""
        for word, error in zip(self._words.tolist(), self._errors, strict=True):
            if word != _NONE:
                raise error(word)


@contextlib.contextmanager
def watched(queue: Queue, errors: Sequence[Fault]) -> Iterator[int]:
    """Address of an int32 for each of `errors`, for kernels that are launched in the block.

    A kernel stores the number of a sample there if it is lower than what it finds. `queue` keeps
    the `FaultReport`, for its owner to `check` when the work is done. Without errors the address
    is 0.
    """
    if not errors:
        yield 0
        return
    size = 4 * len(errors)
    address = queue.scratch(size)
    queue.runtime.fill(address, _BYTE_OF_NONE, size, queue.stream)
    yield address
    words = queue.pinned.empty((len(errors),), np.dtype(np.int32))
    queue.runtime.copy(words.ctypes.data, address, size, queue.stream)
    queue.keep(FaultReport(words, errors))
