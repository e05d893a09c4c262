"""Copies of samples seen through strides, and of pieces of memory: the GPU's ``numpy.copyto``.

Importing this module makes them known to `penstock.tensors.gpu.queue.Queue.copy_strided`.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from penstock.kernels.gpu.program import kernel
from penstock.kernels.gpu.records import THREADS, launch_records, quotient_up
from penstock.kernels.gpu.strided_axes import Axes
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
    axes = Axes.of(source, target)
    if axes.are_one_piece and in_one_piece(source.owners, source.pointers):
        size = int(axes.extents.sum()) * axes.itemsize
        if size:
            queue.runtime.copy(int(axes.target[0]), int(axes.source[0]), size, queue.stream)
        return
    runs = axes.run_bytes
    long_rows = axes.has_runs and (
        axes.extents.shape[1] == 1
        or runs.sum() >= _LONG_ROW_BYTES * len(runs)
        or runs.max(initial=0) > _LONGEST_RUN_BYTES
    )
    if long_rows:
        _copy_rows(queue, axes)
    else:
        copy_tiles(queue, axes.with_larger_elements())


install_strided_copy(copy_strided)


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
    extents = sizes_bytes[:, np.newaxis]
    _copy_rows(queue, Axes(sources, target.pointers, extents, np.ones_like(extents), 1))


@cache
def _record(outer: int) -> np.dtype:
    return np.dtype(
        [
            ("first_block", np.uint32),
            ("per_block", np.uint32),
            ("source", np.uint64),
            ("target", np.uint64),
            ("width", np.int64),
            ("chunks", np.int64),
            ("pieces", np.int64),
            ("axes", np.int64, (outer, 3)),
        ],
        align=True,
    )


def _copy_rows(queue: Queue, axes: Axes) -> None:
    """Copy rows whose elements lie next to one another."""
    extents, outer = axes.extents, axes.extents.shape[1] - 1
    width = extents[:, -1] * axes.itemsize
    mean = int(width.sum()) // max(len(width), 1)
    lanes = 4
    while lanes < 32 and 16 * lanes < mean:
        lanes *= 2
    chunks = quotient_up(np.where(width > _CHUNK_BYTES - 16, width + 15, 1), _CHUNK_BYTES)
    pieces = np.where(width > 0, extents[:, :-1].prod(axis=1) * chunks, 0)
    # Threads that have copied a short row go on with others, up to a chunk of bytes.
    per_block = THREADS // lanes * np.clip(_CHUNK_BYTES // np.maximum(width, 1), 1, 8)
    records = np.empty(len(width), _record(outer))
    records["per_block"] = per_block
    records["source"] = axes.source
    records["target"] = axes.target
    records["width"] = width
    records["chunks"] = chunks
    records["pieces"] = pieces
    if outer:
        records["axes"][:, :, 0] = extents[:, :-1]
        records["axes"][:, :, 1] = axes.strides[:, :-1]
        records["axes"][:, :, 2] = axes.target_strides[:, :-1]
    launch_records(
        queue,
        kernel("strided_copy.cu", "copy_rows"),
        records,
        quotient_up(pieces, per_block),
        np.int32(outer),
        np.uint32(lanes),
    )
