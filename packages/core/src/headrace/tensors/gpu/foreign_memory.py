"""Memory of other libraries, which is not given back to them while work of ours still reads it.

Their allocators know nothing of our streams: PyTorch's hands out memory again the moment its last
tensor is gone. So its owner is kept, once it is not needed here any more, until events after the
work of all streams that read it have passed. No thread waits for that; it is checked whenever other
memory comes in.
"""

from __future__ import annotations

import threading
from collections import deque
from typing import TYPE_CHECKING, Any

from headrace.tensors.gpu.streams import noted

if TYPE_CHECKING:
    from headrace.tensors.gpu.runtime import Event, Runtime

_lock = threading.Lock()
_dropped: deque[tuple[Runtime, tuple[int, ...], Any]] = deque()
_waiting: deque[tuple[list[Event], Any]] = deque()


class ForeignMemory:
    """Keeps the owner of memory, for as long as it exists and work that reads the memory goes
    on.
    """

    __slots__ = ("__weakref__", "_owner", "_runtime", "_streams", "is_scattered")

    def __init__(self, runtime: Runtime, owner: Any, *, is_scattered: bool = False) -> None:
        release_finished()
        self.is_scattered = is_scattered
        self._owner = owner
        self._runtime = runtime
        self._streams: tuple[int, ...] = ()

    def record_stream(self, stream: int) -> None:
        """Note that work of `stream` reads the memory, up to when this object is dropped."""
        self._streams = noted(self._streams, stream)

    def __del__(self) -> None:
        # Any thread may be anywhere now, also inside `release_finished`: this is one operation,
        # which needs no lock.
        if self._streams:
            _dropped.append((self._runtime, self._streams, self._owner))


def defer_release(runtime: Runtime, stream: int, owner: Any) -> None:
    """Keep `owner` until the work that `stream` has been given so far is done."""
    memory = ForeignMemory(runtime, owner)
    memory.record_stream(stream)


def release_finished() -> None:
    """Drop memory that is not read any more."""
    if not _dropped and not _waiting:
        return
    released = []
    with _lock:
        while _dropped:
            runtime, streams, owner = _dropped.popleft()
            with runtime.active():
                _waiting.append(([runtime.record(stream) for stream in streams], owner))
        for _ in range(len(_waiting)):
            events, owner = _waiting.popleft()
            for event in events:
                if not event.done():
                    _waiting.append((events, owner))
                    break
            else:
                released.append(owner)
    del released  # outside of the lock: their own code runs now
