"""Semaphores of the system, by which compiled loops and Python's threads tell one another things.

To wait for one of these, a thread needs no interpreter, and none to end the wait of another.
"""

from __future__ import annotations

import ctypes
import errno
import time
from functools import cache
from typing import Any

from numba.core import types

SEMAPHORE_NUMBERS = 8
"""Room for a semaphore, in 64-bit numbers: it takes 32 bytes with glibc."""

wait: Any = types.ExternalFunction("sem_wait", types.int32(types.uintp))
"""For compiled loops: take one of those at an address; not 0 if a signal came in between."""
post: Any = types.ExternalFunction("sem_post", types.int32(types.uintp))
"""For compiled loops: add one."""


class Semaphores:
    """Semaphores at addresses."""

    def __init__(self) -> None:
        try:
            waiting, quick = ctypes.CDLL(None, use_errno=True), ctypes.PyDLL(None)
            self._init, self._post = quick.sem_init, quick.sem_post
            self._try, self._wait = quick.sem_trywait, waiting.sem_wait
            self._wait_until = waiting.sem_timedwait
        except (AttributeError, OSError, TypeError) as error:
            raise RuntimeError(f"There are no semaphores as POSIX has them: {error}") from error
        self._init.argtypes = [ctypes.c_void_p, ctypes.c_int, ctypes.c_uint]
        for function in (self._post, self._try, self._wait):
            function.argtypes = [ctypes.c_void_p]
        self._wait_until.argtypes = [ctypes.c_void_p, ctypes.POINTER(_Time)]

    def make(self, address: int) -> None:
        """Begin one, at zero."""
        if self._init(address, 0, 0):
            raise RuntimeError("The system makes no semaphores.")

    def post(self, address: int) -> None:
        """Add one."""
        self._post(address)

    def take(self, address: int) -> bool:
        """Take one, if there is one."""
        return not self._try(address)

    def wait(self, address: int) -> None:
        """Take one; other threads have the interpreter while there is none."""
        if not self.take(address):
            while self._wait(address):
                pass  # a signal came

    def wait_for(self, address: int, seconds: float) -> bool:
        """The same, but not for longer than so many seconds; whether there was one."""
        if self.take(address):
            return True
        whole, rest = divmod(time.time_ns() + int(seconds * 1e9), 1_000_000_000)
        until = _Time(whole, rest)
        while self._wait_until(address, until):
            if ctypes.get_errno() == errno.ETIMEDOUT:
                return False
        return True


class _Time(ctypes.Structure):
    """`struct timespec`."""

    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


@cache
def semaphores() -> Semaphores:
    """Those of this system."""
    return Semaphores()
