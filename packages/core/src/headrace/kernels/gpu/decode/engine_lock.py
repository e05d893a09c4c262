"""Lock of the JPEG engines of a device, between processes.

nvJPEG 13.0 with driver 580 hung for good on an H200, in two runs of three, where two threads or
three processes let the engines decode at once, whatever they own separately; and what decodes at
once is no faster than what decodes in turn. Threads of one process take turns because one thread
decodes for all of them (see `headrace.kernels.gpu.decode.engine_thread`).

Processes find each other by a file, which the decoding process locks. A lock that is released
and taken again at once would never pass to another process, so one that finds it taken says so in
the file, and the owner then leaves a pause.
"""

from __future__ import annotations

import contextlib
import errno
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from numba.core import types

from headrace.kernels.compilation import njit

_EXCLUSIVE_IF_FREE = 2 | 4  # LOCK_EX | LOCK_NB
_UNLOCK = 8  # LOCK_UN
_NAP_MICROSECONDS = 50
_PAUSE_MICROSECONDS = 300
"""Long enough for a waiter to find the lock free: naps last 50 microseconds longer than asked."""
_PATIENCE_NANOSECONDS = 10_000_000_000
"""A batch takes milliseconds. A process that holds the lock for so long is stopped, or hangs."""
_MONOTONIC = 1  # CLOCK_MONOTONIC, of Linux

_FILE, _PATIENCE, _BYTE, _SECONDS, _NANOSECONDS = range(5)

_flock: Any = types.ExternalFunction("flock", types.int32(types.int32, types.int32))
_clock: Any = types.ExternalFunction("clock_gettime", types.int32(types.int32, types.uintp))
_usleep: Any = types.ExternalFunction("usleep", types.int32(types.uint32))
_pread: Any = types.ExternalFunction(
    "pread", types.int64(types.int32, types.uintp, types.uintp, types.int64)
)
_pwrite: Any = types.ExternalFunction(
    "pwrite", types.int64(types.int32, types.uintp, types.uintp, types.int64)
)


def engine_lock_at(path: Path | None) -> np.ndarray:
    """Make a lock that processes share by a file, for `acquire_engines` and `release_engines`.

    Without a file, or if it cannot be opened or locked, nothing is locked.
    """
    file = -1 if path is None else _opened(path)
    return np.array([file, _PATIENCE_NANOSECONDS, 0, 0, 0], np.int64)


def path_of(device: str) -> Path:
    """Path of a device's lock file, the same in all processes."""
    name = "".join(c if c.isalnum() else "-" for c in device)
    return Path(tempfile.gettempdir()) / f"headrace-jpeg-engines-{name}.lock"


@njit(nogil=True)
def acquire_engines(lock: np.ndarray) -> None:
    """Wait until this process has the engines.

    If another process holds them for so long that it must hang, it is not waited for any more,
    now and later.
    """
    file = np.int32(lock[_FILE])
    if file < 0:
        return
    begin = np.int64(-1)
    while _flock(file, _EXCLUSIVE_IF_FREE) != 0:
        now = _now(lock)
        if begin < 0:
            begin = now
        if now - begin >= lock[_PATIENCE]:
            lock[_FILE] = -1
            return
        lock[_BYTE] = -1
        _pwrite(file, lock.ctypes.data + 8 * _BYTE, 1, 0)
        _usleep(_NAP_MICROSECONDS)


@njit(nogil=True)
def _now(lock: np.ndarray) -> int:
    """Nanoseconds, of a clock that only goes on."""
    _clock(_MONOTONIC, lock.ctypes.data + 8 * _SECONDS)
    return lock[_SECONDS] * 1_000_000_000 + lock[_NANOSECONDS]  # type: ignore[no-any-return]


@njit(nogil=True)
def release_engines(lock: np.ndarray) -> None:
    """Release the engines; pause if another process waits for them."""
    file = np.int32(lock[_FILE])
    if file < 0:
        return
    lock[_BYTE] = 0
    _pread(file, lock.ctypes.data + 8 * _BYTE, 1, 0)
    is_awaited = lock[_BYTE] != 0
    if is_awaited:
        lock[_BYTE] = 0
        _pwrite(file, lock.ctypes.data + 8 * _BYTE, 1, 0)
    _flock(file, _UNLOCK)
    if is_awaited:
        _usleep(_PAUSE_MICROSECONDS)


def _opened(path: Path) -> int:
    """A descriptor of the file, made if need be; -1 if that is impossible."""
    if os.name != "posix":
        return -1
    flags = os.O_CLOEXEC | os.O_NOFOLLOW
    # What others have made may be open to us, although Linux does not let us "create" it there.
    for more in (os.O_RDWR | os.O_CREAT, os.O_RDWR, os.O_RDONLY):
        with contextlib.suppress(OSError):
            file = os.open(path, flags | more, 0o666)
            with contextlib.suppress(OSError):
                os.fchmod(file, 0o666)  # processes of other users lock it, too
            return _lockable(file)
    return -1


def _lockable(file: int) -> int:
    """`file`; closed, and -1 in its place, if files of its kind cannot be locked."""
    import fcntl

    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.flock(file, fcntl.LOCK_UN)
    except OSError as error:
        if error.errno != errno.EWOULDBLOCK:
            os.close(file)
            return -1
    return file
