"""Copies of large batches from ordinary host memory to a device, by several threads.

The driver copies such memory through a buffer of its own, in the calling thread: 5 to 7 GB/s on the
host of an H200, whose bus takes 55. Threads that copy pieces to page-locked memory do better
together; each piece is on its way to the device while the next is copied.
"""

from __future__ import annotations

import os
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor

import numpy as np

from headrace.tensors.gpu.queue import Queue

LEAST_BYTES = 8 << 20
"""Less is left to the driver."""
_LEAST_PIECE_BYTES = 4 << 20
"""H200, GB/s with pieces of 1, 2, 4 and 8 MiB: of 17 MB, 4 threads 16, 20, 25 and 18; of 69 MB, 8
threads 20, 24, 25 and 27; without threads 8 and 9. Of page-locked memory it is 47."""
_MOST_THREADS = 16

_pools: dict[tuple[int, int], ThreadPoolExecutor] = {}
"""By process and number of threads."""


def _pool(threads: int) -> ThreadPoolExecutor:
    key = os.getpid(), threads
    found = _pools.get(key)
    if found is None:
        found = _pools[key] = ThreadPoolExecutor(threads, "headrace-staging")
    return found


def copy_staged(queue: Queue, target: int, source: np.ndarray, threads: int) -> None:
    """Queue a copy of a C-contiguous array to an address on the device.

    It has been read when this returns.
    """
    staged = queue.pinned.empty((source.nbytes,), np.dtype(np.uint8))
    queue.keep(staged)
    content = source.reshape(-1).view(np.uint8)
    threads = min(threads, _MOST_THREADS)
    pool = _pool(threads)
    piece = max(-(-source.nbytes // threads), _LEAST_PIECE_BYTES)
    begins = range(0, source.nbytes, piece)
    copies: deque[Future[None]] = deque()
    for begin in begins:
        part = slice(begin, begin + piece)
        copies.append(pool.submit(np.copyto, staged[part], content[part]))
    try:
        for begin in begins:
            copies[0].result()
            copies.popleft()
            size = min(piece, source.nbytes - begin)
            address = staged.ctypes.data + begin
            queue.runtime.copy(target + begin, address, size, queue.stream)
    finally:
        for copy in copies:  # a Ctrl-C: nobody may write to memory that is given back
            copy.cancel() or copy.result()
