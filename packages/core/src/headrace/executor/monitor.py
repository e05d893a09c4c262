"""The lock of an executor, and the conditions that threads wait for under it."""

from __future__ import annotations

import contextlib
import os
import threading
import weakref
from typing import Any


class Wakeup:
    """Event that ends a thread's wait for worker processes: a file descriptor for `poll`."""

    def __init__(self) -> None:
        self._file = os.eventfd(0, os.EFD_NONBLOCK | os.EFD_CLOEXEC)
        end = weakref.finalize(self, os.close, self._file)
        end.atexit = False  # daemon threads may still wait then

    def fileno(self) -> int:
        """Number of the file, which can be read when the thread is to wake up."""
        return self._file

    def set(self) -> None:
        """Wake the thread up, now or as soon as it waits."""
        os.eventfd_write(self._file, 1)

    def was_set(self) -> bool:
        """Return True if `set` was called since the last call."""
        with contextlib.suppress(BlockingIOError):
            return bool(os.eventfd_read(self._file))
        return False


class LifoCondition:
    """A condition that wakes the thread which has begun to wait last: of many, the same few work,
    whose memory is in the caches.
    """

    __slots__ = ("_lock", "_waiting")

    def __init__(self, lock: threading.RLock) -> None:
        self._lock: Any = lock
        self._waiting: list[threading.Lock] = []

    def wait(self) -> None:
        """Let go of the lock until another thread wakes this one."""
        # As `threading.Condition` does it, which wakes first in, first out.
        own = threading.Lock()
        own.acquire()
        self._waiting.append(own)
        state = self._lock._release_save()
        try:
            own.acquire()
        finally:
            self._lock._acquire_restore(state)
            if own in self._waiting:  # an exception has ended the wait
                self._waiting.remove(own)

    def notify(self) -> None:
        """Wake a thread, if one waits."""
        if self._waiting:
            self._waiting.pop().release()

    def notify_all(self) -> None:
        """Wake all threads that wait."""
        while self._waiting:
            self._waiting.pop().release()


class Monitor:
    """One lock and its conditions; it outlives the executor, whose threads wait here.

    The lock guards the queue of iterations, all fields of an iteration that do not say otherwise,
    the limits of threads, and who is at work on which stream: see ``design/locks.md``.

    It is reentrant because the garbage collector may delete a pipeline, and with it shut the
    executor down, at any point of a thread that holds it.
    """

    __slots__ = ("closed", "dispatchers", "exiting", "finished", "lock", "streams", "work")

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.work = LifoCondition(self.lock)
        """There may be something to do for one worker.

        One is woken at a time, and wakes the next where it leaves something: many that wake for
        nothing would keep the interpreter from the one that has work.
        """
        self.dispatchers: set[Wakeup] = set()
        """Threads that wait for worker processes, and would send them more samples, but have found
        none. One is woken at a time, as for `work`."""
        self.streams = {name: threading.Condition(self.lock) for name in ("mixed", "gpu")}
        """There may be something to do for the thread of a stream."""
        self.finished = threading.Condition(self.lock)
        """Something was finished."""
        self.closed = False
        self.exiting = False
        """True if it was closed because the program ends."""

    def close(self) -> None:
        """Have all threads that wait return."""
        with self.lock:
            self.closed = True
            self.finished.notify_all()
            self.wake_all()

    def wake_dispatcher(self) -> None:
        """Have one of the `dispatchers` look for samples to send. The caller holds the lock."""
        if self.dispatchers:
            self.dispatchers.pop().set()

    def wake_all(self) -> None:
        """Have all threads of the engine look for something to do. The caller holds the lock."""
        self.work.notify_all()
        for condition in self.streams.values():
            condition.notify_all()


def interruption(error: RuntimeError) -> BaseException:
    """Return the exception to raise in place of `error`, which a wait under a lock raised.

    `Condition.wait` no longer holds the lock if a Ctrl-C arrives just after it was released.
    Leaving the ``with`` block then fails to release it again, and that error hides the
    interruption.
    """
    hidden = error.__context__
    return error if hidden is None or isinstance(hidden, Exception) else hidden
