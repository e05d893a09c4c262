"""Streams that run late: work is done when somebody has to see it, and no earlier.

A real device runs ahead of the host or behind it by chance. Here it is always behind, as far as
events and waits allow: a wait that is missing, or memory that is used anew too early, gives wrong
values every time.
"""

from __future__ import annotations

import threading
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

    def give(self, work: Work) -> None:
        """Queue work. Needs the lock."""
        self.work.append(work)
        self.queued += 1
        if self.eager:
            run_until(self, self.queued)


class LateEvent:
    """A point in the work of a stream.

    Asked whether it is done, it says no at first. With every third question the device makes
    progress, so that who asks now and then finds it done some time.
    """

    def __init__(self, stream: LateStream) -> None:
        self.stream = stream
        self.position = stream.queued
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
            return self.reached()

    def synchronize(self) -> None:
        """Run its work, if it has not run yet."""
        with LOCK:
            run_until(self.stream, self.position)


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
