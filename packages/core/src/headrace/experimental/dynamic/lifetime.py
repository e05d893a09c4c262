"""The end of the program while work is under way: threads stop before the interpreter does."""

from __future__ import annotations

import atexit
import os
import threading
import time
import weakref
from typing import Protocol

_EXIT_SECONDS = 5.0


class Closable(Protocol):
    """Something with threads."""

    def stop(self) -> list[threading.Thread]:
        """Drop what has not been begun and let the threads end; return them."""
        ...


_alive: weakref.WeakSet[Closable] = weakref.WeakSet()
_lock = threading.Lock()


def track(thing: Closable) -> None:
    """Have the end of the program stop `thing`."""
    with _lock:
        _alive.add(thing)


def _stop_all() -> None:
    # A thread that comes back from a kernel to an interpreter that is gone would take the process
    # down with it.
    with _lock:
        things = list(_alive)
    threads = [thread for thing in things for thread in thing.stop()]
    deadline = time.monotonic() + _EXIT_SECONDS
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))


def _after_fork() -> None:
    global _lock
    _lock = threading.Lock()
    for thing in list(_alive):
        # The threads are in the other process, and so may be the holder of a lock.
        forget = getattr(thing, "after_fork", None)
        if forget is not None:
            forget()


atexit.register(_stop_all)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
