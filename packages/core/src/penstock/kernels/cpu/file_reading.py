"""Read several local files with two calls that let other threads have the interpreter.

Reading a file takes four system calls, and Python lets go of the interpreter in each. In a process
with many busy threads getting it back costs more than the call. Here a compiled loop makes the
calls for all files.
"""

from __future__ import annotations

import os
from typing import Any

import numba
import numpy as np
from numba.core import types

_FLAGS = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0)
_END = os.SEEK_END
_LARGEST = 1 << 62  # what a directory has for a size, on some file systems

# What they are at run time is not what Numba's annotations say.
_open: Any = types.ExternalFunction("open", types.int32(types.uintp, types.int32, types.int32))
_seek: Any = types.ExternalFunction("lseek", types.int64(types.int32, types.int64, types.int32))
_read: Any = types.ExternalFunction(
    "pread", types.int64(types.int32, types.uintp, types.uintp, types.int64)
)
_close: Any = types.ExternalFunction("close", types.int32(types.int32))


@numba.njit(nogil=True, cache=True)
def open_files(
    names: np.ndarray, begins: np.ndarray, descriptors: np.ndarray, sizes: np.ndarray
) -> None:
    """Open files and find their sizes.

    Parameters
    ----------
    names
        uint8, contiguous: the paths, each with a NUL behind it.
    begins
        int64 ``(files,)``: where in `names` each begins.
    descriptors
        int32 ``(files,)``, filled: negative where a file cannot be opened.
    sizes
        int64 ``(files,)``, filled: in bytes; 0 for files that cannot be opened.
    """
    address = names.ctypes.data
    for k in range(len(begins)):
        descriptor = _open(address + begins[k], _FLAGS, 0)
        size: Any = np.int64(0)
        if descriptor >= 0:
            size = _seek(descriptor, 0, _END)
            if size < 0 or size > _LARGEST:
                _close(descriptor)
                descriptor = -1
                size = 0
        descriptors[k] = descriptor
        sizes[k] = size


@numba.njit(nogil=True, cache=True)
def read_files(
    descriptors: np.ndarray, sizes: np.ndarray, memory: np.ndarray, offsets: np.ndarray
) -> None:
    """Read open files, whole, and close them.

    Parameters
    ----------
    descriptors, sizes
        As `open_files` filled them. A descriptor becomes negative where a file could not be read
        to its end.
    memory
        uint8, contiguous.
    offsets
        int64 ``(files,)``: where in `memory` each goes.
    """
    address = memory.ctypes.data
    for k in range(len(descriptors)):
        descriptor = descriptors[k]
        if descriptor < 0:
            continue
        done, size = np.int64(0), sizes[k]
        while done < size:
            count = _read(descriptor, address + offsets[k] + done, size - done, done)
            if count <= 0:
                break
            done += count
        _close(descriptor)
        if done < size:
            descriptors[k] = -1
