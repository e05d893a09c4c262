"""Access tracking for GPU memory: events after which it may be read, and reads to finish before its
reuse.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from headrace.tensors.gpu.batch import note_use
from headrace.tensors.gpu.streams import DEFAULT_STREAM, likely_streams, reading_stream

if TYPE_CHECKING:
    from headrace.tensors.gpu.runtime import Event, Runtime


class Access:
    """The way to memory that a stream writes, for readers on other streams and on the host.

    It keeps the memory alive. What is exported to other libraries is owned by it.
    """

    __slots__ = ("__weakref__", "event", "owners", "runtime", "stream")

    def __init__(
        self, runtime: Runtime, owners: tuple[Any, ...], stream: int | None, event: Event | None
    ) -> None:
        self.runtime = runtime
        self.owners = owners
        self.stream = stream
        self.event = event

    def grant(self, stream: int) -> None:
        """Let `stream` read the memory, in the work it is given from now on; the host goes on."""
        event = self.event
        if event is not None and stream != self.stream:
            with self.runtime.active():
                self.runtime.wait(stream, event)
        self.record_stream(stream)

    def grant_unknown(self) -> int | None:
        """Allow a read of the memory on an unknown stream.

        The `likely_streams` are let read.
        """
        for likely in likely_streams(self.runtime):
            self.grant(likely)
        if self.event is None or self.event.done():
            return None
        stream = self.runtime.acquire_stream()
        with self.runtime.active():
            self.runtime.wait(stream, self.event)
        self.runtime.release_stream(stream)
        return stream

    def grant_host(self) -> None:
        """Wait until the memory is written, for readers on any stream."""
        if self.event is not None:
            self.event.synchronize()
        self.record_stream(DEFAULT_STREAM)

    def record_stream(self, stream: int) -> None:
        """Note that work of `stream` reads the memory, up to when it is dropped."""
        note_use(self.owners, reading_stream(stream))

    def hold_back(self, streams: Iterable[int]) -> None:
        """Let work that is given to `streams` from now on start when the memory is written."""
        if self.event is None:
            return
        with self.runtime.active():
            for stream in streams:
                self.runtime.wait(stream, self.event)

    def pass_to(self, stream: int) -> None:
        """Make `stream` the one whose work on the memory readers wait for."""
        self.grant(stream)
        with self.runtime.active():
            self.event = self.runtime.record(stream)
        self.stream = stream


def joined(accesses: Iterable[Access]) -> Access:
    """One access to the memory of all, on one GPU."""
    every = list(dict.fromkeys(accesses))
    if len(every) == 1:
        return every[0]
    owners = {id(owner): owner for access in every for owner in access.owners}
    runtime = every[0].runtime
    waited = [access for access in every if access.event is not None]
    if not waited:
        return Access(runtime, tuple(owners.values()), None, None)
    stream = runtime.acquire_stream()
    try:
        for access in waited:
            access.grant(stream)
        with runtime.active():
            event = runtime.record(stream)
    finally:
        runtime.release_stream(stream)
    return Access(runtime, tuple(owners.values()), None, event)
