"""Shards read side by side by threads, ahead of who wants the samples.

Inflating does not hold the interpreter's lock, so two threads on two shards are twice as fast. A
shard itself can only be inflated from its beginning, by one thread at a time, but any thread can go
on where another left off: the threads always work on what is needed next.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any

from headrace.errors import BadSampleError, UsageError
from headrace.plugin.squirrel.dataset import ShardSamples
from headrace.plugin.squirrel.order import ShardSegment

_POLL_SECONDS = 0.5
"""A Ctrl-C that comes just as a thread falls asleep does not wake it."""
_JOIN_SECONDS = 2.0

SKIPPED = object()
"""In place of a sample that is left out."""


class _SegmentState:
    """One segment while it is being read."""

    __slots__ = ("busy", "bytes", "done", "error", "next", "rank", "samples", "segment", "shard")

    def __init__(self, segment: ShardSegment, rank: int) -> None:
        self.segment = segment
        self.rank = rank
        """Rank of its samples among those of other streams: low numbers are needed first."""
        self.next = segment.start
        self.busy = False
        self.done = segment.stop is not None and segment.stop <= segment.start
        self.error: BaseException | None = None
        """Instead of sample number `next`, after which there is nothing more."""
        self.samples: dict[int, tuple[Any, int]] = {}
        self.bytes = 0
        self.shard: ShardSamples | None = None


class _SharedState:
    """State shared by the threads and their owner; the threads do not refer to the owner."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.work = threading.Condition(self.lock)
        self.ready = threading.Condition(self.lock)
        self.closed = False
        self.pid = os.getpid()
        self.streams: list[_SegmentState] = []
        self.reading: list[int] = []
        """Slots that are not read to the end, in order."""
        self.segments: Iterator[ShardSegment] = iter(())
        self.exhausted = False
        self.wanted: dict[tuple[int, int], int] = {}
        """Numbers of waiters for each sample: these samples come first, and no limit delays
        them.
        """
        self.bytes = 0
        self.count = 0
        self.total = 0
        self.held = 0
        self.lanes = 1
        self.width = 1
        self.limit = 0
        self.open: Callable[[Any], ShardSamples] = _not_open
        self.convert: Callable[[Any, str, int], tuple[Any, int]] = _not_open
        self.unneeded: Callable[[int, int], bool] | None = None

    # -- all of these need the lock ------------------------------------------------------------

    def activate(self) -> bool:
        """Begin with the next segment; whether there is one."""
        if self.exhausted:
            return False
        segment = next(self.segments, None)
        if segment is None:
            self.exhausted = True
            return False
        slot = len(self.streams)
        if self.lanes == 1:
            rank = slot << 40
        else:
            others = [self._progress(s) for s in self.reading]
            rank = min(others, default=0) if slot >= self.lanes else 0
        self.streams.append(_SegmentState(segment, rank))
        if not self.streams[-1].done:
            self.reading.append(slot)
        return True

    def _progress(self, slot: int) -> int:
        stream = self.streams[slot]
        return stream.rank + stream.next - stream.segment.start

    def pick(self) -> int | None:
        """The slot to work on next, `None` if there is nothing to do now."""
        for slot, number in self.wanted:
            stream = self.streams[slot]
            if not stream.busy and not stream.done and number >= stream.next:
                return slot
        while len(self.reading) < self.width and self.activate():
            pass
        limit = self.limit + self.held * (self.total // max(self.count, 1))
        full = self.bytes >= limit
        head = self.reading[: 1 if self.lanes == 1 else self.lanes]
        best, best_progress = None, 0
        for slot in self.reading:
            stream = self.streams[slot]
            if stream.busy:
                continue
            # What is needed first may always have something ahead, or threads that read further
            # on would use up all memory and stop it.
            share = limit // (4 * len(head))
            if full and (slot not in head or stream.bytes >= share):
                continue
            progress = self._progress(slot)
            if best is None or progress < best_progress:
                best, best_progress = slot, progress
        return best


def _not_open(*_: Any) -> Any:
    raise AssertionError("no reader")


class SegmentReader:
    """The samples of a list of segments, decoded by threads before they are asked for.

    `convert`: takes a sample, the name of its shard and its number; returns what is to be handed
    out (or `SKIPPED`), and how many bytes of memory it takes.
    """

    def __init__(
        self,
        segments: Iterator[ShardSegment],
        *,
        open_shard: Callable[[Any], ShardSamples],
        convert: Callable[[Any, str, int], tuple[Any, int]],
        lanes: int,
        workers: int,
        readahead_bytes: int,
        held: int = 0,
        unneeded: Callable[[int, int], bool] | None = None,
    ) -> None:
        shared = self._shared = _SharedState()
        shared.segments = segments
        shared.open = open_shard
        shared.convert = convert
        shared.lanes = lanes
        # A thread without work at the end of a segment begins with the next one.
        shared.width = max(lanes, workers) + 1
        shared.limit = readahead_bytes
        shared.held = held
        shared.unneeded = unneeded
        _alive.add(shared)
        self._threads = [
            threading.Thread(
                target=_work, args=(shared,), name=f"headrace-squirrel-{k}", daemon=True
            )
            for k in range(workers)
        ]
        self._finalizer = weakref.finalize(self, _close, shared)
        for thread in self._threads:
            thread.start()
            _threads.add(thread)

    def segment(self, slot: int) -> ShardSegment | None:
        """Segment number `slot`; `None` after the last."""
        shared = self._shared
        with shared.lock:
            while len(shared.streams) <= slot:
                if not shared.activate():
                    return None
            shared.work.notify()
            return shared.streams[slot].segment

    def has(self, slot: int, number: int) -> bool:
        """True if segment `slot` has sample `number` of its shard; waits until that is known."""
        shared = self._shared
        with shared.lock:
            stream = shared.streams[slot]
            stop = stream.segment.stop
            if stop is not None:
                return number < stop
            self._wait(stream, slot, number)
            return number < stream.next or stream.error is not None

    def take(self, slot: int, number: int, *, keep: bool = False) -> Any:
        """Sample `number` of segment `slot`, or `SKIPPED`; waits for it."""
        shared = self._shared
        with shared.lock:
            while len(shared.streams) <= slot and shared.activate():
                pass
            stream = shared.streams[slot]
            self._wait(stream, slot, number)
            if number >= stream.next and number not in stream.samples:
                if stream.error is not None:
                    raise _again(stream.error)
                raise BadSampleError(
                    f"The shard {stream.segment.shard!r} has {stream.next} samples, where it had "
                    "more when they were counted. Was it written anew?"
                )
            if keep:
                return stream.samples[number][0]
            value, size = stream.samples.pop(number)
            stream.bytes -= size
            shared.bytes -= size
            shared.work.notify()
            return value

    def _wait(self, stream: _SegmentState, slot: int, number: int) -> None:
        shared = self._shared
        if number < stream.next or stream.done:
            return
        if self._shared.pid != os.getpid():
            raise UsageError(
                "The threads that read the data set are in another process, of which this one is "
                "a fork. Make a source in each process."
            )
        place = (slot, number)
        shared.wanted[place] = shared.wanted.get(place, 0) + 1
        shared.work.notify()
        try:
            while number >= stream.next and not stream.done:
                if shared.closed:
                    raise UsageError("The source was closed while its samples were awaited.")
                shared.ready.wait(_POLL_SECONDS)
        finally:
            shared.wanted[place] -= 1
            if not shared.wanted[place]:
                del shared.wanted[place]

    @property
    def bytes_ahead(self) -> int:
        """Bytes that are decoded and not taken yet."""
        return self._shared.bytes

    def close(self) -> None:
        """Stop the threads and forget everything."""
        self._finalizer()
        if self._shared.pid == os.getpid():
            for thread in self._threads:
                if thread is not threading.current_thread():
                    thread.join(_JOIN_SECONDS)


def _again(error: BaseException) -> BaseException:
    """`error` for one more who asked: an exception's traceback grows each time it is raised."""
    if isinstance(error, BadSampleError):
        again = type(error)(*error.args)
        again.__cause__ = error
        return again
    return error


def _close(shared: _SharedState) -> None:
    if shared.pid != os.getpid():
        return  # a fork has none of the threads, and one of them may have held the lock
    with shared.lock:
        shared.closed = True
        for stream in shared.streams:
            stream.samples.clear()
            if stream.shard is not None and not stream.busy:
                stream.shard.close()
                stream.shard = None
        shared.bytes = 0
        shared.work.notify_all()
        shared.ready.notify_all()


def _work(shared: _SharedState) -> None:
    """Loop of a thread until the reader is closed."""
    while True:
        with shared.lock:
            while not shared.closed:
                try:
                    slot = shared.pick()
                except Exception as failed:  # the keys come from the user's code
                    _fail_everything(shared, failed)
                    slot = None
                if slot is not None:
                    break
                shared.work.wait()
            if shared.closed:
                return
            stream = shared.streams[slot]  # type: ignore[index]
            stream.busy = True
            number = stream.next
            needed = shared.unneeded is None or not shared.unneeded(slot, number)  # type: ignore[arg-type]
        value, size = None, 0
        error: BaseException | None = None
        try:
            value, size = _read_one(shared, stream, number, needed=needed)
        except BaseException as failed:  # whatever it is, a thread waits for the sample
            error = failed
        with shared.lock:
            stream.busy = False
            ended = error is not None or value is None
            if not ended:
                stream.next = number + 1
                if needed and not shared.closed:
                    stream.samples[number] = (value, size)
                    stream.bytes += size
                    shared.bytes += size
                    shared.total += size
                    shared.count += 1
                ended = stream.next == stream.segment.stop
            if ended or shared.closed:
                stream.error = error
                stream.done = True
                with contextlib.suppress(ValueError):
                    shared.reading.remove(slot)  # type: ignore[arg-type]
                shard, stream.shard = stream.shard, None
            else:
                shard = None
            shared.ready.notify_all()
            shared.work.notify()
        if shard is not None:
            shard.close()
        del value, error, shard, stream


def _read_one(
    shared: _SharedState, stream: _SegmentState, number: int, *, needed: bool
) -> tuple[Any, int]:
    """Sample `number` of `stream`, and its size in bytes; `None` at the end of the shard."""
    shard = stream.shard
    if shard is None:
        shard = stream.shard = shared.open(stream.segment.shard)
    while shard.number < number:
        if not shard.skip():
            return None, 0
    if not needed:
        return (SKIPPED, 0) if shard.skip() else (None, 0)
    sample = shard.next()
    if sample is None:
        return None, 0
    return shared.convert(sample, stream.segment.shard, number)


def _fail_everything(shared: _SharedState, error: Exception) -> None:
    """Raise `error` in all threads that wait."""
    shared.exhausted = True
    stream = _SegmentState(ShardSegment(""), 1 << 62)
    stream.error, stream.done = error, True
    shared.streams.append(stream)
    shared.ready.notify_all()


_threads: weakref.WeakSet[threading.Thread] = weakref.WeakSet()
_alive: weakref.WeakSet[_SharedState] = weakref.WeakSet()


@atexit.register
def _stop_all() -> None:
    # A daemon thread must not be in the middle of something while the interpreter is torn down.
    for shared in list(_alive):
        _close(shared)
    for thread in list(_threads):
        if thread.is_alive():
            thread.join(_JOIN_SECONDS)
