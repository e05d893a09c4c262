"""Blocks of LZ4: the GPU's side of `kernels.cpu.inflate`."""

from __future__ import annotations

import numpy as np

from headrace.kernels.gpu.program import kernel
from headrace.kernels.gpu.records import launch_evenly
from headrace.kernels.gpu.shared import constant, record
from headrace.tensors.gpu.batch import DeviceBatch
from headrace.tensors.gpu.queue import Queue

_LANES = constant(__name__, "LANES", 32)
_BLOCK = record("""inflate:Block {
    uint64 source, out, status;
    int64 size, room;  // bytes of the block, and for what it inflates to
}""")


def inflate(
    queue: Queue, sources: np.ndarray, sizes: np.ndarray, outs: np.ndarray, rooms: np.ndarray
) -> DeviceBatch:
    """Inflate blocks at the addresses `sources` to `outs`; the statuses, a batch of one.

    `sizes` and `rooms` are bytes; a status is that of `kernels.cpu.inflate.inflate`.
    """
    records = np.zeros(len(sources), _BLOCK)
    found = queue.empty((max(len(sources), 1),), np.int64, 1)
    records["source"], records["size"] = sources, sizes
    records["out"], records["room"] = outs, rooms
    records["status"] = found.pointers[0] + np.arange(len(sources), dtype=np.uint64) * np.uint64(8)
    if len(records):
        launch_evenly(queue, kernel("inflate.cu", "inflate_lz4"), records, 1, threads=_LANES)
    return found
