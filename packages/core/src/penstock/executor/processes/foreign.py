"""Samples in the memory of the program, which a worker process reads there by itself."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import os
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.tensors.pool import HOST_POOL
from penstock.tensors.rows import Rows, pack_rows

if TYPE_CHECKING:
    from penstock.executor.processes.messages import Input

_PR_SET_PTRACER = 0x59616D61


@functools.cache
def _libc() -> Any:
    return ctypes.CDLL(None, use_errno=True)


def allow_reading(process: int) -> None:
    """Let a process and its children read the memory of this one, where the system does not let
    those of the same user (Yama).
    """
    with contextlib.suppress(AttributeError):
        _libc().prctl(_PR_SET_PTRACER, ctypes.c_ulong(process), 0, 0, 0)


def read_rows(given: Input, indices: list[int]) -> Rows:
    """Copies of some samples of another process.

    Raises
    ------
    OSError
        If they cannot be read: the system does not allow it, or not so many pieces at once.
    """
    assert given.offsets is not None
    assert given.shapes is not None
    made = pack_rows(given.shapes[indices], given.dtype, HOST_POOL.empty)
    sizes = (made.sizes * given.dtype.itemsize).astype(np.uint64)
    here = np.stack([made.addresses, sizes], axis=1)
    there = np.stack([given.offsets[indices].astype(np.uint64), sizes], axis=1)
    count = ctypes.c_ulong(len(indices))
    pieces = [ctypes.c_void_p(each.ctypes.data) for each in (here, there)]
    try:
        read = _libc().process_vm_readv
    except AttributeError as error:
        raise OSError("there is no such call of the system") from error
    read.restype = ctypes.c_ssize_t
    done = read(given.process, pieces[0], count, pieces[1], count, ctypes.c_ulong(0))
    if done != int(sizes.sum()):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return made
