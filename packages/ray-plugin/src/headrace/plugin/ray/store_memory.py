"""Memory of Ray's object store that is handed to the user as it is."""

from __future__ import annotations

import os
import queue
import weakref

import numpy as np

from headrace.tensors.pool import HOST_POOL

SMALLEST_LOAN = 1 << 20
"""Bytes below which to copy an array is nothing, and keeps no other one of its result alive."""


class _Writable:
    """Memory of an array that is marked read-only, under another mark, and kept alive."""

    def __init__(self, array: np.ndarray, loan: object = None) -> None:
        self._array, self._loan = array, loan
        self.__array_interface__ = {
            **array.__array_interface__,
            "data": (array.__array_interface__["data"][0], False),
        }


def borrowed(array: np.ndarray) -> np.ndarray:
    """The array without its mark "read-only", for operators, which never write to inputs.

    Compiled loops are made for arrays without it, and would be compiled once more.
    """
    if array.flags.writeable or not array.nbytes:
        return array
    return np.asarray(_Writable(array))


class _Loan:
    """One result's memory, for as long as an array of it is in use."""


class StoreMemory:
    """Hands arrays of results out for writing: a result has no other reader than this trainer.

    What a user keeps stays in the store. So beyond `limit` bytes in use, arrays are copied.
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._in_use = 0
        # Finalizers run anywhere, this very thread included: a lock could be held.
        self._returned: queue.SimpleQueue[int] = queue.SimpleQueue()

    @property
    def bytes_in_use(self) -> int:
        """Bytes of results that the user has."""
        while not self._returned.empty():
            self._in_use -= self._returned.get()
        return self._in_use

    def own(self, arrays: list[np.ndarray]) -> list[np.ndarray]:
        """The arrays of one result for a user, who may write to them."""
        large = sum(array.nbytes for array in arrays if array.nbytes >= SMALLEST_LOAN)
        if not large or self.bytes_in_use + large > self._limit:
            return [HOST_POOL.copy_of(array) for array in arrays]
        loan = _Loan()
        made = [self._writable(array, loan) for array in arrays]
        self._in_use += large
        weakref.finalize(loan, self._returned.put, large).atexit = False
        return made

    @staticmethod
    def _writable(array: np.ndarray, loan: _Loan) -> np.ndarray:
        """The array itself if the system lets this process write to it, otherwise a copy."""
        if array.nbytes >= SMALLEST_LOAN:
            made = np.asarray(_Writable(array, loan))
            if may_write(made):
                return made
        return HOST_POOL.copy_of(array)


def may_write(array: np.ndarray) -> bool:
    """Return True if memory can be written to; the first byte is, with the value that it has.

    The system's own copy fails where a store of the processor would end the program.
    """
    first = array.ravel(order="K").view(np.uint8)[:1]  # no copy, whatever the order
    read, write = os.pipe()
    try:
        os.write(write, first.tobytes())
        return os.readv(read, [first.data]) == 1
    except OSError:
        return False
    finally:
        os.close(read)
        os.close(write)
