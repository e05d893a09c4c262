"""How long the threads of a program hold the interpreter's lock (GIL), and how often they take it.

A small library in C counts it, which has to be loaded ahead of the C library: see `preloaded`. What
it costs is two readings of a thread's clock for each time that the lock is taken.
"""

from __future__ import annotations

import ctypes
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_SOURCE = Path(__file__).with_suffix(".c")


def built(folder: Path) -> Path:
    """The library, compiled into `folder`."""
    library = folder / "lock_time.so"
    command = ["cc", "-O2", "-shared", "-fPIC", str(_SOURCE), "-o", str(library), "-ldl"]
    try:
        subprocess.run(command, check=True)
    except FileNotFoundError:
        raise SystemExit("A C compiler (`cc`) is missing, which this benchmark needs.") from None
    return library


@contextmanager
def preloaded(library: Path) -> Iterator[None]:
    """Processes that are started meanwhile have the library."""
    before = os.environ.get("LD_PRELOAD")
    os.environ["LD_PRELOAD"] = f"{library}:{before}" if before else str(library)
    try:
        yield
    finally:
        if before is None:
            del os.environ["LD_PRELOAD"]
        else:
            os.environ["LD_PRELOAD"] = before


class LockTime:
    """Counts in a process that was started with the library; to be made before other threads."""

    def __init__(self, library: Path) -> None:
        functions = ctypes.PyDLL(str(library))
        self._held, self._takes = functions.lock_time_held, functions.lock_time_takes
        self._held.restype = self._takes.restype = ctypes.c_longlong
        functions.lock_time_begin()

    def read(self) -> tuple[float, int]:
        """Microseconds of a processor with the lock held, and how often it was taken."""
        return self._held() / 1e3, self._takes()
