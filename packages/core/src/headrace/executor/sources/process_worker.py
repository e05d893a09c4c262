"""Main loop of a worker process: tasks come in, samples go out through shared memory."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from multiprocessing.connection import wait
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.executor.packed_error import PackedError
from headrace.executor.sources.channel import Channel
from headrace.executor.sources.segments import SegmentWriter, SharedSegment
from headrace.operators.support.external.parallel.tasks import RewindTask, SourceRunner, Traits
from headrace.operators.support.external.parallel.wire_format import write

if TYPE_CHECKING:
    import socket

_POLL_SECONDS = 1.0
_AT_WORK = 0.02
"""Share of a processor from which on a process counts as computing."""
_LARGEST_GUESS_BYTES = 1 << 33
_is_worker = False


def in_worker_process() -> bool:
    """Return True if this process was started to run sources."""
    return _is_worker


@dataclass(frozen=True)
class WorkerSources:
    """The sources of a pipeline, for a worker."""

    traits: list[Traits]
    plain: list[Any] | None
    """The sources, for a fork."""
    packed: list[bytes]
    """The sources, for a process that is started anew."""
    loads: tuple[Callable[..., Any], dict[str, Any]] | None

    def unpack(self) -> list[SourceRunner]:
        """The sources, ready to run."""
        if self.plain is not None:
            found = self.plain
        else:
            assert self.loads is not None
            loads, keywords = self.loads
            found = [loads(each, **keywords) for each in self.packed]
        return [SourceRunner(s, t) for s, t in zip(found, self.traits, strict=True)]


@dataclass(frozen=True)
class Report:
    """State that a worker reports on request."""

    handle: int | None
    """The task it is at."""
    seconds: float
    """For how long the source has not returned."""
    idle_seconds: float
    """For how long it has not computed anything either."""
    stack: str


class _Watch(threading.Thread):
    """Ends the process when its parent is gone, and reports on its present task.

    The thread that works may be anywhere in the user's code, for any time.
    """

    def __init__(self, channel: Channel, *, own_child: bool) -> None:
        super().__init__(name="headrace-watch", daemon=True)
        self._channel = channel
        self._parent = multiprocessing.parent_process()
        self._parent_id = os.getppid() if own_child else None
        self._worked = threading.main_thread().ident
        self.handle: int | None = None
        self.since = time.monotonic()

    def run(self) -> None:
        awaited: list[Any] = [self._channel]
        if self._parent is not None:
            awaited.append(self._parent.sentinel)
        looked = busy = time.monotonic()
        used = time.process_time() - time.thread_time()
        while True:
            ready: list[Any] = wait(awaited, _POLL_SECONDS)
            # Its own work, the reports, does not count.
            now, cpu = time.monotonic(), time.process_time() - time.thread_time()
            if now - looked > _POLL_SECONDS / 2:  # of shorter times nothing can be said
                if cpu - used > _AT_WORK * (now - looked):
                    busy = now
                looked, used = now, cpu
            orphaned = self._parent_id is not None and os.getppid() != self._parent_id
            if orphaned or any(each is not self._channel for each in ready):
                os._exit(1)
            if self._channel in ready:
                try:
                    self._channel.receive()
                    seconds = now - self.since
                    idle = min(now - busy, seconds)
                    self._channel.send(Report(self.handle, seconds, idle, self._stack()))
                except (OSError, EOFError):
                    if self.handle is not None:
                        os._exit(0)  # the source is not used any more
                    return

    def _stack(self) -> str:
        frame = sys._current_frames().get(self._worked or 0)
        return "".join(traceback.format_stack(frame)[-4:]) if frame is not None else ""


class _SourceWorker:
    """The loop of a worker process."""

    def __init__(self, channel: Channel, watch: _Watch, runners: Sequence[SourceRunner]) -> None:
        self._channel = channel
        self._watch = watch
        self._runners = runners
        self._segments = SegmentWriter(self._announce)
        self._tasks: deque[tuple[int, int, Any]] = deque()
        self._segment: SharedSegment | None = None

    def _announce(self, number: int, file: int, size: int) -> None:
        self._channel.send(("segment", number, size), file)

    def run(self) -> None:
        """Work until the other end is closed."""
        while True:
            while not self._tasks or self._channel.ready():
                self._take_in()
            handle, source, task = self._tasks.popleft()
            self._watch.since = time.monotonic()
            self._watch.handle = handle
            message = self._result(handle, source, task)
            self._watch.handle = None
            self._channel.send(message)

    def _take_in(self) -> None:
        (kind, *content), _ = self._channel.receive()
        if kind == "task":
            self._tasks.append((content[0], content[1], content[2]))
            return
        if kind == "free":
            self._segments.give_back(content[0])
            return
        unwanted = set(content[0])  # kind == "cancel"
        # A restart is never cancelled: later tasks rely on it even if they are dropped.
        dropped = [t for t in self._tasks if t[0] in unwanted and not isinstance(t[2], RewindTask)]
        for one in dropped:
            self._tasks.remove(one)
            self._channel.send(("end", one[0]))

    def _progress(self) -> None:
        self._watch.since = time.monotonic()

    def _result(self, handle: int, source: int, task: Any) -> tuple[Any, ...]:
        runner = self._runners[source]
        self._segment = None
        try:
            parts = runner.run(task, self._progress)
            if not parts:
                return ("done", handle, None, [], [])
            count = max(len(part.samples) for part in parts)
            hint = min(runner.bytes_per_sample * count * len(parts), _LARGEST_GUESS_BYTES)
            described = write(parts, lambda size: self._take(size, hint))
        except StopIteration:
            return ("end", handle)
        except BaseException as error:
            if self._segment is not None:
                self._segments.give_back([self._segment.number])
            return ("failed", handle, PackedError.of(error), runner.at)
        assert self._segment is not None
        dropped, self._segments.dropped = self._segments.dropped, []
        return ("done", handle, self._segment.number, described, dropped)

    def _take(self, size: int, hint: int) -> np.ndarray:
        self._segment = self._segments.take(size, hint)
        return self._segment.memory


def serve(
    connection: socket.socket,
    watched: socket.socket,
    inherited: Sequence[Any],
    sources: WorkerSources,
    *,
    own_child: bool,
) -> None:
    """Be a worker, until the other end of `connection` is closed."""
    global _is_worker
    _is_worker = True
    for end in inherited:
        end.close()
    # A Ctrl-C goes to all processes of the terminal; the parent decides what becomes of it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    channel = Channel(connection)
    watch = _Watch(Channel(watched), own_child=own_child)
    watch.start()
    try:
        try:
            runners = sources.unpack()
        except BaseException as error:
            channel.send(("broken", PackedError.of(error)))
            return
        _SourceWorker(channel, watch, runners).run()
    except (EOFError, OSError):
        return  # the parent is gone, or does not want any more
