"""Copies of tensors and batches: on the GPU, from the host, to the host.

The copies that a pipeline makes for itself are operators; these are what users ask of tensors.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from headrace.tensors.gpu.access import Access
from headrace.tensors.gpu.batch import DeviceBatch, StridedBatch, in_one_piece
from headrace.tensors.gpu.device import get_device
from headrace.tensors.gpu.foreign_memory import defer_release
from headrace.tensors.pool import HOST_POOL

if TYPE_CHECKING:
    from headrace.tensors.gpu.device import GpuDevice
    from headrace.tensors.gpu.queue import Queue
    from headrace.tensors.gpu.runtime import Runtime

_FEW = 8
"""As many copies of the driver's cost as much as a kernel that does them all."""


@contextlib.contextmanager
def _borrowed_stream(runtime: Runtime) -> Iterator[int]:
    stream = runtime.acquire_stream()
    try:
        with runtime.active():
            yield stream
    finally:
        runtime.release_stream(stream)


def duplicated(access: Access, batch: DeviceBatch) -> tuple[Access, DeviceBatch]:
    """A copy of a batch in one piece of new memory, queued and not waited for."""
    runtime = access.runtime
    with _borrowed_stream(runtime) as stream:
        queue = get_device(runtime.device_id).queue(stream)
        out = queue.empty(batch.shapes, batch.dtype)
        _gather(access, batch, out, queue)
        return Access(runtime, out.owners, stream, runtime.record(stream)), out


def packed(access: Access, batch: DeviceBatch) -> tuple[Access, int]:
    """A copy of all samples of a batch, one after the other without gaps; its address."""
    runtime = access.runtime
    sizes = batch.sizes()
    with _borrowed_stream(runtime) as stream:
        queue = get_device(runtime.device_id).queue(stream)
        out = queue.empty((int(sizes.sum()),), batch.dtype, 1)
        begin = int(out.pointers[0])
        offsets = (np.cumsum(sizes) - sizes) * batch.dtype.itemsize
        pointers = (begin + offsets).astype(np.uint64)
        parts = DeviceBatch(runtime, out.owners, pointers, batch.shapes, batch.dtype)
        _gather(access, batch, parts, queue)
        return Access(runtime, out.owners, stream, runtime.record(stream)), begin


def address_of_all(batch: DeviceBatch) -> int | None:
    """Return the address of a batch's samples, if they follow one another without gaps; else
    None.
    """
    if batch.is_dense:
        return int(batch.pointers[0])
    sizes = batch.sizes() * batch.dtype.itemsize
    used = np.flatnonzero(sizes)
    if not len(used):
        return int(batch.pointers[0]) if len(batch) else 0
    pointers = batch.pointers[used].astype(np.int64)
    if (pointers[1:] != pointers[:-1] + sizes[used][:-1]).any():
        return None
    if not in_one_piece(batch.owners, batch.pointers[used]):
        return None
    return int(pointers[0])


def _gather(access: Access, batch: DeviceBatch, target: DeviceBatch, queue: Queue) -> None:
    """Queue a copy of the samples to those of `target`, on the GPU."""
    access.grant(queue.stream)
    if batch.is_dense and target.is_dense:
        size = math.prod(batch.uniform_shape or ()) * len(batch) * batch.dtype.itemsize
        _copy_runs(
            access.runtime, [(int(target.pointers[0]), int(batch.pointers[0]), size)], queue.stream
        )
    elif len(batch) > _FEW and queue.has_kernels:
        flat = batch.reshaped(batch.sizes()[:, np.newaxis])
        queue.copy_strided(StridedBatch.of(flat), target)
        defer_release(access.runtime, queue.stream, queue.finish())
    else:
        _copy_runs(access.runtime, _runs(batch, target.pointers.astype(np.int64)), queue.stream)


def _copy_runs(
    runtime: Runtime, runs: list[tuple[int, int, int]], stream: int, *, may_wait: bool = False
) -> None:
    for target, source, size in runs:
        if size:
            runtime.copy(target, source, size, stream, may_wait=may_wait)


def _runs(batch: DeviceBatch, targets: np.ndarray) -> list[tuple[int, int, int]]:
    """Target, source and bytes of the copies that bring the samples to `targets`."""
    sizes = batch.sizes() * batch.dtype.itemsize
    used = np.flatnonzero(sizes)
    if not len(used):
        return []
    to, of = targets[used], batch.pointers[used].astype(np.int64)
    sizes = sizes[used]
    # What goes on without a gap on both sides is one copy.
    starts = (to[1:] != to[:-1] + sizes[:-1]) | (of[1:] != of[:-1] + sizes[:-1])
    if not in_one_piece(batch.owners, batch.pointers[used]):
        starts[:] = True
    first = np.flatnonzero(np.concatenate(([True], starts)))
    totals = np.add.reduceat(sizes, first)
    return list(zip(to[first].tolist(), of[first].tolist(), totals.tolist(), strict=True))


def uploaded(
    device: GpuDevice, arrays: Sequence[np.ndarray], shapes: np.ndarray, dtype: np.dtype
) -> tuple[Access, DeviceBatch]:
    """A copy of C-contiguous host arrays in one piece of device memory, waited for."""
    runtime = device.runtime
    with _borrowed_stream(runtime) as stream:
        out = device.queue(stream).empty(shapes, dtype)
        try:
            for address, array in zip(out.pointers.tolist(), arrays, strict=True):
                if array.nbytes:
                    runtime.copy(address, array.ctypes.data, array.nbytes, stream)
        finally:
            # The arrays are the user's, who may change them at once.
            runtime.synchronize(stream)
        return Access(runtime, out.owners, None, None), out


def downloaded(access: Access, batch: DeviceBatch) -> list[np.ndarray] | np.ndarray:
    """A copy of a batch in host memory, waited for: one array a sample, or one if it is dense.

    The memory is not page-locked. What is, others copy from without waiting, and nothing would keep
    it until they are through.
    """
    runtime = access.runtime
    copies: list[tuple[int, int, int]] = []
    result: list[np.ndarray] | np.ndarray
    if batch.is_dense:
        result = HOST_POOL.empty((len(batch), *(batch.uniform_shape or ())), batch.dtype)
        copies.append((result.ctypes.data, int(batch.pointers[0]), result.nbytes))
    else:
        result = _rows_below(batch, copies)
    with _borrowed_stream(runtime) as stream:
        access.grant(stream)
        try:
            for target, source, size in copies:
                if size:
                    runtime.copy(target, source, size, stream, may_wait=True)
        finally:
            runtime.synchronize(stream)
    return result


def _rows_below(batch: DeviceBatch, copies: list[tuple[int, int, int]]) -> list[np.ndarray]:
    """Host memory for samples that do not form one array; the copies to it are added to
    `copies`.
    """
    sizes = batch.sizes() * batch.dtype.itemsize
    if len(batch):
        begin = int(batch.pointers.min())
        span = int((batch.pointers.astype(np.int64) + sizes).max()) - begin
        if span <= 2 * int(sizes.sum()) and in_one_piece(batch.owners, batch.pointers):
            # Samples of one piece of memory come at once, with the gaps between them.
            flat = HOST_POOL.empty(span, np.uint8)
            copies.append((flat.ctypes.data, begin, span))
            offsets = (batch.pointers.astype(np.int64) - begin).tolist()
            return [
                flat[offset : offset + size].view(batch.dtype).reshape(shape)
                for offset, size, shape in zip(
                    offsets, sizes.tolist(), batch.shapes.tolist(), strict=True
                )
            ]
    rows = [HOST_POOL.empty(tuple(shape), batch.dtype) for shape in batch.shapes.tolist()]
    for row, source in zip(rows, batch.pointers.tolist(), strict=True):
        copies.append((row.ctypes.data, source, row.nbytes))
    return rows


def copy_to_address(
    access: Access, batch: DeviceBatch, address: int, stream: int, *, wait: bool
) -> None:
    """Copy the samples, one after the other, to memory of any kind, on a stream of the user's."""
    runtime = access.runtime
    sizes = batch.sizes() * batch.dtype.itemsize
    with runtime.active():
        access.grant(stream)
        runs = _runs(batch, address + np.cumsum(sizes) - sizes)
        _copy_runs(runtime, runs, stream, may_wait=True)
        if wait:
            runtime.synchronize(stream)
