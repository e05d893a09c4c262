"""Copies of large batches from ordinary host memory to a device, by several threads.

The driver copies such memory through a buffer of its own, in the calling thread: 5 to 7 GB/s on the
host of an H200, whose bus takes 55. Threads that copy to page-locked memory do better together.
"""

from __future__ import annotations

import os
import sys
import threading
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from headrace.tensors.gpu.queue import Queue

LEAST_BYTES = 8 << 20 if sys.platform.startswith("linux") else sys.maxsize
"""Less is left to the driver; and all, where there are no semaphores as on Linux."""
_LEAST_PIECE_BYTES = 4 << 20
_MOST_THREADS = 16


class CopyThreads:
    """Threads that copy memory together with the thread that asks."""

    def __init__(self, count: int) -> None:
        from headrace.kernels.cpu import streaming_copy as loops

        self._loops = loops
        self._lock = threading.Lock()
        self._job = loops.new_job()
        for k in range(count):
            name = f"headrace-staging-{k}"
            # They end with the process: they hold no more than a stack.
            threading.Thread(target=loops.serve, args=(self._job,), name=name, daemon=True).start()

    def copy(self, target: int, source: int, size: int, piece: int) -> None:
        """Copy from address to address, in pieces of so many bytes."""
        with self._lock:  # copies at once would share the memory's bandwidth
            self._loops.copy_shared(self._job, target, source, size, piece)


@cache
def _threads(process: int, count: int) -> CopyThreads:
    """The threads of a process: a fork has none of its parent's."""
    return CopyThreads(count)


def copy_staged(queue: Queue, target: int, source: np.ndarray, threads: int) -> None:
    """Queue a copy of a C-contiguous array to an address on the device, with so many threads.

    It has been read when this returns.
    """
    staged = queue.pinned.empty((source.nbytes,), np.dtype(np.uint8))
    queue.keep(staged)
    _copy(staged, source, threads)
    queue.runtime.copy(target, staged.ctypes.data, source.nbytes, queue.stream)


def copy_by_threads(target: np.ndarray, source: np.ndarray, threads: int) -> None:
    """Copy a C-contiguous array to another one of as many bytes; large ones by so many threads."""
    if threads > 1 and source.nbytes >= LEAST_BYTES:
        _copy(target, source, threads)
    else:
        np.copyto(target, source)


def _copy(target: np.ndarray, source: np.ndarray, threads: int) -> None:
    threads = min(threads, _MOST_THREADS)
    piece = max(-(-source.nbytes // threads), _LEAST_PIECE_BYTES)
    copying = _threads(os.getpid(), threads - 1)  # the thread that asks is one of them
    copying.copy(target.ctypes.data, source.ctypes.data, source.nbytes, piece)
