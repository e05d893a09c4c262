"""Functions of single elements, one generated kernel for any chain or tree of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import numpy as np

from headrace.kernels.gpu.pointwise_reading import SourceAddressing, reading
from headrace.kernels.gpu.pointwise_terms import Call, Term, number, source
from headrace.kernels.gpu.pointwise_text import pointwise_kernel
from headrace.kernels.gpu.program import C_TYPES
from headrace.kernels.gpu.records import THREADS, fill_fields
from headrace.kernels.gpu.windows import element_counts
from headrace.kernels.plan.compiled import compiled
from headrace.tensors.gpu.batch import DeviceBatch, StridedBatch, shape_rows
from headrace.tensors.gpu.queue import Queue
from headrace.tensors.gpu.traced import traced
from headrace.tensors.gpu.tracked import empty_beside

_float32 = np.dtype(np.float32)


@cache
def scale_and_shift(data: np.dtype, target: np.dtype) -> Term:
    """`source` 0 times `number` 0 plus `number` 1, both float32, rounded to `target`."""
    operands = (source(0, data), number(0, _float32), number(1, _float32))
    return Call(f"scale_and_shift<{C_TYPES[target]}>", operands, target)


def compute(
    queue: Queue,
    term: Term,
    sources: Sequence[DeviceBatch | StridedBatch],
    numbers: Sequence[np.ndarray],
    out: DeviceBatch,
    faults: int = 0,
) -> None:
    """Queue the computation of `term` for every element of every sample of `out`.

    `faults`: address of an int32 for each `Fault` of the term, if it has any.
    """
    rows = shape_rows(out)
    sizes = empty_beside(len(rows), np.int64, rows)
    if not len(out) or not element_counts(rows, sizes):
        return
    shape = out.uniform_shape
    found = reading(out.shapes, sizes, shape, sources)
    kernel = pointwise_kernel(term, found.accesses, found.axes, wide=found.wide)
    together = shape is not None and not faults and _one_sample(out, sources, numbers, found)
    count = len(out)
    if together:
        sizes, count = sizes * count, 1
    shifts, firsts = empty_beside((2, count), np.int64, sizes, out.pointers)
    tiles, tiles_each = _lay_tiles(
        out.pointers, sizes, out.dtype.itemsize, kernel.length, kernel.tile, shifts, firsts
    )
    columns: dict[str, Any] = {
        "size": sizes,
        "out": out.pointers[:count],
        "shift": shifts,
        "first_tile": firsts,
        "extents": found.extents,
    }
    for k, (batch, strides) in enumerate(zip(sources, found.strides, strict=True)):
        columns[f"source{k}"], columns[f"strides{k}"] = batch.pointers[:count], strides
    for k, each in enumerate(numbers):
        columns[f"number{k}"] = each[:count]
    table = np.empty(count, kernel.row)
    filled = [n for n in kernel.row.names or () if columns.get(n) is not None]
    fill_fields(table[filled], *[columns[n] for n in filled])
    queue.launch(
        kernel.kernel,
        (tiles, 1, 1),
        (THREADS, 1, 1),
        queue.upload(table),
        np.int32(count),
        queue.word(np.uint32, tiles_each),
        np.uint64(faults),
    )


def _one_sample(
    out: DeviceBatch,
    sources: Sequence[DeviceBatch | StridedBatch],
    numbers: Sequence[np.ndarray],
    found: SourceAddressing,
) -> bool:
    """True if the whole batch can be computed as if it were one sample."""
    return (
        all(access is None for access in found.accesses)
        and out.is_dense
        and all(getattr(batch, "is_dense", False) for batch in sources)
        and _are_alike(*numbers)
    )


@traced
def _are_alike(*numbers: np.ndarray) -> bool:
    """True if each of the numbers is the same for all samples."""
    return all(not v.strides[0] or bool(v[0] == v[-1] and (v == v[0]).all()) for v in numbers)


@traced
@compiled
def _lay_tiles(
    pointers: np.ndarray,
    sizes: np.ndarray,
    itemsize: int,
    length: int,
    tile: int,
    shifts: np.ndarray,
    firsts: np.ndarray,
) -> tuple[int, int]:
    """Find out which tile begins which sample.

    `itemsize`, `length`, `tile`: bytes of an element, and elements of an access and of a tile.
    `shifts`: filled with the elements of the first access that are in front of each sample.
    `firsts`: filled with the number of each sample's first tile. Returns number of tiles; and that
    of each sample, if all have as many, else 0.
    """
    most, end, equal = 0, 0, True
    for i in range(len(shifts)):
        size = sizes[i if len(sizes) > 1 else 0]
        shifts[i] = np.int64(pointers[i] // np.uint64(itemsize) % np.uint64(length))
        own = -(-(size + shifts[i]) // tile)
        most = max(most, own)
        firsts[i] = end
        end += own if size else 0
        equal &= size == sizes[0]
    if not equal:
        return end, 0
    for i in range(len(shifts)):
        firsts[i] = i * most
    return most * len(shifts), most
