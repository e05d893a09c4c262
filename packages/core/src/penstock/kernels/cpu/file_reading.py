"""Read several local files in one call that lets other threads have the interpreter.

Reading a file takes four system calls, and Python lets go of the interpreter in each. In a process
with many busy threads getting it back costs more than the call. Here a compiled loop makes the
calls for all files.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numba.core import types

from penstock.kernels.compilation import njit

_FLAGS = os.O_RDONLY | getattr(os, "O_CLOEXEC", 0)
_END = os.SEEK_END
_LARGEST = 1 << 62  # what a directory has for a size, on some file systems
_ALIGNMENT = 64
UNOPENED = -2
"""In place of a descriptor: nothing was tried yet."""

# What they are at run time is not what Numba's annotations say.
_open: Any = types.ExternalFunction("open", types.int32(types.uintp, types.int32, types.int32))
_seek: Any = types.ExternalFunction("lseek", types.int64(types.int32, types.int64, types.int32))
_read: Any = types.ExternalFunction(
    "pread", types.int64(types.int32, types.uintp, types.uintp, types.int64)
)
_close: Any = types.ExternalFunction("close", types.int32(types.int32))


@njit(nogil=True)
def read_files(names: np.ndarray, files: np.ndarray, memory: np.ndarray) -> Any:
    """Read files, whole, one behind the other, if there is memory enough for all.

    Parameters
    ----------
    names
        uint8, contiguous: the paths, each with a NUL behind it.
    files
        int64 ``(files, 4)``: where in `names` each begins; its descriptor, first `UNOPENED`; and,
        filled, where in `memory` it begins and its size, in bytes. A descriptor is left negative
        where a file cannot be opened or read to its end. The others are closed, except where
        the memory does not suffice: then the call is to be made again with more.
    memory
        uint8, contiguous.

    Returns
    -------
    int
        The memory that is needed. Nothing was read if it is more than there is.
    """
    place = names.ctypes.data
    needed: Any = np.int64(0)
    for k in range(len(files)):
        if files[k, 1] == UNOPENED:
            descriptor = _open(place + files[k, 0], _FLAGS, 0)
            size: Any = np.int64(0)
            if descriptor >= 0:
                size = _seek(descriptor, 0, _END)
                if size < 0 or size > _LARGEST:
                    _close(descriptor)
                    descriptor = -1
                    size = 0
            files[k, 1] = descriptor
            files[k, 3] = size
        files[k, 2] = needed
        needed += (files[k, 3] + _ALIGNMENT - 1) // _ALIGNMENT * _ALIGNMENT
    if needed > memory.size:
        return needed
    address = memory.ctypes.data
    for k in range(len(files)):
        descriptor = files[k, 1]
        if descriptor < 0:
            continue
        done, size = np.int64(0), files[k, 3]
        while done < size:
            # Python tries again where a signal interrupts; `read_file` is Python.
            count = _read(descriptor, address + files[k, 2] + done, size - done, done)
            if count <= 0:
                break
            done += count
        _close(descriptor)
        if done < size:
            files[k, 1] = -1
    return needed
