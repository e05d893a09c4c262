"""One process compiles a kernel, and the others that need it wait for its file.

Worker processes, and the ranks of a training program, meet the same kernels at the same time: on a
machine whose cache is empty, each of them would compile all of them.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Sequence
from pathlib import Path

try:
    import fcntl
except ImportError:  # Windows: each process compiles for itself
    fcntl = None  # type: ignore[assignment]

_LONGEST_SECONDS = 120.0
"""Time after which a process compiles for itself: the holder of the claim may have been stopped."""
_LOOK_SECONDS = 0.02


class Claim:
    """The right to compile one kernel, which ends with the process at the latest."""

    __slots__ = ("_handle", "_path")

    def __init__(self, path: Path, handle: int) -> None:
        self._path = path
        self._handle = handle

    def release(self) -> None:
        """Let others look for what was compiled."""
        with contextlib.suppress(OSError):
            self._path.unlink()
        # Not by closing it: a fork may have the file open, too.
        with contextlib.suppress(OSError):
            fcntl.flock(self._handle, fcntl.LOCK_UN)
        os.close(self._handle)


def claim(name: str, places: Sequence[Path]) -> tuple[Claim | None, bool]:
    """Claim the kernel with the file `name`, after waiting for its holder."""
    if fcntl is None:
        return None, False
    for folder in places:
        path = folder / f"{name}.lock"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError:
            continue
        return _locked(path, handle)
    return None, False


def _locked(path: Path, handle: int) -> tuple[Claim | None, bool]:
    deadline = time.monotonic() + _LONGEST_SECONDS
    waited = False
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waited = True
            if time.monotonic() < deadline:
                time.sleep(_LOOK_SECONDS)
                continue
            break
        except OSError:  # a file system without locks
            break
        return Claim(path, handle), waited
    os.close(handle)
    return None, waited
