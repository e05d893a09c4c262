"""Shared memory that a GPU copies from at full speed."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING

from headrace.executor.processes.shared_pool import (
    SHARED_POOL,
    SharedBlock,
    SharedFile,
    SharedPool,
)
from headrace.tensors.gpu.pinned import PinnedMemory
from headrace.tensors.pool import Block, HostPool

if TYPE_CHECKING:
    from headrace.tensors.gpu.device import GpuDevice
    from headrace.tensors.gpu.runtime import Runtime


class _PinnedSharedBlock(SharedBlock):
    """A range of the shared file that is page-locked for as long as the block is there."""

    __slots__ = ("_address", "_runtime")

    def __init__(
        self, runtime: Runtime, size: int, file: SharedFile, begin: int, taken: int
    ) -> None:
        super().__init__(size, file, begin, taken)
        self.memory = self.memory.view(PinnedMemory)
        self._runtime = runtime
        self._address = file.address + begin
        try:
            runtime.register_pinned(self._address, taken)
        except BaseException:
            self._address = 0
            SHARED_POOL.give_back_range(self)
            raise

    def unlock(self) -> None:
        """Let the memory be ordinary again."""
        address, self._address = self._address, 0
        if address:
            self._runtime.unregister_pinned(address)

    def __del__(self) -> None:
        if getattr(self, "_address", 0):
            self.unlock()


class PinnedSharedPool(HostPool):
    """Page-locked memory of the file of `SHARED_POOL`, for one GPU.

    What `headrace.tensors.gpu.pinned.PinnedHostPool` says of its arrays holds here, too. The lock
    of `SHARED_POOL` is taken under its own.
    """

    is_page_locked = True
    is_ordinary = False
    shrinks = False

    def __init__(self, runtime: Runtime) -> None:
        super().__init__()
        self._runtime = runtime

    def _fresh(self, size: int) -> Block:
        return _PinnedSharedBlock(self._runtime, size, *SHARED_POOL.take_range(size))

    reserve = SharedPool.reserve

    def _file(self, block: Block) -> None:
        assert isinstance(block, SharedBlock)
        if SHARED_POOL.is_current(block.file):
            super()._file(block)

    def _evict(self, keep_bytes: int) -> list[Block]:
        victims = super()._evict(keep_bytes)
        for block in victims:
            assert isinstance(block, _PinnedSharedBlock)
            block.unlock()
            SHARED_POOL.give_back_range(block)
        return victims


_pools: weakref.WeakKeyDictionary[Runtime, PinnedSharedPool] = weakref.WeakKeyDictionary()


def pinned_shared_pool(device: GpuDevice) -> PinnedSharedPool:
    """The pool of a GPU."""
    found = _pools.get(device.runtime)
    if found is None:
        found = _pools.setdefault(device.runtime, PinnedSharedPool(device.runtime))
    return found
