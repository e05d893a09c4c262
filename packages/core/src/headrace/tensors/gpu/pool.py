"""Device memory and page-locked memory that come back when nothing can read them any more.

A piece of device memory is handed out to a stream. When its owner is dropped, work that reads it
may still be queued: on that stream, and on every stream the memory was passed on to
(`DeviceMemory.record_stream`). The same stream gets it again at once, since its work runs in order.
Any other gets it only when events after the work of all those streams have passed. No thread ever
waits for that: fresh memory is taken instead, until there is none.

Some writers do not keep to the order of a stream: nvJPEG's hardware decoder writes to its outputs
when it is called, whatever the stream still has to do. They ask for *quiesced* memory, which no
queued work uses any more, and which goes back after an event even if one stream alone has used it.
"""

from __future__ import annotations

import ctypes
import functools
import threading
import weakref
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from headrace.tensors.buffer_sizes import BUFFER_SETTINGS, size_classes
from headrace.tensors.gpu.streams import DEFAULT_STREAM, noted
from headrace.tensors.pool import PoolUsage
from headrace.tensors.ranges import FreeRanges

if TYPE_CHECKING:
    from headrace.tensors.gpu.runtime import Event, Runtime

_Found = TypeVar("_Found")
_ALIGNMENT_BYTES = 256
_SMALLEST_BYTES = 512
STAGING_BYTES = 1 << 18


class DeviceMemory:
    """A piece of device memory; it returns to its pool when this object is dropped.

    `address`: address of the first byte, aligned to 256 bytes. `size_bytes`: size, at least as
    requested.
    """

    __slots__ = (
        "__weakref__",
        "_pool",
        "_quiesces",
        "_streams",
        "_usage",
        "address",
        "size_bytes",
    )

    def __init__(
        self,
        pool: DevicePool,
        address: int,
        size_bytes: int,
        stream: int,
        quiesces: bool,
        usage: PoolUsage | None = None,
    ) -> None:
        self.address = address
        self.size_bytes = size_bytes
        self._pool = pool
        self._quiesces = quiesces
        self._streams: tuple[int, ...] = (stream,)
        self._usage = usage

    def record_stream(self, stream: int) -> None:
        """Note that work of `stream` reads or writes the memory, up to when it is dropped."""
        self._streams = noted(self._streams, stream)

    def __del__(self) -> None:
        # A single operation that needs no lock: an object may be dropped at any instant, also on a
        # thread that is inside the pool.
        self._pool._returned.append(
            (self.address, self.size_bytes, self._streams, self._quiesces, self._usage)
        )


class _Pending:
    """Memory that work of other streams than `home`, or of any, may still use.

    `address`: address of the first byte. `home`: the stream it was taken for, whose work needs no
    event to come after its own; None if there is an event for it, too. `events`: events after the
    work of all others.
    """

    __slots__ = ("address", "events", "home")

    def __init__(self, address: int, home: int | None, events: list[Event]) -> None:
        self.address = address
        self.home = home
        self.events = events


class DeviceReserve:
    """Device memory that is set aside for a pool, as long as this object or any part is there.

    All but its end is done under the lock of the pool.
    """

    def __init__(self, runtime: Runtime, size: int) -> None:
        self._runtime = runtime
        self.free = FreeRanges(size)
        self.address = runtime.allocate(size)

    def release(self) -> None:
        """Leave it to the pool, which keeps memory of the device until it is trimmed."""

    def __del__(self) -> None:
        address = getattr(self, "address", 0)
        if address:
            self._runtime.free(address)


class DevicePool:
    """Memory of one device.

    Sizes of pieces follow `BufferSettings.device_growth`. What the driver has given is kept until
    `trim`.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._lock = threading.Lock()
        self._returned: deque[tuple[int, int, tuple[int, ...], bool, PoolUsage | None]] = deque()
        self._idle: dict[tuple[int, int], list[int]] = {}
        """Blocks by stream and size, used by that stream alone."""
        self._pending: dict[int, deque[_Pending]] = {}
        """Blocks by size, used by several streams, or quiesced."""
        self._reserves: weakref.WeakSet[DeviceReserve] = weakref.WeakSet()
        self._parts: dict[int, DeviceReserve] = {}
        """By address, the reserve that a piece is a part of."""
        self.bytes_allocated = 0
        """Bytes obtained from the driver, without reserves."""
        self.allocations = 0
        """Number of requests to the driver."""

    def take(
        self,
        size_bytes: int,
        stream: int,
        *,
        quiesced: bool = False,
        usage: PoolUsage | None = None,
    ) -> DeviceMemory:
        """Take memory for work of `stream`. With `quiesced` no queued work may use it still. Raises
        `MemoryError` if the device has none left.
        """
        sizes = size_classes(max(size_bytes, _SMALLEST_BYTES), BUFFER_SETTINGS.device_growth)
        with self._lock:
            self._collect()
            for size in sizes:
                address = self._find(size, stream, quiesced)
                if address is not None:
                    break
            else:
                size = sizes[0]
                address = self._from_reserves(size) if self._reserves else None
            if usage is not None:
                usage.bytes_in_use += size
        if address is None:
            try:
                address = self._fresh(size)
            except BaseException:
                if usage is not None:
                    with self._lock:
                        usage.bytes_in_use -= size
                raise
        return DeviceMemory(self, address, size, stream, quiesced, usage)

    def bytes_of(self, usage: PoolUsage) -> int:
        """Return the bytes in use by one holder."""
        with self._lock:
            self._collect()
        return usage.bytes_in_use

    @property
    def bytes_held(self) -> int:
        """Bytes obtained from the driver."""
        return self.bytes_allocated + sum(reserve.free.size for reserve in self._reserves)

    def bytes_idle(self) -> int:
        """Memory that waits to be used again, be it that queued work still uses it."""
        with self._lock:
            self._collect()
            idle = sum(size * len(found) for (_, size), found in self._idle.items())
            idle += sum(size * len(found) for size, found in self._pending.items())
            return idle + sum(reserve.free.bytes_free for reserve in self._reserves)

    def reserve(self, size_bytes: int) -> DeviceReserve:
        """Set memory aside in one piece, which is taken before the driver is asked for more.

        It is freed when what this returns, and all that was taken of it, are gone.
        """
        size = -(-size_bytes // _ALIGNMENT_BYTES) * _ALIGNMENT_BYTES
        reserve = self._asked(lambda: DeviceReserve(self._runtime, size), size)
        self._reserves.add(reserve)
        return reserve

    def _from_reserves(self, size: int) -> int | None:
        """A piece of reserved memory, if there is any. Needs the lock."""
        taken = -(-size // _ALIGNMENT_BYTES) * _ALIGNMENT_BYTES
        for reserve in self._reserves:
            begin = reserve.free.take(taken)
            if begin is not None:
                self._parts[reserve.address + begin] = reserve
                return reserve.address + begin
        return None

    def _give_back(self, address: int, size: int) -> bool:
        """Give a piece back to the reserve that it is a part of, if it is one. Needs the lock."""
        reserve = self._parts.pop(address, None)
        if reserve is None:
            return False
        taken = -(-size // _ALIGNMENT_BYTES) * _ALIGNMENT_BYTES
        reserve.free.give_back(address - reserve.address, taken)
        return True

    def _collect(self) -> None:
        """File dropped blocks. The caller holds the lock."""
        returned = self._returned
        events: dict[int, Event] = {}
        while returned:
            address, size, streams, quiesces, usage = returned.popleft()
            if usage is not None:
                usage.bytes_in_use -= size
            home = None if quiesces else streams[0]
            others = streams if quiesces else streams[1:]
            if not others:
                self._idle.setdefault((streams[0], size), []).append(address)
                continue
            for stream in others:
                if stream not in events:
                    events[stream] = self._recorded(stream)
            pending = _Pending(address, home, [events[stream] for stream in others])
            self._pending.setdefault(size, deque()).append(pending)

    def _recorded(self, stream: int) -> Event:
        try:
            return self._runtime.record(stream)
        except RuntimeError:
            # A user's stream that is gone. The default stream waits for what other streams have
            # been given, those that are gone among them.
            return self._runtime.record(DEFAULT_STREAM)

    def _find(self, size: int, stream: int, quiesced: bool) -> int | None:
        """Idle memory for `stream`, if there is any. Needs the lock."""
        idle = None if quiesced else self._idle.get((stream, size))
        if idle:
            return idle.pop()
        pending = self._pending.get(size)
        if not pending:
            return None
        oldest = pending[0]
        if oldest.home is not None and (quiesced or oldest.home != stream):
            # Recorded only now, the event is after more than it has to be: no harm.
            oldest.events.append(self._recorded(oldest.home))
            oldest.home = None
        for event in oldest.events:
            if not event.done():
                return None
        return pending.popleft().address

    def _fresh(self, size: int) -> int:
        address = self._asked(lambda: self._runtime.allocate(size), size)
        with self._lock:
            self.bytes_allocated += size
        return address

    def _asked(self, allocate: Callable[[], _Found], size: int) -> _Found:
        """Allocate memory; free idle memory first if there is not enough."""
        self.allocations += 1
        try:
            return allocate()
        except MemoryError:
            self.trim()
        try:
            return allocate()
        except MemoryError as error:
            raise MemoryError(
                f"GPU {self._runtime.device_id} has no memory for {size} bytes; the pipelines "
                f"of this process hold {self.bytes_allocated} bytes of it. Use a smaller batch, "
                "a smaller `prefetch_queue_depth`, or `memory_limit_bytes`."
            ) from error

    def trim(self) -> int:
        """Give all idle memory back to the driver, after waiting for queued work that uses it;
        return the bytes freed.
        """
        with self._lock:
            self._collect()
            streams = {stream for stream, _ in self._idle}
            waits = [self._runtime.record(stream) for stream in streams]
            pending = [(piece, size) for size, found in self._pending.items() for piece in found]
            homes = {piece.home for piece, _ in pending if piece.home is not None}
            waits += [self._recorded(stream) for stream in homes]
            waits += [event for piece, _ in pending for event in piece.events]
            victims = [(a, size) for (_, size), found in self._idle.items() for a in found]
            victims += [(piece.address, size) for piece, size in pending]
            self._idle.clear()
            self._pending.clear()
            parts = [piece for piece in victims if piece[0] in self._parts]
            victims = [piece for piece in victims if piece[0] not in self._parts]
            self.bytes_allocated -= sum(size for _, size in victims)
        for event in waits:
            event.synchronize()
        for address, _ in victims:
            self._runtime.free(address)
        reserved = sum(reserve.free.size for reserve in self._reserves)
        with self._lock:
            for address, size in parts:
                self._give_back(address, size)
        parts.clear()
        freed = reserved - sum(reserve.free.size for reserve in self._reserves)
        return freed + sum(size for _, size in victims)


class DevicePoolShare:
    """A pool as one pipeline uses it: what is in use of it is counted.

    `take`: `DevicePool.take`.
    """

    def __init__(self, pool: DevicePool) -> None:
        self._pool = pool
        self._usage = PoolUsage()
        self.take = functools.partial(pool.take, usage=self._usage)
        self.bytes_idle = pool.bytes_idle
        self.reserve = pool.reserve

    @property
    def bytes_in_use(self) -> int:
        """Memory that was taken through the share and is in use."""
        return self._pool.bytes_of(self._usage)

    @property
    def bytes_held(self) -> int:
        """Bytes that the whole pool obtained from the driver."""
        return self._pool.bytes_held


class PinnedBuffer:
    """A piece of page-locked host memory, which belongs to its holder until it is given back.

    `address`: address of the first byte. `view`: the memory as bytes. Not an array: NumPy lets go
    of the interpreter while it copies more than a few hundred elements, and to get it back takes
    longer than the copy.
    """

    __slots__ = ("address", "size_bytes", "view")
    is_page_locked = True

    def __init__(self, runtime: Runtime, size_bytes: int) -> None:
        self.address = runtime.allocate_pinned(size_bytes)
        self.size_bytes = size_bytes
        raw = (ctypes.c_ubyte * size_bytes).from_address(self.address)
        self.view = memoryview(raw).cast("B")


class PlainMemory:
    """A piece of host memory that is not page-locked; attributes as of `PinnedBuffer`."""

    __slots__ = ("address", "size_bytes", "view")
    is_page_locked = False

    def __init__(self, size_bytes: int) -> None:
        memory = np.empty(size_bytes, np.uint8)
        self.view = memory.data
        self.address = memory.ctypes.data
        self.size_bytes = size_bytes


class StagingPool:
    """Host memory for uploads: page-locked for large ones, plain for many small ones together.

    The host writes the memory, so it is reused only once copies are done: the user of a piece
    gives it back after an event.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._idle: deque[PinnedBuffer | PlainMemory] = deque()

    def take(self, size_bytes: int) -> PinnedBuffer | PlainMemory:
        """A piece of at least `size_bytes`."""
        if size_bytes <= STAGING_BYTES:
            try:
                return self._idle.pop()
            except IndexError:
                return PlainMemory(STAGING_BYTES)
        return PinnedBuffer(self._runtime, size_bytes)

    def give_back(self, memory: PinnedBuffer | PlainMemory) -> None:
        """Take back a piece that no copy reads any more."""
        if memory.is_page_locked:
            self._runtime.free_pinned(memory.address)
        else:
            self._idle.append(memory)
