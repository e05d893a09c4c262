"""Copies of samples seen through strides, and of pieces of memory: the GPU's ``numpy.copyto``.

Importing this module makes them known to `headrace.tensors.gpu.queue.Queue.copy_strided`.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from headrace.kernels.gpu.program import kernel
from headrace.kernels.gpu.records import launch_counted
from headrace.kernels.gpu.shared import constant, followed, record
from headrace.kernels.gpu.strided_axes import AXIS, StridedAxes, follow
from headrace.kernels.gpu.transpose import copy_tiles
from headrace.kernels.plan.compiled import compiled
from headrace.tensors.gpu.batch import DeviceBatch, StridedBatch, as_contiguous, in_one_piece
from headrace.tensors.gpu.queue import Queue, install_strided_copy
from headrace.tensors.gpu.traced import traced

_THREADS = constant(__name__, "THREADS", 128, "uint32")
"""Of a block."""
_ITEMS = constant(__name__, "ITEMS", 8, "uint32")
"""Vectors of 16 bytes that a thread copies."""
_LINE_BYTES = constant(__name__, "LINE", 128, "uint32")
"""Bytes that neighbouring threads write together."""
_LONG_ROW_BYTES = constant(__name__, "NARROW", 64, "uint32")
"""Bytes of a row from which on it is copied by way of shared memory; shorter rows are not worth the
threads of a copy of rows."""
_LONGEST_RUN_BYTES = 1024
"""Longer ones do not fit into the tiles of `copy_tiles`."""


def copy_strided(queue: Queue, source: StridedBatch, target: DeviceBatch) -> None:
    """Copy samples seen through strides to samples that lie in one piece each.

    `source`: samples of any rank; strides may be negative or 0, and shapes may differ.
    """
    if not len(source):
        return
    axes = StridedAxes.of(source, target)
    extents = axes.extents
    if axes.has_runs and extents.shape[1] == 1:
        size = follow(axes.source, axes.target, extents, axes.itemsize)
        if size >= 0 and in_one_piece(source.owners, source.pointers):
            if size:
                queue.runtime.copy(
                    int(axes.target[0]), int(axes.source[0]), int(size), queue.stream
                )
            return
    if axes.has_runs and _are_long(extents, axes.itemsize):
        _copy_rows(queue, axes)
    else:
        copy_tiles(queue, axes.with_larger_elements())


install_strided_copy(copy_strided)


@traced
@compiled
def _are_long(extents: np.ndarray, itemsize: int) -> bool:
    """True if rows are copied as such."""
    rows, count = extents.shape
    if count == 1:
        return True
    total = 0
    for i in range(rows):
        size = extents[i, count - 1] * itemsize
        total += size
        if size > _LONGEST_RUN_BYTES:
            return True
    return total >= _LONG_ROW_BYTES * rows


def gather(queue: Queue, sources: np.ndarray, sizes_bytes: np.ndarray, target: DeviceBatch) -> None:
    """Copy pieces of memory, each of its own size, to the samples of a batch, in one launch.

    `sources`: uint64 ``(samples,)``: addresses of pieces in device memory, or in page-locked memory
    of the host, which the device reads by itself: keep it until the work is done. `sizes_bytes`:
    int64 ``(samples,)``.
    """
    extents = as_contiguous(sizes_bytes[:, np.newaxis])
    _copy_rows(
        queue, StridedAxes(sources, target.pointers, extents, np.ones_like(extents), 1, True)
    )


_ROWS = record("""strided_copy:Rows {
    uint32 first_block;
    uint64 source, target;
    uint64 width;  // of a row, in bytes
    uint64 size;  // of the sample, in bytes
    uint64 count;  // vectors of the sample, from the line on that it begins in
    // The memory that all rows of the source lie in, with what is between them.
    uint64 low, high;
}""")


@cache
def _record(outer: int) -> np.dtype:
    """A sample with its axes after it: at least one, which may stand still."""
    return followed(_ROWS, ("axes", AXIS, (max(outer, 1),)))


def _copy_rows(queue: Queue, axes: StridedAxes) -> None:
    """Copy rows whose elements lie next to one another."""
    outer = axes.extents.shape[1] - 1
    records = np.zeros(len(axes.source), _record(outer))
    blocks, blocks_each = _describe(
        records,
        as_contiguous(axes.source),
        as_contiguous(axes.target),
        axes.extents,
        axes.strides,
        axes.itemsize,
        _THREADS * _ITEMS,
        _LINE_BYTES,
    )
    launch_counted(
        queue,
        kernel("strided_copy.cu", "copy_rows"),
        records,
        blocks,
        blocks_each,
        np.int32(outer),
        threads=_THREADS,
    )


@traced
@compiled
def _describe(
    records: np.ndarray,
    source: np.ndarray,
    target: np.ndarray,
    extents: np.ndarray,
    strides: np.ndarray,
    itemsize: int,
    block_vectors: int,
    line_bytes: int,
) -> tuple[int, int]:
    """Fill `records`.

    Returns the number of blocks; and that of each sample, if all have as many, else 0.
    """
    outer = extents.shape[1] - 1
    total, each = 0, 0
    for i in range(len(records)):
        record = records[i]
        row = i if len(extents) > 1 else 0
        width = extents[row, outer] * itemsize
        low = np.int64(source[i])
        high, step = low + width, width
        for k in range(outer - 1, -1, -1):
            extent, stride = extents[row, k], strides[row, k]
            record.axes[k].extent = extent
            record.axes[k].source = stride
            record.axes[k].target = step
            step *= extent
            if stride < 0:
                low += (extent - 1) * stride
            else:
                high += (extent - 1) * stride
        size = step
        count = (np.int64(target[i]) % line_bytes + size + 15) // 16 if size > 0 else 0
        record.source = source[i]
        record.target = target[i]
        record.width = width
        record.size = size
        record.count = count
        record.low = low
        record.high = high
        blocks = -(-count // block_vectors)
        record.first_block = total
        each = blocks if i == 0 or blocks == each else 0
        total += blocks
    return total, each
