"""Compiled code on disk: where it is looked for and kept, and what happens where that fails.

Everything that the library compiles, for the CPU (Numba) and for GPUs (NVRTC), is a file that may
be deleted at any time. Its name says what it was compiled from and for. A folder that can be read
but not written is of use, such as one that was filled when a container image was built; what is
missing there goes to the next folder, and at last to one below the folder for temporary files.
"""

from __future__ import annotations

import atexit
import contextlib
import mmap
import os
import shutil
import stat
import tempfile
import threading
import warnings
from collections.abc import Sequence
from pathlib import Path

from headrace.config import cache_folder, chosen_cache_folder

_WAY_OUT = "Set the environment variable HEADRACE_CACHE_DIR to a folder that can be written."


def folders(first: Path | None = None) -> list[Path]:
    """Return the folders of compiled code, in the order in which they are read and written."""
    chosen = chosen_cache_folder("kernels")
    if chosen is not None:
        return [chosen]
    return [folder for folder in (first, cache_folder("kernels")) if folder is not None]


def find(name: str, places: Sequence[Path]) -> bytes | None:
    """Content of the file `name` in the first of the folders that has it; `None` if none has."""
    temporary = _shared_temporary_folder()
    if temporary is not None and _is_private(temporary):
        places = [*places, temporary]
    for folder in places:
        with contextlib.suppress(OSError):
            return (folder / name).read_bytes()
    return None


def keep(name: str, content: bytes, places: Sequence[Path]) -> None:
    """Write the file `name` into the first of the folders that takes it.

    If none does, it goes to a folder for temporary files that only this user can read, and the
    first time a `RuntimeWarning` tells so.
    """
    failed = []
    for folder in places:
        try:
            _write(folder / name, content)
        except OSError as error:
            failed.append(f"{folder} ({error.strerror})")
        else:
            return
    temporary = _temporary.folder()
    if temporary is not None:
        try:
            _write(temporary / name, content)
        except OSError:
            temporary = None
    _temporary.warn_once(failed, temporary)


def writable_folder(place: Path | None, name: str) -> Path | None:
    """`place` if files can be written there, otherwise a temporary folder `name`, with a warning.

    It is for libraries that write by themselves. `None` if there is no such folder at all.
    """
    failed = []
    if place is not None:
        try:
            _try_to_write(place)
        except OSError as error:
            failed.append(f"{place} ({error.strerror})")
        else:
            return place
    temporary = _temporary.folder()
    if temporary is not None:
        try:
            _try_to_write(temporary / name)
        except OSError:
            temporary = None
    _temporary.warn_once(failed, temporary)
    return None if temporary is None else temporary / name


def _try_to_write(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    tempfile.TemporaryFile(dir=folder).close()


def _write(path: Path, content: bytes) -> None:
    """Write a file so that other processes see all of it or nothing."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, written = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
        os.replace(written, path)
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(written)
        raise


def _shared_temporary_folder() -> Path | None:
    """The folder for temporary files that all processes of this user share, if it can be named."""
    try:
        root = tempfile.gettempdir()
    except OSError:  # there is none that can be written
        return None
    user = str(os.getuid()) if hasattr(os, "getuid") else "cache"
    return Path(root, f"headrace-{user}")


def _is_private(folder: Path) -> bool:
    """Return True if only this user can have written to the folder.

    Compiled code is run as it is found: a link, or a folder that another user made, is refused.
    """
    try:
        status = os.lstat(folder)
    except OSError:
        return False
    if not stat.S_ISDIR(status.st_mode):
        return False
    if not hasattr(os, "getuid"):  # Windows has a temporary folder for each user
        return True
    return status.st_uid == os.getuid() and not status.st_mode & 0o077


class _Temporary:
    """The last resort, and whether the user was told."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._made: Path | None = None
        # Forks of this process share it: of all worker processes, one tells the user.
        self._warned = mmap.mmap(-1, 1)

    def folder(self) -> Path | None:
        """A private folder for temporary files, made if need be; `None` where there can be none."""
        shared = _shared_temporary_folder()
        if shared is None:
            return None
        with self._lock:
            try:
                with contextlib.suppress(FileExistsError):
                    shared.mkdir(mode=0o700)
                if _is_private(shared):
                    return shared
                if self._made is None:  # another user's; this one goes with the process
                    self._made = Path(tempfile.mkdtemp(prefix="headrace-"))
                    atexit.register(shutil.rmtree, self._made, ignore_errors=True)
                return self._made
            except OSError:
                return None

    def warn_once(self, failed: Sequence[str], temporary: Path | None) -> None:
        """Say where compiled code cannot be kept, and where it is now; once for a process and its
        forks.
        """
        with self._lock:
            if self._warned[0]:
                return
            self._warned[0] = 1
        where = " and ".join(failed) or "a folder of the user, who has no home"
        if temporary is None:
            now = "nor in a folder for temporary files: every process compiles them again."
        else:
            now = f"They are in {temporary} for now, and compiled again when that is gone."
        joint = ", " if temporary is None else ". "
        warnings.warn(
            f"Compiled kernels cannot be kept in {where}{joint}{now} {_WAY_OUT}",
            RuntimeWarning,
            stacklevel=2,
        )


_temporary = _Temporary()
