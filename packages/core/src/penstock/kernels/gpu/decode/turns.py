"""Turns at the JPEG engines of a device, between threads and between processes.

nvJPEG 13.0 with driver 580 hangs at times, for good, where two threads or processes let the engines
decode at once, whatever they own separately; and to decode at once is slower than in turn.
"""

from __future__ import annotations

import contextlib
import os
import tempfile
import threading
import time
from functools import cache
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_NAP_SECONDS = 50e-6
_PATIENCE_SECONDS = 5.0
"""A turn takes milliseconds. Whoever has it for so long is stopped, or hangs."""


class Turns:
    """A lock, for a ``with``, that threads and processes share.

    Processes find each other by a file. Where they cannot, or where one of them does not end its
    turn, only threads are kept apart.

    Parameters
    ----------
    path
        The file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._threads = threading.Lock()
        self._file: int | None = None
        self._is_held = False

    def __enter__(self) -> None:
        self._threads.acquire()
        if fcntl is None:
            return
        try:
            if self._file is None:
                self._file = _opened(self._path)
            self._is_held = self._file >= 0 and self._take(self._file)
        except BaseException:
            self._threads.release()
            raise

    def __exit__(self, *_: object) -> None:
        if self._is_held:
            assert self._file is not None
            fcntl.flock(self._file, fcntl.LOCK_UN)
            self._is_held = False
        self._threads.release()

    def _take(self, file: int) -> bool:
        """Lock the file; False if that takes so long that it is never tried again."""
        until = 0.0
        while True:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return True
            except BlockingIOError:
                until = until or time.monotonic() + _PATIENCE_SECONDS
            except OSError:  # a file system that cannot
                until = -1.0
            if time.monotonic() > until:
                os.close(file)
                self._file = -1
                return False
            time.sleep(_NAP_SECONDS)


def _opened(path: Path) -> int:
    """A descriptor of the file, made if need be; -1 if that is impossible."""
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
