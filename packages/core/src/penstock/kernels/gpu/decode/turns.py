"""Turns at the JPEG engines of a device, between threads and between processes.

nvJPEG 13.0 with driver 580 hung for good on an H200, in two runs of three, where two threads or
three processes let the engines decode at once, whatever they own separately; and what decodes at
once is no faster than what decodes in turn.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import tempfile
import threading
import time
from functools import cache
from pathlib import Path

_EXCLUSIVE_IF_FREE = 2 | 4  # LOCK_EX | LOCK_NB
_UNLOCK = 8  # LOCK_UN
_NAP_SECONDS = 50e-6
_PATIENCE_SECONDS = 10.0
"""A turn takes milliseconds. Whoever has it for so long is stopped, or hangs."""


class Turns:
    """A lock, for a ``with``, that threads and processes share.

    Processes find each other by a file. Where they cannot, or where one of them does not end its
    turn, only threads are kept apart.

    Parameters
    ----------
    path
        The file.

    Attributes
    ----------
    threads
        The lock that keeps threads apart.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self.threads = threading.Lock()
        self._file: int | None = None
        self._is_held = False

    def __enter__(self) -> None:
        self.threads.acquire()
        try:
            if self._file is None:
                self._file = _opened(self._path)
            self._is_held = self._file >= 0 and self._take(self._file)
        except BaseException:
            self.threads.release()
            raise

    def __exit__(self, *_: object) -> None:
        if self._is_held:
            assert self._file is not None
            _flock(self._file, _UNLOCK)
            self._is_held = False
        self.threads.release()

    def _take(self, file: int) -> bool:
        """Lock the file; False if that takes so long that it is never tried again."""
        until = 0.0
        while (problem := _flock(file, _EXCLUSIVE_IF_FREE)) == errno.EWOULDBLOCK:
            until = until or time.monotonic() + _PATIENCE_SECONDS
            if time.monotonic() > until:
                break
            time.sleep(_NAP_SECONDS)
        if problem:
            os.close(file)
            self._file = -1
        return not problem


@cache
def _library() -> ctypes.PyDLL:
    return ctypes.PyDLL(None, use_errno=True)


def _flock(file: int, operation: int) -> int:
    """`flock`, which returns what went wrong.

    Unlike `fcntl.flock` it keeps the interpreter, which may be hard to get back, and never waits.
    """
    return ctypes.get_errno() if _library().flock(file, operation) else 0


def _opened(path: Path) -> int:
    """A descriptor of the file, made if need be; -1 if that is impossible."""
    if os.name != "posix":
        return -1
    flags = os.O_CLOEXEC | os.O_NOFOLLOW
    with contextlib.suppress(OSError):
        file = os.open(path, flags | os.O_RDWR | os.O_CREAT, 0o666)
        with contextlib.suppress(OSError):
            os.fchmod(file, 0o666)  # other users take turns, too
        return file
    with contextlib.suppress(OSError):
        return os.open(path, flags | os.O_RDONLY)  # another user's
    return -1


@cache
def turns_of(device: str) -> Turns:
    """The turns at a device, which has one name in all processes."""
    name = "".join(c if c.isalnum() else "-" for c in device)
    return Turns(Path(tempfile.gettempdir()) / f"penstock-jpeg-engines-{name}.lock")
