"""The threads of an executor: how they wait for tasks, and how they end."""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from headrace._forking import no_fork

if TYPE_CHECKING:
    from headrace.executor.monitor import LifoCondition, Monitor

    Continuation = Callable[[], Any]
    """Remainder of a task; it returns the next remainder, or `None`."""
    Task = tuple[Callable[[Any, Any, Any], Continuation | None], Any, Any]
    """Function to call with the iteration or other work, its argument, and the thread; it returns
    the remainder of the task."""

_alive: weakref.WeakSet[threading.Thread] = weakref.WeakSet()


_forks = 0


def forks() -> int:
    """Return the number of forks between this process and the one that imported the engine.

    The process id would tell too, but asking for it is a system call.
    """
    return _forks


def _count_fork() -> None:
    global _forks
    _forks += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_count_fork)


class TaskSource(Protocol):
    """Source of tasks for worker threads."""

    def find_task(self) -> Task | None:
        """Something to do, which is then this thread's. The caller holds the lock."""


class ExecutorThread(threading.Thread):
    """A thread of the engine, for whose end the end of the program waits."""

    def __init__(self, name: str, looks_at: frozenset[str] = frozenset()) -> None:
        super().__init__(name=name, daemon=True)
        self.looks_at = looks_at
        self.looks_for_samples = False
        """True if it takes samples of any iteration as soon as it has done what it does."""
        self.has_device = False
        """True if the GPU was made current in it."""
        _alive.add(self)


def serve(
    monitor: Monitor,
    ready: threading.Condition | LifoCondition,
    sources: Sequence[weakref.ref[Any]],
) -> None:
    """Run tasks in this thread, until the executor shuts down or is gone.

    A waiting thread does not keep its executor alive: what a source refers to may be the pipeline
    itself, which could then never be deleted.
    """
    thread = threading.current_thread()
    while (task := _next_task(monitor, ready, sources)) is not None:
        run, iteration, argument = task
        with no_fork:
            rest = run(iteration, argument, thread)
            # Nothing of a finished iteration may stay alive in a waiting thread: its memory
            # belongs to the user, and returns to the pool when the user lets go.
            del task, run, iteration, argument
            while rest is not None:
                rest = rest()


def _next_task(
    monitor: Monitor,
    ready: threading.Condition | LifoCondition,
    sources: Sequence[weakref.ref[Any]],
) -> Task | None:
    """Wait for something to do; `None` when the executor shuts down."""
    with monitor.lock:
        while not monitor.closed:
            for reference in sources:
                source: TaskSource | None = reference()
                if source is None:
                    return None
                task = source.find_task()
                if task is not None:
                    return task
                del source  # not kept while waiting
            ready.wait()
        return None


def join(threads: Iterable[threading.Thread], seconds: float) -> None:
    """Wait until `threads` are done, but no longer than `seconds` altogether."""
    deadline = time.monotonic() + seconds
    for thread in list(threads):
        if thread is not threading.current_thread() and thread.is_alive():
            thread.join(max(0.0, deadline - time.monotonic()))


def join_all(seconds: float) -> None:
    """Wait for every thread of an executor in this process."""
    join(_alive, seconds)
