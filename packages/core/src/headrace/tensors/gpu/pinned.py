"""Arrays in page-locked host memory, which copies to and from a GPU run at full speed with."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

import numpy as np

from headrace.tensors.buffer_sizes import ALIGNMENT_BYTES
from headrace.tensors.pool import Block, HostPool, RawMemory

if TYPE_CHECKING:
    from headrace.tensors.gpu.runtime import Runtime


class PinnedMemory(RawMemory):
    """Raw page-locked memory."""

    __slots__ = ()


def is_pinned(array: np.ndarray) -> bool:
    """Return True if `array` lies in `PinnedMemory`."""
    memory: object = array
    while isinstance(memory, np.ndarray):
        if type(memory) is PinnedMemory:
            return True
        memory = memory.base
    return False


class _PinnedBlock(Block):
    """A block that goes back to the driver when it is dropped."""

    __slots__ = ("_address", "_runtime")

    def __init__(self, runtime: Runtime, size: int) -> None:
        self.size = size
        self.idle_since = 0
        total = size + ALIGNMENT_BYTES
        self._runtime = runtime
        self._address = runtime.allocate_pinned(total)
        raw = (ctypes.c_ubyte * total).from_address(self._address)
        self.memory = PinnedMemory.__new__(
            PinnedMemory, (total,), np.dtype(np.uint8), memoryview(raw).cast("B")
        )
        self.offset = -self._address % ALIGNMENT_BYTES

    def __del__(self) -> None:
        address = getattr(self, "_address", None)
        if address is not None:
            self._runtime.free_pinned(address)


class PinnedHostPool(HostPool):
    """A `HostPool` of page-locked memory.

    An array from it may be dropped, and its memory be lent again, only when no copy reads or writes
    it any more: the queue of the copies keeps it until then.
    """

    is_page_locked = True
    is_ordinary = False
    shrinks = False

    def __init__(self, runtime: Runtime) -> None:
        super().__init__()
        self._runtime = runtime

    def _fresh(self, size: int) -> Block:
        return _PinnedBlock(self._runtime, size)
