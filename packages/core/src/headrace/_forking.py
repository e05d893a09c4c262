"""A fork waits until no thread of the engine is at work.

A forked process has one thread, the one that forked. What another thread had locked then stays
locked in it for ever: a module that was being imported, Numba's compiler, a library's cache. So
threads of the engine work inside `no_fork`, and so do imports and compilations in another
thread; `os.fork` waits for all of these, and none begins meanwhile.
"""

from __future__ import annotations

import logging  # noqa: F401  what it does at a fork is to be done around ours
import os
import threading

_WAIT_TIMEOUT_SECONDS = 60.0
"""Longest wait: a thread may itself wait for the one that forks."""


class NoFork:
    """A context in which the process is not forked by other threads; any number may be in it.

    A thread that is in it may fork, and may enter it again.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        """Guards all else, and is held while the process is forked."""
        self._changed = threading.Condition(self._lock)
        self._inside: dict[int, int] = {}
        """Number of blocks each thread has entered, by thread identifier."""
        self._forking: set[int] = set()
        """Threads that wait to fork."""

    def __enter__(self) -> None:
        thread = threading.get_ident()
        with self._lock:
            if self._forking and thread not in self._inside:
                self._changed.wait_for(lambda: not self._forking, _WAIT_TIMEOUT_SECONDS)
            self._inside[thread] = self._inside.get(thread, 0) + 1

    def __exit__(self, *_: object) -> None:
        thread = threading.get_ident()
        with self._lock:
            left = self._inside[thread] - 1
            if left:
                self._inside[thread] = left
                return
            del self._inside[thread]
            if self._forking:
                self._changed.notify_all()

    @property
    def is_awaited(self) -> bool:
        """True if a thread waits to fork."""
        return bool(self._forking)

    def _others_are_out(self) -> bool:
        return self._inside.keys() <= self._forking

    def _before(self) -> None:
        self._lock.acquire()
        self._forking.add(threading.get_ident())
        self._changed.wait_for(self._others_are_out, _WAIT_TIMEOUT_SECONDS)

    def _after_in_parent(self) -> None:
        self._forking.discard(threading.get_ident())
        self._changed.notify_all()
        self._lock.release()

    def _after_in_child(self) -> None:
        thread = threading.get_ident()
        self._lock = threading.Lock()
        self._changed = threading.Condition(self._lock)
        self._inside = {t: n for t, n in self._inside.items() if t == thread}
        self._forking = set()


no_fork = NoFork()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=no_fork._before,
        after_in_parent=no_fork._after_in_parent,
        after_in_child=no_fork._after_in_child,
    )
