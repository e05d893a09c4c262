"""Batches from the host to the device and back: one copy each, wherever the memory allows it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from headrace.kernels.gpu.staging import LEAST_BYTES, copy_staged
from headrace.kernels.gpu.strided_copy import gather
from headrace.tensors.addresses import addresses_of
from headrace.tensors.gpu.batch import DeviceBatch, in_one_piece
from headrace.tensors.gpu.pinned import is_pinned
from headrace.tensors.gpu.queue import Queue

_FEW_ROWS = 2
_ROW_GAP = 64
"""Bytes between packed rows, at most."""
_LEAST_COPY_BYTES = 1 << 15
"""Rows that are on average smaller are copied by the host sooner than the driver is asked to."""
_MOST_SEGMENTS = 4
"""More are better read by one kernel."""


class RowSegment(Protocol):
    """Samples that follow one another in page-locked memory: see `headrace.executor.cpu.batch`."""

    @property
    def first(self) -> int:
        """Number of the first sample."""

    @property
    def memory(self) -> np.ndarray:
        """All of it."""

    @property
    def shapes(self) -> np.ndarray:
        """int64 ``(samples, ndim)``."""


class HostCopy(NamedTuple):
    """A batch that is being copied to the host."""

    rows: list[np.ndarray]
    """The samples, in page-locked memory; right once the copy is done."""
    dense: np.ndarray | None
    """The whole batch as one array, if it is one."""


def to_device(
    queue: Queue, rows: Sequence[np.ndarray], dense: np.ndarray | None = None, threads: int = 1
) -> DeviceBatch:
    """Queue the copy of a batch of at least one sample to the device; the rows are kept until then.

    Samples in page-locked memory are read from where they are (in that of others, if they are
    large); others go through such memory.
    `dense` are all samples as one array, where they lie in one piece; `rows` may be empty then.
    With several `threads` it is copied to page-locked memory by these, if it is large.
    """
    if dense is not None and not rows:
        dense = np.ascontiguousarray(dense)
    if dense is not None and dense.flags.c_contiguous:
        batch = queue.empty(dense.shape[1:], dense.dtype, len(dense))
        is_large = threads > 1 and dense.nbytes >= LEAST_BYTES
        if is_large and not queue.runtime.is_page_locked(dense.ctypes.data):
            copy_staged(queue, int(batch.pointers[0]), dense, threads)
        elif dense.nbytes:
            queue.keep(dense)
            queue.runtime.copy(
                int(batch.pointers[0]), dense.ctypes.data, dense.nbytes, queue.stream
            )
        return batch
    first = rows[0]
    dtype = first.dtype
    shapes = np.array([row.shape for row in rows], np.int64).reshape(len(rows), first.ndim)
    total = sum(row.nbytes for row in rows)
    if not total:
        return queue.empty(shapes, dtype)
    segment = _pinned_piece(rows, total)
    if segment is not None:
        memory, offsets = segment
        flat = queue.empty((memory.nbytes,), np.uint8, 1)
        queue.keep(memory)
        queue.runtime.copy(int(flat.pointers[0]), memory.ctypes.data, memory.nbytes, queue.stream)
        pointers = flat.pointers[0] + offsets
        return DeviceBatch(queue.runtime, flat.owners, pointers, shapes, dtype)
    out = queue.empty(shapes, dtype)
    whole = _whole(rows)
    if whole is not None:
        queue.keep(whole)
        queue.runtime.copy(int(out.pointers[0]), whole.ctypes.data, total, queue.stream)
        return out
    if _are_copied_one_by_one(queue, rows, total):
        queue.keep(rows)
        for pointer, row in zip(out.pointers.tolist(), rows, strict=True):
            if row.nbytes:
                queue.runtime.copy(pointer, row.ctypes.data, row.nbytes, queue.stream)
        return out
    if not all(row.flags.c_contiguous and is_pinned(row) for row in rows):
        # Laid out as on the device, so that one copy takes them all.
        begin = int(out.pointers[0])
        offsets = (out.pointers - np.uint64(begin)).tolist()
        staged = queue.pinned.empty(offsets[-1] + rows[-1].nbytes, np.uint8)
        for row, offset in zip(rows, offsets, strict=True):
            np.copyto(staged[offset : offset + row.nbytes].view(dtype).reshape(row.shape), row)
        queue.keep(staged)
        queue.runtime.copy(begin, staged.ctypes.data, staged.nbytes, queue.stream)
        return out
    queue.keep(rows)
    sources = addresses_of(rows)
    sizes = np.array([row.nbytes for row in rows], np.int64)
    gather(queue, sources, sizes, out)
    return out


def _are_copied_one_by_one(queue: Queue, rows: Sequence[np.ndarray], total: int) -> bool:
    """Return True if `rows` are large, and lie in page-locked memory of others.

    Kernels need not be able to read such memory where it is.
    """
    if total < _LEAST_COPY_BYTES * len(rows) or is_pinned(rows[0]):
        return False
    is_page_locked = queue.runtime.is_page_locked
    return all(row.flags.c_contiguous and is_page_locked(row.ctypes.data) for row in rows)


def _pinned_piece(rows: Sequence[np.ndarray], total: int) -> tuple[np.ndarray, np.ndarray] | None:
    """The page-locked memory in which `rows`, of `total` bytes, lie with hardly any gaps.

    Returns it as uint8, without unused bytes at its ends; and the address of each row, uint64.
    """
    base = rows[0].base
    if not isinstance(base, np.ndarray) or len(rows) < _FEW_ROWS:
        return None
    if not all(row.base is base and row.flags.c_contiguous for row in rows):
        return None
    if (
        base.dtype != np.uint8
        or base.ndim != 1
        or not (base.flags.c_contiguous and is_pinned(base))
    ):
        return None
    places = addresses_of(rows)
    first = places.min()
    ends = places + np.array([row.nbytes for row in rows], np.uint64)
    size = int(ends.max() - first)
    if size > total + total // 8 + _ROW_GAP * len(rows):
        return None
    begin = int(first) - base.ctypes.data
    return base[begin : begin + size], places - first


def segments_to_device(queue: Queue, segments: Sequence[RowSegment]) -> DeviceBatch | None:
    """Queue a copy of segments of page-locked memory, in as many copies; `None` if there are many.

    The segments are kept until that is done.
    """
    if len(segments) > _MOST_SEGMENTS:
        return None
    first = segments[0]
    shapes = (
        first.shapes
        if len(segments) == 1
        else np.concatenate([segment.shapes for segment in segments])
    )
    out = queue.empty(shapes, first.memory.dtype)
    if out.uniform_shape is not None:
        return None  # which leaves no gaps
    size = first.memory.dtype.itemsize
    for segment in segments:
        memory = segment.memory
        if memory.size:
            # It begins as every sample does, and goes on as they do on the device.
            target = int(out.pointers[segment.first])
            queue.runtime.copy(target, memory.ctypes.data, memory.size * size, queue.stream)
    queue.keep(segments)
    return out


def _whole(rows: Sequence[np.ndarray]) -> np.ndarray | None:
    """The array whose outermost elements `rows` are, in their order."""
    first, last = rows[0], rows[-1]
    base = first if len(rows) == 1 and first.flags.c_contiguous else first.base
    if len(rows) == 1:
        return base if base is first else None
    if (
        isinstance(base, np.ndarray)
        and base.flags.c_contiguous
        and base.dtype == first.dtype
        and base.shape == (len(rows), *first.shape)
        and base.ctypes.data == first.ctypes.data
        and base[-1:].ctypes.data == last.ctypes.data
        and all(row.base is base for row in rows)
    ):
        return base
    return None


def to_host(queue: Queue, batch: DeviceBatch) -> HostCopy:
    """Queue the copy of a batch to the host; what it returns is kept until then."""
    count = len(batch)
    if not count:
        return HostCopy([], None)
    sizes = batch.sizes() * batch.dtype.itemsize
    if batch.is_dense:
        shape = batch.uniform_shape
        assert shape is not None
        dense = queue.pinned.empty((count, *shape), batch.dtype)
        queue.keep(dense)
        queue.keep(batch)
        if dense.nbytes:
            queue.runtime.copy(
                dense.ctypes.data, int(batch.pointers[0]), dense.nbytes, queue.stream
            )
        return HostCopy([dense[i, ...] for i in range(count)], dense)
    begin = int(batch.pointers.min())
    span = int((batch.pointers + sizes.astype(np.uint64)).max()) - begin
    total = int(sizes.sum())
    queue.keep(batch)
    if span <= 2 * total and in_one_piece(batch.owners, batch.pointers):
        # Samples of one piece of memory come with the gaps between them.
        flat = queue.pinned.empty(span, np.uint8)
        queue.runtime.copy(flat.ctypes.data, begin, span, queue.stream)
        offsets = (batch.pointers - np.uint64(begin)).tolist()
    else:
        ends = np.cumsum(-(-sizes // 64) * 64)
        flat = queue.pinned.empty(int(ends[-1]), np.uint8)
        offsets = (ends - (-(-sizes // 64) * 64)).tolist()
        for pointer, offset, size in zip(
            batch.pointers.tolist(), offsets, sizes.tolist(), strict=True
        ):
            if size:
                queue.runtime.copy(flat.ctypes.data + offset, pointer, size, queue.stream)
    queue.keep(flat)
    rows = [
        flat[offset : offset + size].view(batch.dtype).reshape(shape)
        for offset, size, shape in zip(
            offsets, sizes.tolist(), map(tuple, batch.shapes.tolist()), strict=True
        )
    ]
    return HostCopy(rows, None)
