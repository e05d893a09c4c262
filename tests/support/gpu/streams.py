"""Streams that run late: work is done when somebody has to see it, and no earlier.

A real device runs ahead of the host or behind it by chance. Here it is always behind, as far as
events and waits allow: a wait that is missing, or memory that is used anew too early, gives wrong
values every time.

It also keeps count of what comes before what: each stream knows how much of every other stream's
work is done before the work that it is given next, through the waits that it was given and through
what the host has waited for. So a missing wait is found even where the values happen to be right.
"""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

LOCK = threading.RLock()
"""Held while streams of any device are changed or run."""

_POLLS_UNTIL_DONE = 3


class Work(NamedTuple):
    """One thing that a stream has been given."""

    what: str
    run: Callable[[], None] | None
    """`None` for the wait for an event."""
    event: LateEvent | None
    memory: tuple[int, ...]
    """Begins of the pieces of memory that it names."""


@dataclass(eq=False)
class LateStream:
    """Work in order."""

    number: int
    queued: int = 0
    """How much work it has been given so far."""
    done: int = 0
    """How much of it has run."""
    work: deque[Work] = field(default_factory=deque)
    eager: int = 0
    """Whether work runs at once, since something else does that belongs to the stream."""
    blocking: bool = False
    """Whether it and the legacy default stream wait for one another."""
    before: dict[LateStream, int] = field(default_factory=dict)
    """How much of other streams' work comes before what it is given next, by its waits."""

    def give(self, work: Work) -> None:
        """Queue work. Needs the lock."""
        if work.event is not None:
            merge(self.before, work.event.before)
        self.work.append(work)
        self.queued += 1
        if self.eager:
            run_until(self, self.queued)

    def is_behind(self, stream: LateStream, position: int) -> bool:
        """Whether what it is given next comes behind the first `position` works of `stream`."""
        return stream is self or max(self.before.get(stream, 0), HOST.get(stream, 0)) >= position

    def so_far(self) -> dict[LateStream, int]:
        """How much of each stream's work comes before the end of what it has been given."""
        return {**self.before, self: self.queued}


HOST: weakref.WeakKeyDictionary[LateStream, int] = weakref.WeakKeyDictionary()
"""How much of each stream's work the host has waited for."""


def merge(
    into: dict[LateStream, int] | weakref.WeakKeyDictionary[LateStream, int],
    more: dict[LateStream, int],
) -> None:
    """Take the larger of two counts for every stream."""
    for stream, position in more.items():
        if into.get(stream, 0) < position:
            into[stream] = position


class LateEvent:
    """A point in the work of a stream.

    Asked whether it is done, it says no at first. With every third question the device makes
    progress, so that who asks now and then finds it done some time.
    """

    def __init__(self, stream: LateStream) -> None:
        self.stream = stream
        self.position = stream.queued
        self.before = stream.so_far()
        self._polls = 0

    def reached(self) -> bool:
        """Whether its work has run. Needs the lock."""
        return self.stream.done >= self.position

    def done(self) -> bool:
        """Whether its work has run; makes progress now and then."""
        with LOCK:
            self._polls += 1
            if not self.reached() and self._polls % _POLLS_UNTIL_DONE == 0:
                run_until(self.stream, self.position)
            if self.reached():
                merge(HOST, self.before)
                return True
            return False

    def synchronize(self) -> None:
        """Run its work, if it has not run yet."""
        with LOCK:
            run_until(self.stream, self.position)
            merge(HOST, self.before)


def synchronize(stream: LateStream) -> None:
    """Run all work of a stream and have the host know. Needs the lock."""
    run_until(stream, stream.queued)
    merge(HOST, stream.so_far())


def run_until(stream: LateStream, position: int) -> None:
    """Run the first `position` pieces of work of a stream, and what they wait for, if they did not.

    Needs the lock.
    """
    goals = [(stream, position)]
    while goals:
        stream, position = goals[-1]
        if stream.done >= position:
            goals.pop()
            continue
        work = stream.work[0]
        if work.event is not None and not work.event.reached():
            goals.append((work.event.stream, work.event.position))
            continue
        stream.work.popleft()
        stream.done += 1
        if work.run is not None:
            work.run()
