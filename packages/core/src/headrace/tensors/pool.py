"""Host memory that comes back: 64-byte-aligned buffers, reused once their last user is gone.

An array from `HostPool.empty` is an ordinary NumPy array. Its buffer returns to the pool when the
array and everything made from it (views, DLPack imports, memory views, framework tensors) has been
dropped, without any call.

How the pool knows: NumPy names as the base of a view the array at the bottom of the chain of
views. Memory blocks here are of a subclass of `numpy.ndarray`, which ends that chain (a base of
another type is never skipped), so every view holds the one array that the pool handed out, and a
weak reference to that array tells when none is left. Arrays are not tracked by the cyclic garbage
collector: the weak reference fires when the array is really freed, never earlier.
"""

from __future__ import annotations

import functools
import math
import os
import threading
import weakref
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.errors import ArgumentValueError
from headrace.tensors.buffer_sizes import ALIGNMENT_BYTES, BUFFER_SETTINGS, size_classes
from headrace.tensors.ranges import FreeRanges

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

_REQUESTS_A_CHECK = 1024
"""Number of requests between checks for surplus memory: a power of two."""
_ndarray = np.ndarray
_NONE: list[Any] = []
_uint8 = np.dtype(np.uint8)


class RawMemory(np.ndarray):
    """Raw memory. Its own type, so that NumPy stops here when it looks for the base of a view."""

    __slots__ = ()


class Block:
    """One piece of memory that the pool owns, lent to at most one array at a time."""

    __slots__ = ("idle_since", "memory", "offset", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self.idle_since = 0
        self.memory = RawMemory.__new__(RawMemory, (size + ALIGNMENT_BYTES,), _uint8)
        self.offset = -self.memory.__array_interface__["data"][0] % ALIGNMENT_BYTES


class _Lease(weakref.ref):  # type: ignore[type-arg]
    """Weak reference to the array that has borrowed `block`, for a `PoolUsage`."""

    __slots__ = ("block", "usage")
    block: Block
    usage: PoolUsage | None


class PoolUsage:
    """Bytes that one holder has taken from a pool.

    A pool counts its loans under its own lock; so each pool needs an object of its own.
    """

    __slots__ = ("bytes_in_use",)

    def __init__(self) -> None:
        self.bytes_in_use = 0


class Reserve:
    """Memory that is set aside for a pool, for as long as this object or any part of it is there.

    Parts are taken and collected under the lock of the pool.

    `is_released`: true if nothing is taken from it any more, nor kept for later requests.
    """

    def __init__(self, pool: HostPool, block: Block) -> None:
        self.is_released = False
        self._pool = pool
        self._block = block
        self._free = FreeRanges(block.size)
        self._returned: deque[tuple[int, int]] = deque()
        """Ranges of parts that were dropped, at any instant and in any thread."""

    def release(self) -> None:
        """Have the memory freed as soon as nothing of it is in use.

        May be called at any instant, also by the garbage collector in a thread that holds the
        pool's lock: what is idle then is dropped by the next request for memory.
        """
        self.is_released = True
        lock = self._pool._lock
        if lock.acquire(blocking=False):
            try:
                self._pool._drop_idle_parts(released=True)
            finally:
                lock.release()

    def take(self, size: int) -> Block | None:
        """A part of so many bytes, if there is one left."""
        begin = self.collected().take(size)
        return None if begin is None else _SubBlock(self, begin, size)

    def collected(self) -> FreeRanges:
        """Return its free ranges now."""
        while self._returned:
            self._free.give_back(*self._returned.popleft())
        return self._free


class _SubBlock(Block):
    """A part of a reserve, which goes back to it when it is dropped."""

    __slots__ = ("_begin", "reserve")

    def __init__(self, reserve: Reserve, begin: int, size: int) -> None:
        whole = reserve._block
        start = whole.offset + begin
        self.size = size
        self.idle_since = 0
        self.memory = whole.memory[start : start + size].view(type(whole.memory))
        self.offset = 0
        self._begin = begin
        self.reserve = reserve

    def __del__(self) -> None:
        self.reserve._returned.append((self._begin, self.size))


@dataclass(frozen=True)
class PoolStats:
    """Counters and contents of a pool."""

    bytes_in_use: int
    """Bytes of arrays that are alive."""
    bytes_idle: int
    """Memory that waits to be reused."""
    buffers_in_use: int
    """Number of buffers of arrays that are alive."""
    buffers_idle: int
    """Number of buffers that wait to be reused."""
    buffers_made: int
    """Buffers allocated since the pool was made."""
    buffers_reused: int
    """Requests served by an idle buffer, or by reserved memory, since the pool was made."""
    bytes_reserved: int = 0
    """Memory that is set aside (`HostPool.reserve`) and was not taken yet."""


class HostPool:
    """Buffers of host memory for arrays, from any thread.

    Sizes of buffers follow `BufferSettings.host_growth`. Where less of its memory than the share
    `BufferSettings.host_shrink` has been needed for about a thousand requests, the rest is freed.
    """

    memory: type[RawMemory] = RawMemory
    """Class of the memory that arrays lie in."""
    is_page_locked = False
    """True if copies to and from a GPU run at full speed, and beside other work."""
    is_ordinary = True
    """True if it is memory of the process's own, as of any array."""
    shrinks = True
    """True if memory that was not needed for a while is freed."""

    def __init__(self, idle_limit_bytes: int | None = None) -> None:
        if idle_limit_bytes is None:
            idle_limit_bytes = memory_bytes() // 8
        self.idle_limit_bytes = idle_limit_bytes
        # Guards what is idle, and the counters; no other lock is taken under it.
        self._lock = threading.Lock()
        # Idle buffers by size; of each size, the one returned last is at the right.
        self._idle: dict[int, deque[Block]] = {}
        self._idle_bytes = 0
        self._lent_bytes = 0
        # The least that was idle since the pool last looked whether it has too much.
        self._least_idle_bytes = 0
        self._reserves: list[weakref.ref[Reserve]] = []
        self._clock = 0
        # Leases of live arrays, by the identity of their block: what keeps the weak references
        # alive. Only ever touched by single dictionary operations, which need no lock.
        self._leases: dict[int, _Lease] = {}
        # Where leases are left when their arrays are freed; the next request takes them from
        # here. An array may be freed at any instant, also on a thread that is inside one of the
        # locked sections (a garbage collection starts there), so nothing may wait for the lock.
        # And no Python code may run: were a signal handled in it, its exception would be ignored,
        # and so would a user's Ctrl-C.
        self._returned: deque[_Lease] = deque()
        self._made = 0
        self._reused = 0
        _pools.add(self)

    def empty(
        self, shape: int | Sequence[int], dtype: DTypeLike, usage: PoolUsage | None = None
    ) -> np.ndarray:
        """An uninitialised C-contiguous array of this shape, its data aligned to 64 bytes."""
        dtype = np.dtype(dtype)
        if isinstance(shape, int):
            shape = (shape,)
        size = math.prod(shape) * dtype.itemsize
        if size <= 0:
            return np.empty(shape, dtype)
        try:
            block = self._take(size, usage)
        except (MemoryError, ValueError) as error:  # NumPy's error knows only the block
            raise no_memory(shape, dtype, size) from error
        try:
            array: np.ndarray = _ndarray(shape, dtype, block.memory, block.offset)
            lease = _Lease(array, self._returned.append)
        except BaseException:
            with self._lock:
                self._lent_bytes -= block.size
                self._file(block)
                if usage is not None:
                    usage.bytes_in_use -= block.size
            raise
        lease.block = block
        lease.usage = usage
        self._leases[id(block)] = lease
        return array

    def copy_of(self, array: np.ndarray) -> np.ndarray:
        """A C-contiguous copy of `array` in memory of this pool."""
        result = self.empty(array.shape, array.dtype)
        result[...] = array
        return result

    def has(self, array: np.ndarray) -> bool:
        """Return True if `array` lies in memory of this kind of pool."""
        return not array.nbytes or isinstance(memory_of(array), self.memory)

    def stats(self) -> PoolStats:
        """Return the pool's present contents and its counters."""
        with self._lock:
            victims = self._collect()
            result = PoolStats(
                bytes_in_use=self._lent_bytes,
                bytes_idle=self._idle_bytes,
                buffers_in_use=len(self._leases),
                buffers_idle=sum(map(len, self._idle.values())),
                buffers_made=self._made,
                buffers_reused=self._reused,
                bytes_reserved=sum(r.collected().bytes_free for r in self._live_reserves()),
            )
        del victims
        return result

    def held(self) -> tuple[int, int]:
        """Bytes in use and idle bytes: `stats`, for frequent calls.

        Nothing waits for it: what others are taking at this moment may be in neither or in both.
        """
        if self._returned or self._reserves:
            stats = self.stats()
            return stats.bytes_in_use, stats.bytes_idle + stats.bytes_reserved
        return self._lent_bytes, self._idle_bytes

    def bytes_of(self, usage: PoolUsage) -> int:
        """Return the bytes in use by one holder."""
        with self._lock:
            victims = self._collect()
        del victims
        return usage.bytes_in_use

    def reserve(self, size_bytes: int) -> Reserve:
        """Set memory aside in one piece, from which buffers are taken before fresh memory is.

        It is freed when what this returns, all arrays in it and what is idle of it are gone;
        `Reserve.release` drops what is idle.
        """
        size = -(-size_bytes // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
        reserve = Reserve(self, self._fresh(size))
        with self._lock:
            self._reserves.append(weakref.ref(reserve))
        return reserve

    def _live_reserves(self) -> list[Reserve]:
        """The reserves that are still there, and not released. Needs the lock."""
        known = [ref() for ref in self._reserves]
        if any(reserve is not None and reserve.is_released for reserve in known):
            self._drop_idle_parts(released=True)
        found = [r for r in known if r is not None and not r.is_released]
        self._reserves = [weakref.ref(reserve) for reserve in found]
        return found

    def _from_reserves(self, size: int) -> Block | None:
        """A buffer of reserved memory, if there is any. Needs the lock."""
        reserves = self._live_reserves()
        for attempt in range(2):
            for reserve in reserves:
                part = reserve.take(size)
                if part is not None:
                    return part
            # What is idle in other sizes may give one of this size.
            if attempt or not self._drop_idle_parts():
                break
        return None

    def _drop_idle_parts(self, *, released: bool = False) -> bool:
        """Give idle parts back to their reserves, or to those that are released, and return whether
        there were any. Needs the lock.
        """
        dropped = False
        for stack in self._idle.values():
            parts = [
                block
                for block in stack
                if type(block) is _SubBlock and (block.reserve.is_released or not released)
            ]
            if parts:
                dropped = True
                self._idle_bytes -= sum(block.size for block in parts)
                gone = set(map(id, parts))
                kept = [block for block in stack if id(block) not in gone]
                stack.clear()
                stack.extend(kept)
        self._least_idle_bytes = min(self._least_idle_bytes, self._idle_bytes)
        return dropped

    def trim(self, keep_bytes: int = 0) -> int:
        """Free idle buffers, the longest unused first, until at most `keep_bytes` are idle."""
        if keep_bytes < 0:
            raise ArgumentValueError(f"`keep_bytes` must be >= 0, got {keep_bytes}.")
        with self._lock:
            victims = self._collect() + self._evict(keep_bytes)
        return sum(block.size for block in victims)

    def _take(self, size: int, usage: PoolUsage | None) -> Block:
        sizes = size_classes(size, BUFFER_SETTINGS.host_growth)
        block = None
        with self._lock:
            victims = self._collect() if self._returned else _NONE
            idle = self._idle
            for wanted in sizes:
                stack = idle.get(wanted)
                if stack:
                    block = stack.pop()
                    self._idle_bytes -= block.size
                    self._reused += 1
                    if self._idle_bytes < self._least_idle_bytes:
                        self._least_idle_bytes = self._idle_bytes
                    if not self._reused & (_REQUESTS_A_CHECK - 1):
                        victims = victims + self._shrink(block.size)
                    break
            else:
                if self._reserves:
                    block = self._from_reserves(sizes[0])
                if block is None:
                    self._made += 1
                else:
                    self._reused += 1
            taken = sizes[0] if block is None else block.size
            self._lent_bytes += taken
            if usage is not None:
                usage.bytes_in_use += taken
        del victims  # freed outside of the lock: unmapping large buffers takes time
        if block is not None:
            return block
        try:
            return self._fresh(sizes[0])
        except BaseException:
            with self._lock:
                self._lent_bytes -= taken
                if usage is not None:
                    usage.bytes_in_use -= taken
            raise

    def _shrink(self, taken_bytes: int) -> list[Block]:
        """Free memory not needed since the last call, if it is much. Needs the lock.

        `taken_bytes` are being taken, and not counted yet.
        """
        unneeded, self._least_idle_bytes = self._least_idle_bytes, self._idle_bytes
        for size in [size for size, stack in self._idle.items() if not stack]:
            del self._idle[size]
        if not (self.shrinks and unneeded):
            return _NONE
        held = self._lent_bytes + taken_bytes + self._idle_bytes
        if held - unneeded >= BUFFER_SETTINGS.host_shrink * held:
            return _NONE
        return self._evict(self._idle_bytes - unneeded)

    def _fresh(self, size: int) -> Block:
        return Block(size)

    def _collect(self) -> list[Block]:
        """File the returned buffers as idle; return those beyond the limit. Needs the lock."""
        returned = self._returned
        while returned:
            lease = returned.popleft()  # only the holder of the lock takes from here
            del self._leases[id(lease.block)]
            self._lent_bytes -= lease.block.size
            if lease.usage is not None:
                lease.usage.bytes_in_use -= lease.block.size
            self._file(lease.block)
        if self._idle_bytes <= self.idle_limit_bytes:
            return _NONE
        return self._evict(self.idle_limit_bytes)

    def _file(self, block: Block) -> None:
        """Make `block` an idle one. Needs the lock."""
        if type(block) is _SubBlock and block.reserve.is_released:
            return  # it must not be used again
        stack = self._idle.get(block.size)
        if stack is None:
            stack = self._idle[block.size] = deque()
        self._clock += 1
        block.idle_since = self._clock
        stack.append(block)
        self._idle_bytes += block.size

    def _evict(self, keep_bytes: int) -> list[Block]:
        """Drop idle buffers down to `keep_bytes` and return them. Needs the lock."""
        victims = []
        while self._idle_bytes > keep_bytes:
            oldest = min(
                (stack for stack in self._idle.values() if stack),
                key=lambda stack: stack[0].idle_since,
                default=None,
            )
            if oldest is None:
                self._idle_bytes = 0
                break
            block = oldest.popleft()
            self._idle_bytes -= block.size
            victims.append(block)
        self._least_idle_bytes = min(self._least_idle_bytes, self._idle_bytes)
        return victims

    def _after_fork(self) -> None:
        # A thread of the parent may have been in a locked section; it does not exist here. What
        # was idle is left to the parent.
        self._lock = threading.Lock()
        self._idle = {}
        self._idle_bytes = self._least_idle_bytes = 0
        self._reserves = []
        while self._returned:
            block = self._returned.popleft().block
            del self._leases[id(block)]
            self._lent_bytes -= block.size


class PoolShare(HostPool):
    """A pool as one pipeline uses it: what is in use of it is counted."""

    def __init__(self, pool: HostPool) -> None:
        self._pool = pool
        self._usage = PoolUsage()
        self.memory = pool.memory
        self.is_page_locked = pool.is_page_locked
        self.is_ordinary = pool.is_ordinary
        self.empty = functools.partial(pool.empty, usage=self._usage)  # type: ignore[method-assign]

    @property
    def bytes_in_use(self) -> int:
        """Memory that was taken through the share and is in use."""
        return self._pool.bytes_of(self._usage)

    def stats(self) -> PoolStats:
        """Those of the whole pool."""
        return self._pool.stats()

    def held(self) -> tuple[int, int]:
        """Return the bytes that the whole pool has lent and keeps."""
        return self._pool.held()

    def reserve(self, size_bytes: int) -> Reserve:
        """Set memory of the pool aside; any request may take it."""
        return self._pool.reserve(size_bytes)


def no_memory(shape: Sequence[int], dtype: np.dtype, size_bytes: int) -> MemoryError:
    """The error to raise where there is no memory for an array."""
    return MemoryError(
        f"There is no memory for an array of shape {tuple(shape)} and type {dtype}, which takes "
        f"{size_bytes} bytes."
    )


def memory_of(array: np.ndarray) -> RawMemory | None:
    """The memory of a pool that an array lies in; `None` if it is not of a pool."""
    found: object = array
    while isinstance(found, np.ndarray):
        if isinstance(found, RawMemory):
            return found
        found = found.base
    return None


def memory_bytes() -> int:
    """Memory this process may use: of the machine, or of its container where that is less."""
    try:
        total = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, OSError, ValueError):  # Windows has no sysconf
        total = 8 << 30
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            with open(path) as file:
                return min(total, int(file.read()))
        except (OSError, ValueError):  # no such controller, or "max"
            continue
    return total


_pools: weakref.WeakSet[HostPool] = weakref.WeakSet()


def trim_host_pools() -> int:
    """Free idle memory of all pools; return how many bytes that were."""
    return sum(pool.trim() for pool in list(_pools))


def _reset_locks_after_fork() -> None:
    for pool in list(_pools):
        pool._after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_locks_after_fork)

HOST_POOL = HostPool()
"""The pool that pipelines and tensors of this process share."""
