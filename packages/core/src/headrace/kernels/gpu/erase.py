"""Regions of samples filled with values."""

from __future__ import annotations

import numpy as np

from headrace.errors import ShapeError
from headrace.kernels.gpu.program import kernel
from headrace.kernels.gpu.records import THREADS, launch_records, quotient_up
from headrace.kernels.gpu.shared import constant, record
from headrace.tensors.gpu.batch import DeviceBatch, StridedBatch, contiguous_strides, volumes
from headrace.tensors.gpu.queue import Queue

_AXES = constant(__name__, "AXES", 8)
_REGION = record(f"""erase:Region {{
    uint32 first_block;
    int32 channel;  // the axis that fills are for; -1 if there is one fill
    uint64 out;
    uint64 fills;  // the first one's address
    int64 size, extents[{_AXES}];
    int64 strides[{_AXES}];  // in elements
}}""")


def erase(
    queue: Queue,
    source: DeviceBatch,
    out: DeviceBatch,
    begins: list[np.ndarray],
    ends: list[np.ndarray],
    fills: list[np.ndarray],
    axes: list[int],
    channel: int,
) -> None:
    """Fill `out` with `source`, and regions of it with values.

    `begins`, `ends`: of each sample, or of one where all are alike, int64 ``(regions, axes)``,
    within the data.
    """
    queue.copy_strided(StridedBatch.of(source), out)
    count, ndim = len(out), source.ndim
    if not count:
        return
    if ndim > _AXES:
        raise ShapeError(f"Data of up to {_AXES} axes can be erased on the GPU, got {ndim}.")
    if len(begins) < count:
        begins, ends, fills = (list(each) * count for each in (begins, ends, fills))
    owner = np.repeat(np.arange(count), [len(each) for each in begins])
    first, last = np.concatenate(begins), np.concatenate(ends)
    extents, strides = source.shapes[owner], contiguous_strides(source.shapes, 1)[owner]
    offsets = (first * strides[:, axes]).sum(axis=1)
    extents[:, axes] = last - first
    records = np.empty(len(owner), _REGION)
    lengths = np.array([len(each) for each in fills])
    places = np.cumsum(lengths) - lengths
    values = np.concatenate(fills)
    itemsize = out.dtype.itemsize
    begin = places[owner]
    records["channel"] = np.where(lengths[owner] > 1, channel + _AXES - ndim, -1)
    if channel in axes:
        begin = begin + np.where(lengths[owner] > 1, first[:, axes.index(channel)], 0)
    records["fills"] = queue.upload(values) + (begin * itemsize).astype(np.uint64)
    records["out"] = out.pointers[owner] + (offsets * itemsize).astype(np.uint64)
    records["size"] = sizes = volumes(extents)
    records["extents"], records["strides"] = 1, 0
    records["extents"][:, _AXES - ndim :] = extents
    records["strides"][:, _AXES - ndim :] = strides
    launch_records(
        queue,
        kernel("erase.cu", "fill_regions", np.dtype(f"u{itemsize}")),
        records,
        quotient_up(sizes, THREADS),
    )
