"""The end of Ray, which waits for calls that threads of the library have made into it.

Ray ends the process where it is shut down while another thread is in a call, and a call that comes
later starts it once more.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import ray

from headrace.errors import WorkerProcessError

_WAIT_SECONDS = 10.0
"""Time that the end of Ray waits for calls."""


class Caller(Protocol):
    """An owner of threads that are in long calls."""

    def end_with_ray(self) -> None:
        """Have them return: Ray is being shut down."""
        ...


class _Calls:
    """The calls that other threads than the main one are in."""

    def __init__(self) -> None:
        self.number = 0
        self.callers: weakref.WeakSet[Any] = weakref.WeakSet()
        """Those who are told of the end."""
        self._changed = threading.Condition()
        self._is_ending = False

    @contextmanager
    def inside(self) -> Iterator[None]:
        """Be in a call, or in several. Raises `WorkerProcessError` without Ray."""
        with self._changed:
            if self._is_ending or not ray.is_initialized():
                raise shut_down()
            self.number += 1
        try:
            yield
        finally:
            with self._changed:
                self.number -= 1
                self._changed.notify_all()

    def end(self) -> None:
        """Let no call begin, and wait for those that have, but not for ever."""
        with self._changed:
            self._is_ending = True
        for caller in list(self.callers):
            caller.end_with_ray()
        until = time.monotonic() + _WAIT_SECONDS
        with self._changed:
            while self.number and (left := until - time.monotonic()) > 0:
                self._changed.wait(left)

    def begin(self) -> None:
        """Let calls begin, if Ray is there."""
        self._is_ending = False


CALLS = _Calls()


def shut_down() -> WorkerProcessError:
    """The error of a pipeline that goes on without Ray."""
    return WorkerProcessError("Ray was shut down, and the pipeline's workers and data with it.")


def _watch_for_the_end() -> None:
    from ray._private import worker

    disconnect = worker.disconnect

    def disconnect_after_calls(*args: Any, **kwargs: Any) -> Any:
        CALLS.end()
        try:
            return disconnect(*args, **kwargs)
        finally:
            CALLS.begin()

    worker.disconnect = disconnect_after_calls


_watch_for_the_end()
