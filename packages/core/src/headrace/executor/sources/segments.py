"""Shared memory that has no name.

A segment is a file without a name that lives in memory. Its maker sends it to the other process
through a socket, and both map it. The kernel frees it when the last of them has let go or died,
however it died: nothing can be left over.
"""

from __future__ import annotations

import importlib
import mmap
import os
import secrets
import weakref
from collections import deque
from collections.abc import Callable, Iterable

import numpy as np

from headrace.tensors.pool import RawMemory, memory_bytes

_PAGE = mmap.PAGESIZE
_uint8 = np.dtype(np.uint8)
IDLE_LIMIT = 8
"""Number of segments that the writer keeps for reuse."""


def open_segment(size: int) -> int:
    """A new file of `size` bytes in memory, by its number; no other process can open it."""
    if size > memory_bytes():
        # Memory that turns out to be missing only when it is written to would kill the writer.
        raise MemoryError(
            f"There is no shared memory for {size} bytes of a parallel source: that is more than "
            "this process may have."
        )
    if hasattr(os, "memfd_create"):
        # Unlike /dev/shm, which containers keep small, this counts as the process's own memory.
        file = os.memfd_create("headrace", os.MFD_CLOEXEC)
    else:
        shm = importlib.import_module("_posixshmem")  # what `multiprocessing` opens them with
        name = f"/headrace-{secrets.token_hex(8)}"
        file = shm.shm_open(name, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
        shm.shm_unlink(name)
    try:
        os.ftruncate(file, size)
    except OSError as error:
        os.close(file)
        raise MemoryError(
            f"There is no shared memory for {size} bytes of a parallel source: {error.strerror}."
        ) from error
    return file


class SharedSegment:
    """A mapped segment."""

    __slots__ = ("memory", "number", "size")

    def __init__(self, number: int, file: int, size: int) -> None:
        self.number = number
        self.size = size
        mapped = mmap.mmap(file, size)
        # Its own type ends NumPy's search for the base of a view, see `headrace.tensors.pool`.
        self.memory = RawMemory.__new__(RawMemory, (size,), _uint8, mapped)


class SegmentWriter:
    """The segments that one worker makes and fills."""

    def __init__(self, announce: Callable[[int, int, int], None]) -> None:
        self._announce = announce
        self._idle: list[SharedSegment] = []
        self._lent: dict[int, SharedSegment] = {}
        self._made = 0
        self.dropped: list[int] = []
        """Numbers of segments that are given up, for the reader to unmap."""

    def take(self, size: int, hint: int = 0) -> SharedSegment:
        """A segment of at least `size` bytes; a new one has at least `hint`."""
        fitting = [s for s in self._idle if s.size >= size]
        if fitting:
            segment = min(fitting, key=lambda s: s.size)
            self._idle.remove(segment)
        else:
            if self._idle:  # grown out of
                self._drop(min(self._idle, key=lambda s: s.size))
            # Samples of varying sizes shall find room the next time.
            wanted = max(size + size // 8 if self._made else size, hint, 1)
            segment = self._make(-(-wanted // _PAGE) * _PAGE)
        self._lent[segment.number] = segment
        return segment

    def _make(self, size: int) -> SharedSegment:
        file = open_segment(size)
        try:
            segment = SharedSegment(self._made, file, size)
            self._announce(segment.number, file, size)
        finally:
            os.close(file)
        self._made += 1
        return segment

    def give_back(self, numbers: Iterable[int]) -> None:
        """Take back segments that the reader is done with."""
        for number in numbers:
            self._idle.append(self._lent.pop(number))
        while len(self._idle) > IDLE_LIMIT:
            self._drop(self._idle[0])

    def _drop(self, segment: SharedSegment) -> None:
        self._idle.remove(segment)
        self.dropped.append(segment.number)


class _SegmentLease(weakref.ref):  # type: ignore[type-arg]
    """Weak reference to the array that holds a segment."""

    __slots__ = ("number",)
    number: int


class SegmentReader:
    """The segments of one worker as the other process sees them."""

    def __init__(self) -> None:
        self._segments: dict[int, SharedSegment] = {}
        self._leases: dict[int, _SegmentLease] = {}
        # As in the pool of host memory: arrays may be freed at any instant, and nothing but this
        # append, which is no Python code, happens then.
        self._returned: deque[_SegmentLease] = deque()

    def add(self, number: int, file: int, size: int) -> None:
        """Map a segment that was announced; closes `file`."""
        try:
            self._segments[number] = SharedSegment(number, file, size)
        finally:
            os.close(file)

    def borrow(self, number: int) -> np.ndarray:
        """All bytes of a segment, which returns by itself when no view of them is left."""
        segment = self._segments[number]
        whole: np.ndarray = np.ndarray((segment.size,), _uint8, segment.memory)
        lease = _SegmentLease(whole, self._returned.append)
        lease.number = number
        self._leases[number] = lease
        return whole

    @property
    def lent(self) -> int:
        """Number of segments in use."""
        return len(self._leases) - len(self._returned)

    def collect(self) -> list[int]:
        """Numbers of the segments that have returned since the last call."""
        found = []
        while self._returned:
            lease = self._returned.popleft()
            del self._leases[lease.number]
            found.append(lease.number)
        return found

    def drop(self, numbers: Iterable[int]) -> None:
        """Unmap segments; memory that is still looked at stays until it is not."""
        for number in numbers:
            del self._segments[number]

    def clear(self) -> None:
        """Unmap all segments, as `drop` does."""
        self._segments.clear()

    def sizes(self) -> list[int]:
        """Size of each segment, in bytes."""
        return [s.size for s in self._segments.values()]
