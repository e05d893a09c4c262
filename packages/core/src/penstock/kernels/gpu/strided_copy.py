"""Copies of samples seen through strides, and of pieces of memory: the GPU's ``numpy.copyto``.

Importing this module makes them known to `penstock.tensors.gpu.queue.Queue.copy_strided`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from penstock.kernels.gpu.compiled import compiled
from penstock.kernels.gpu.program import kernel
from penstock.kernels.gpu.records import THREADS, launch_counted
from penstock.kernels.gpu.strided_axes import Axes, follow
from penstock.kernels.gpu.transpose import copy_tiles
from penstock.tensors.gpu.batch import in_one_piece
from penstock.tensors.gpu.queue import install_strided_copy

if TYPE_CHECKING:
    from penstock.tensors.gpu.batch import DeviceBatch, StridedBatch
    from penstock.tensors.gpu.queue import Queue

_CHUNK_BYTES = 2048
_LONG_ROW_BYTES = 64
"""Shorter rows are not worth the threads of a copy of rows."""
_LONGEST_RUN_BYTES = 1024
"""Longer ones do not fit into the tiles of `copy_tiles`."""
_WORDS = 6
"""Of 64 bits, that a ``Rows`` of ``strided_copy.cu`` has; three for each outer axis follow."""


def copy_strided(queue: Queue, source: StridedBatch, target: DeviceBatch) -> None:
    """Copy samples seen through strides to samples that lie in one piece each.

    Parameters
    ----------
    queue
        Where to queue it.
    source
        Samples of any rank; strides may be negative or 0, and shapes may differ.
    target
        Of the shapes and the element type of `source`; not the same memory.
    """
    if not len(source):
        return
    axes = Axes.of(source, target)
    extents = axes.extents
    if axes.has_runs and extents.shape[1] == 1:
        size = follow(axes.source, axes.target, extents, axes.itemsize)
        if size >= 0 and in_one_piece(source.owners, source.pointers):
            if size:
                queue.runtime.copy(int(axes.target[0]), int(axes.source[0]), size, queue.stream)
            return
    if axes.has_runs and _are_long(extents, axes.itemsize, _LONG_ROW_BYTES, _LONGEST_RUN_BYTES):
        _copy_rows(queue, axes)
    else:
        copy_tiles(queue, axes.with_larger_elements())


install_strided_copy(copy_strided)


@compiled
def _are_long(extents: np.ndarray, itemsize: int, long_bytes: int, longest_bytes: int) -> bool:
    """Whether rows are to be copied as such."""
    rows, count = extents.shape
    if count == 1:
        return True
    total = 0
    for i in range(rows):
        size = extents[i, count - 1] * itemsize
        total += size
        if size > longest_bytes:
            return True
    return total >= long_bytes * rows


def gather(queue: Queue, sources: np.ndarray, sizes_bytes: np.ndarray, target: DeviceBatch) -> None:
    """Copy pieces of memory, each of its own size, to the samples of a batch, in one launch.

    Parameters
    ----------
    queue
        Where to queue it.
    sources
        uint64 ``(samples,)``: addresses of pieces in device memory, or in page-locked memory of
        the host, which the device reads by itself: keep it until the work is done. Such pieces are
        read fastest where they are aligned as their samples are, to 16 bytes.
    sizes_bytes
        int64 ``(samples,)``.
    target
        Where they go.
    """
    extents = np.ascontiguousarray(sizes_bytes, np.int64)[:, np.newaxis]
    _copy_rows(queue, Axes(sources, target.pointers, extents, np.ones_like(extents), 1, True))


def _copy_rows(queue: Queue, axes: Axes) -> None:
    """Copy rows whose elements lie next to one another."""
    outer = axes.extents.shape[1] - 1
    records = np.empty((len(axes.source), _WORDS + 3 * outer), np.int64)
    blocks, each, lanes = _describe(
        records,
        axes.source,
        axes.target,
        axes.extents,
        axes.strides,
        axes.itemsize,
        THREADS,
    )
    launch_counted(
        queue,
        kernel("strided_copy.cu", "copy_rows"),
        records,
        blocks,
        each,
        np.int32(outer),
        np.uint32(lanes),
    )


@compiled
def _describe(
    records: np.ndarray,
    source: np.ndarray,
    target: np.ndarray,
    extents: np.ndarray,
    strides: np.ndarray,
    itemsize: int,
    threads: int,
) -> tuple[int, int, int]:
    """Fill `records`.

    Returns
    -------
    tuple of int
        The number of blocks; that of a sample, if all have as many, else 0; and how many threads
        copy a row.
    """
    count = len(records)
    rows, outer = extents.shape[0], extents.shape[1] - 1
    total_width = 0
    for i in range(rows):
        total_width += extents[i, outer] * itemsize
    mean = total_width // max(rows, 1)
    lanes = 4
    while lanes < 32 and 16 * lanes < mean:
        lanes *= 2
    total, each = 0, 0
    for i in range(count):
        record, row = records[i], i if rows > 1 else 0
        width = extents[row, outer] * itemsize
        chunks = -(-(width + 15 if width > _CHUNK_BYTES - 16 else 1) // _CHUNK_BYTES)
        pieces, step = chunks, width
        for axis in range(outer - 1, -1, -1):
            extent = extents[row, axis]
            pieces *= extent
            record[_WORDS + 3 * axis] = extent
            record[_WORDS + 3 * axis + 1] = strides[row, axis]
            record[_WORDS + 3 * axis + 2] = step
            step *= extent
        if width <= 0:
            pieces = 0
        # Threads that have copied a short row go on with others, up to a chunk of bytes.
        per_block = threads // lanes * min(max(_CHUNK_BYTES // max(width, 1), 1), 8)
        record[0] = total | per_block << 32
        record[1] = np.int64(source[i])
        record[2] = np.int64(target[i])
        record[3] = width
        record[4] = chunks
        record[5] = pieces
        blocks = -(-pieces // per_block)
        each = blocks if i == 0 or blocks == each else 0
        total += blocks
    return total, each, lanes
