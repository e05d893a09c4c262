"""Host memory that worker processes write to in place.

All blocks of the pool are cut from one file without a name, which lives in memory and is mapped
once, whole, by every process: a place in it is a number. The file is sparse, so free blocks take no
memory, and the kernel frees all of it when the last process has let go or died.
"""

from __future__ import annotations

import mmap
import os
import weakref
from typing import NamedTuple

import numpy as np

from headrace.tensors.pool import Block, HostPool, RawMemory, Reserve, memory_bytes
from headrace.tensors.ranges import FreeRanges

_PAGE = mmap.PAGESIZE
_uint8 = np.dtype(np.uint8)
_RESERVED = 4
"""Addresses that are set aside, as a multiple of the memory there is: room for fragmentation."""
_LEAST_BYTES = 1 << 30


class Extent(NamedTuple):
    """Position of memory in a shared file, for all processes that have mapped it."""

    file: int
    offset: int
    size: int


class SharedFile:
    """A sparse file in memory, from which ranges are taken. Guarded by the lock of its pool."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.size, self.descriptor, mapping = _mapped_file()
        self._end = weakref.finalize(self, os.close, self.descriptor)
        self._mapping = mapping
        self.memory = RawMemory.__new__(RawMemory, (self.size,), _uint8, mapping)
        self.address: int = self.memory.__array_interface__["data"][0]
        self._free = FreeRanges(self.size)

    def has(self, address: int) -> bool:
        """Return True if `address` lies in the file."""
        return 0 <= address - self.address < self.size

    def take(self, size: int) -> int:
        """Take `size` free bytes; return their offset. Raises `MemoryError` if there is no such
        range.
        """
        begin = self._free.take(size)
        if begin is None:
            raise MemoryError
        return begin

    def give_back(self, begin: int, size: int) -> None:
        """Take a range back, and return its memory to the system."""
        self._mapping.madvise(mmap.MADV_REMOVE, begin, size)
        self._free.give_back(begin, size)


def _mapped_file() -> tuple[int, int, mmap.mmap]:
    """Size, descriptor and mapping of a new file; smaller where addresses are limited."""
    size = -(-max(_RESERVED * memory_bytes(), _LEAST_BYTES) // _PAGE) * _PAGE
    file = os.memfd_create("headrace", os.MFD_CLOEXEC)
    try:
        while True:
            os.ftruncate(file, size)
            try:
                return size, file, mmap.mmap(file, size)
            except OSError:
                if size // 2 < _LEAST_BYTES:
                    raise
                size = size // 2 // _PAGE * _PAGE
    except OSError as error:
        os.close(file)
        raise MemoryError(f"There is no shared memory: {error.strerror}.") from error


class SharedBlock(Block):
    """A range of a shared file."""

    __slots__ = ("begin", "file", "taken")

    def __init__(self, size: int, file: SharedFile, begin: int, taken: int) -> None:
        self.size = size
        self.idle_since = 0
        self.file = file
        self.begin = begin
        self.taken = taken
        self.memory = file.memory[begin : begin + size].view(RawMemory)
        self.offset = 0


class SharedPool(HostPool):
    """Buffers that worker processes can write to.

    A fork of this process, as a PyTorch `DataLoader` makes them, sees the arrays it inherits change
    if their memory is used again, as it would not with memory of the process's own. So a new file
    is begun at each fork, and memory of the older one is never used again.
    """

    is_ordinary = False

    def __init__(self, idle_limit_bytes: int | None = None) -> None:
        super().__init__(idle_limit_bytes)
        self._current: SharedFile | None = None
        self._files: weakref.WeakValueDictionary[int, SharedFile] = weakref.WeakValueDictionary()
        self._count = 0

    def file(self, number: int) -> SharedFile | None:
        """A file that is still in use."""
        return self._files.get(number)

    def place_of(self, array: np.ndarray) -> Extent:
        """Return the position of an array of this pool."""
        address: int = array.__array_interface__["data"][0]
        file = self._current  # as a rule
        if file is None or not file.has(address):
            file = next((f for f in list(self._files.values()) if f.has(address)), None)
        if file is None:
            raise ValueError("the array is not in shared memory")
        return Extent(file.number, address - file.address, array.nbytes)

    def places_of(self, addresses: np.ndarray, sizes: np.ndarray) -> tuple[int, np.ndarray] | None:
        """Number of the file, and offsets of pieces of so many bytes at such addresses; `None` if
        any lies elsewhere.
        """
        file = self._current
        if file is None:
            return None
        offsets = (addresses - np.uint64(file.address)).astype(np.int64)
        if ((offsets < 0) | (offsets + sizes > file.size)).any():
            return None
        return file.number, offsets

    def _fresh(self, size: int) -> Block:
        return SharedBlock(size, *self.take_range(size))

    def take_range(self, size: int) -> tuple[SharedFile, int, int]:
        """Take a range of at least `size` bytes of the present file; return file, offset and size.
        Raises `MemoryError` if there is none.
        """
        taken = -(-size // _PAGE) * _PAGE
        with self._lock:
            file = self._current
            if file is None:
                file = self._current = self._files[self._count] = SharedFile(self._count)
                self._count += 1
            return file, file.take(taken), taken

    def give_back_range(self, block: SharedBlock) -> None:
        """Return a range to the file, if that is the present one."""
        with self._lock:
            if block.file is self._current:
                block.file.give_back(block.begin, block.taken)

    def is_current(self, file: SharedFile) -> bool:
        """Return True if memory of this file may be used again."""
        return file is self._current

    def reserve(self, size_bytes: int) -> Reserve:
        """Refuse: all memory of the pool is one file, which is mapped already."""
        raise NotImplementedError("`reserve` is not for shared memory, which is mapped already.")

    def _file(self, block: Block) -> None:
        assert isinstance(block, SharedBlock)
        if block.file is self._current:
            super()._file(block)

    def _evict(self, keep_bytes: int) -> list[Block]:
        victims = super()._evict(keep_bytes)
        for block in victims:
            assert isinstance(block, SharedBlock)
            block.file.give_back(block.begin, block.taken)
        return victims

    def _begin_file(self) -> None:
        """Stop allocating from the present file; its memory stays valid for its users."""
        with self._lock:
            self._collect()
            self._evict(0)
            self._current = None

    def _after_fork(self) -> None:
        self._current = None  # the parent's, which goes on using what is idle
        super()._after_fork()


SHARED_POOL = SharedPool()
"""The pool of all pipelines of this process whose samples are carried by worker processes."""


def _after_fork_in_parent() -> None:
    if SHARED_POOL._current is not None:
        SHARED_POOL._begin_file()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_parent=_after_fork_in_parent)
