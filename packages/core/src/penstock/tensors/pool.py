"""Host memory that comes back: 64-byte-aligned buffers, reused once their last user is gone.

An array from `HostPool.empty` is an ordinary NumPy array. Its buffer returns to the pool when the
array and everything made from it (views, DLPack imports, memory views, framework tensors) has been
dropped, with no call by anybody.

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

from penstock.errors import ArgumentValueError

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

ALIGNMENT_BYTES = 64
"""One cache line, and the widest vector register; what XLA asks for to import without a copy."""

_ndarray = np.ndarray
_NONE: list[Any] = []
_uint8 = np.dtype(np.uint8)


class Memory(np.ndarray):
    """Raw memory. Its own type, so that NumPy stops here when it looks for the base of a view."""

    __slots__ = ()


class Block:
    """One piece of memory that the pool owns, lent to at most one array at a time."""

    __slots__ = ("idle_since", "memory", "offset", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self.idle_since = 0
        self.memory = Memory.__new__(Memory, (size + ALIGNMENT_BYTES,), _uint8)
        self.offset = -self.memory.__array_interface__["data"][0] % ALIGNMENT_BYTES


class _Lease(weakref.ref):  # type: ignore[type-arg]
    """Weak reference to the array that has borrowed `block`."""

    __slots__ = ("block",)
    block: Block


@dataclass(frozen=True)
class PoolStats:
    """What a pool holds and has done."""

    bytes_in_use: int
    """Memory behind arrays that are alive."""
    bytes_idle: int
    """Memory that waits to be reused."""
    buffers_in_use: int
    """Number of buffers behind arrays that are alive."""
    buffers_idle: int
    """Number of buffers that wait to be reused."""
    buffers_made: int
    """Buffers allocated since the pool was made."""
    buffers_reused: int
    """Requests served by an idle buffer since the pool was made."""


@functools.lru_cache(maxsize=4096)
def size_class(size_bytes: int) -> int:
    """Size of the buffer that serves `size_bytes`: four classes between powers of two.

    At most a quarter is wasted, and buffers for images of varying sizes still find each other.
    """
    granule = max(ALIGNMENT_BYTES, 1 << max(0, (size_bytes - 1).bit_length() - 3))
    return -(-size_bytes // granule) * granule


class HostPool:
    """Buffers of host memory for arrays, from any thread.

    Parameters
    ----------
    idle_limit_bytes
        Memory the pool may keep without a user; beyond it, the buffers unused for the longest
        time are freed with the next request. One eighth of the machine's (or the container's)
        memory when not given.
    """

    is_page_locked = False
    """Whether copies to and from a GPU run at full speed, and beside other work."""

    def __init__(self, idle_limit_bytes: int | None = None) -> None:
        if idle_limit_bytes is None:
            idle_limit_bytes = memory_bytes() // 8
        self.idle_limit_bytes = idle_limit_bytes
        # Guards what is idle, and the counters; no other lock is taken under it.
        self._lock = threading.Lock()
        # Idle buffers by size; of each size, the one returned last is at the right.
        self._idle: dict[int, deque[Block]] = {}
        self._idle_bytes = 0
        self._clock = 0
        # Leases of live arrays, by the identity of their block: what keeps the weak references
        # alive. Only ever touched by single dictionary operations, which need no lock.
        self._leases: dict[int, _Lease] = {}
        # Where leases are left when their arrays are freed; whoever comes next takes them from
        # here. An array may be freed at any instant, also on a thread that is inside one of the
        # locked sections (a garbage collection starts there), so nothing may wait for the lock.
        # And no Python code may run: were a signal handled in it, its exception would be ignored,
        # and so would a user's Ctrl-C.
        self._returned: deque[_Lease] = deque()
        self._made = 0
        self._reused = 0
        _pools.add(self)

    def empty(self, shape: int | Sequence[int], dtype: DTypeLike) -> np.ndarray:
        """An uninitialised C-contiguous array of this shape, its data aligned to 64 bytes.

        Raises
        ------
        MemoryError
            If there is not enough memory.
        """
        dtype = np.dtype(dtype)
        if isinstance(shape, int):
            shape = (shape,)
        size = math.prod(shape) * dtype.itemsize
        if size <= 0:
            return np.empty(shape, dtype)
        try:
            block = self._take(size)
        except (MemoryError, ValueError) as error:  # NumPy's error knows only the block
            raise MemoryError(
                f"There is no memory for an array of shape {tuple(shape)} and type {dtype}, "
                f"which takes {size} bytes."
            ) from error
        try:
            array: np.ndarray = _ndarray(shape, dtype, block.memory, block.offset)
            lease = _Lease(array, self._returned.append)
        except BaseException:
            with self._lock:
                self._file(block)
            raise
        lease.block = block
        self._leases[id(block)] = lease
        return array

    def copy_of(self, array: np.ndarray) -> np.ndarray:
        """A C-contiguous copy of `array` in memory of this pool."""
        result = self.empty(array.shape, array.dtype)
        np.copyto(result, array)
        return result

    def stats(self) -> PoolStats:
        """What the pool holds now and has done so far."""
        with self._lock:
            victims = self._collect()
            blocks = [lease.block for lease in list(self._leases.values())]
            result = PoolStats(
                bytes_in_use=sum(block.size for block in blocks),
                bytes_idle=self._idle_bytes,
                buffers_in_use=len(blocks),
                buffers_idle=sum(map(len, self._idle.values())),
                buffers_made=self._made,
                buffers_reused=self._reused,
            )
        del victims
        return result

    def trim(self, keep_bytes: int = 0) -> int:
        """Free idle buffers, the longest unused first, until at most `keep_bytes` are idle.

        Returns
        -------
        int
            Bytes freed.
        """
        if keep_bytes < 0:
            raise ArgumentValueError(f"`keep_bytes` must be >= 0, got {keep_bytes}.")
        with self._lock:
            victims = self._collect() + self._evict(keep_bytes)
        return sum(block.size for block in victims)

    def _take(self, size: int) -> Block:
        wanted = size_class(size)
        with self._lock:
            victims = self._collect() if self._returned else _NONE
            stack = self._idle.get(wanted)
            if not stack:
                # The next class up is better than fresh memory, whose pages must be faulted in.
                stack = self._idle.get(size_class(wanted + 1))
            if stack:
                block = stack.pop()
                self._idle_bytes -= block.size
                self._reused += 1
            else:
                block = None
                self._made += 1
        del victims  # freed outside of the lock: unmapping large buffers takes time
        return self._fresh(wanted) if block is None else block

    def _fresh(self, size: int) -> Block:
        return Block(size)

    def _collect(self) -> list[Block]:
        """File the returned buffers as idle; return those beyond the limit. Needs the lock."""
        returned = self._returned
        while returned:
            lease = returned.popleft()  # only the holder of the lock takes from here
            del self._leases[id(lease.block)]
            self._file(lease.block)
        if self._idle_bytes <= self.idle_limit_bytes:
            return _NONE
        return self._evict(self.idle_limit_bytes)

    def _file(self, block: Block) -> None:
        """Make `block` an idle one. Needs the lock."""
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
        return victims

    def _after_fork(self) -> None:
        # A thread of the parent may have been in a locked section; it does not exist here. What
        # was idle is left to the parent.
        self._lock = threading.Lock()
        self._idle = {}
        self._idle_bytes = 0
        while self._returned:
            del self._leases[id(self._returned.popleft().block)]


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
