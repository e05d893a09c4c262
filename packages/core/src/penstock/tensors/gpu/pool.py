"""Device memory and page-locked memory that come back when nothing can read them any more.

A piece of device memory is handed out to a stream. When its owner is dropped, work that reads it
may still be queued: on that stream, and on every stream the memory was passed on to
(`DeviceMemory.record_stream`). The same stream gets it again at once, since its work runs in order.
Any other gets it only when events behind the work of all those streams have passed. Nobody ever
waits for that: fresh memory is taken instead, until there is none.

Some writers do not keep to the order of a stream: nvJPEG's hardware decoder writes to its outputs
when it is called, whatever the stream still has to do. They ask for *quiesced* memory, which no
queued work uses any more, and which goes back behind an event even if one stream alone has used it.
"""

from __future__ import annotations

import ctypes
import threading
from collections import deque
from typing import TYPE_CHECKING

import numpy as np

from penstock.tensors.gpu.streams import DEFAULT_STREAM, noted
from penstock.tensors.pool import size_class

if TYPE_CHECKING:
    from penstock.tensors.gpu.runtime import Event, Runtime

_SMALLEST_BYTES = 512
STAGING_BYTES = 1 << 18


class DeviceMemory:
    """A piece of device memory; it returns to its pool when this object is dropped.

    Attributes
    ----------
    address
        Where it begins, aligned to 256 bytes.
    size_bytes
        How long it is, at least what was asked for.
    """

    __slots__ = ("__weakref__", "_pool", "_quiesces", "_streams", "address", "size_bytes")

    def __init__(
        self, pool: DevicePool, address: int, size_bytes: int, stream: int, quiesces: bool
    ) -> None:
        self.address = address
        self.size_bytes = size_bytes
        self._pool = pool
        self._quiesces = quiesces
        self._streams: tuple[int, ...] = (stream,)

    def record_stream(self, stream: int) -> None:
        """Note that work of `stream` reads or writes the memory, up to when it is dropped."""
        self._streams = noted(self._streams, stream)

    def __del__(self) -> None:
        # A single operation that needs no lock: an object may be dropped at any instant, also on a
        # thread that is inside the pool.
        self._pool._returned.append((self.address, self.size_bytes, self._streams, self._quiesces))


class _Pending:
    """Memory that work of other streams than `home`, or of any, may still use.

    Attributes
    ----------
    address
        Where it begins.
    home
        The stream it was taken for, whose work needs no event to come behind its own; None if there
        is an event for it, too.
    events
        Behind the work of all others.
    """

    __slots__ = ("address", "events", "home")

    def __init__(self, address: int, home: int | None, events: list[Event]) -> None:
        self.address = address
        self.home = home
        self.events = events


class DevicePool:
    """Memory of one device."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._lock = threading.Lock()
        self._returned: deque[tuple[int, int, tuple[int, ...], bool]] = deque()
        self._idle: dict[tuple[int, int], list[int]] = {}
        """By stream and size: what that stream alone has used."""
        self._pending: dict[int, deque[_Pending]] = {}
        """By size: what several streams have used, or is to settle."""
        self.bytes_allocated = 0

    def take(self, size_bytes: int, stream: int, *, quiesced: bool = False) -> DeviceMemory:
        """Memory for work of `stream`.

        Parameters
        ----------
        quiesced
            No work that is queued anywhere may use it still.

        Raises
        ------
        MemoryError
            If the device has none left.
        """
        size = size_class(max(size_bytes, _SMALLEST_BYTES))
        with self._lock:
            self._collect()
            address = self._find(size, stream, quiesced)
        if address is None:
            address = self._fresh(size)
        return DeviceMemory(self, address, size, stream, quiesced)

    def _collect(self) -> None:
        """File what was dropped. Needs the lock."""
        returned = self._returned
        events: dict[int, Event] = {}
        while returned:
            address, size, streams, quiesces = returned.popleft()
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
            # Recorded only now, the event is behind more than it has to be: no harm.
            oldest.events.append(self._recorded(oldest.home))
            oldest.home = None
        for event in oldest.events:
            if not event.done():
                return None
        return pending.popleft().address

    def _fresh(self, size: int) -> int:
        try:
            address = self._runtime.allocate(size)
        except MemoryError:
            self.trim()
            try:
                address = self._runtime.allocate(size)
            except MemoryError as error:
                raise MemoryError(
                    f"GPU {self._runtime.device_id} has no memory for {size} bytes; the pipelines "
                    f"of this process hold {self.bytes_allocated} bytes of it. Use a smaller batch "
                    "or a smaller `prefetch_queue_depth`."
                ) from error
        with self._lock:
            self.bytes_allocated += size
        return address

    def trim(self) -> int:
        """Give all idle memory back to the driver, waiting for what still uses it.

        Returns
        -------
        int
            Bytes freed.
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
            self.bytes_allocated -= sum(size for _, size in victims)
        for event in waits:
            event.synchronize()
        for address, _ in victims:
            self._runtime.free(address)
        return sum(size for _, size in victims)


class PinnedMemory:
    """A piece of page-locked host memory, which belongs to its holder until it is given back.

    Attributes
    ----------
    address
        Where it begins.
    view
        The memory as bytes. Not an array: NumPy lets go of the interpreter while it copies more
        than a few hundred elements, and to get it back takes longer than the copy.
    """

    __slots__ = ("address", "size_bytes", "view")
    is_page_locked = True

    def __init__(self, runtime: Runtime, size_bytes: int) -> None:
        self.address = runtime.allocate_pinned(size_bytes)
        self.size_bytes = size_bytes
        raw = (ctypes.c_ubyte * size_bytes).from_address(self.address)
        self.view = memoryview(raw).cast("B")


class PlainMemory:
    """A piece of host memory that is not page-locked; attributes as of `PinnedMemory`."""

    __slots__ = ("address", "size_bytes", "view")
    is_page_locked = False

    def __init__(self, size_bytes: int) -> None:
        memory = np.empty(size_bytes, np.uint8)
        self.view = memory.data
        self.address = memory.ctypes.data
        self.size_bytes = size_bytes


class StagingPool:
    """Host memory for uploads: page-locked for large ones, plain for many small ones together.

    The host writes the memory, so it is reused only once copies are done: whoever takes a piece
    gives it back behind an event.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._idle: deque[PinnedMemory | PlainMemory] = deque()

    def take(self, size_bytes: int) -> PinnedMemory | PlainMemory:
        """A piece of at least `size_bytes`."""
        if size_bytes <= STAGING_BYTES:
            try:
                return self._idle.pop()
            except IndexError:
                return PlainMemory(STAGING_BYTES)
        return PinnedMemory(self._runtime, size_bytes)

    def give_back(self, memory: PinnedMemory | PlainMemory) -> None:
        """Take back a piece that no copy reads any more."""
        if memory.is_page_locked:
            self._runtime.free_pinned(memory.address)
        else:
            self._idle.append(memory)
