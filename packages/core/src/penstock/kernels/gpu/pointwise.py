"""Functions of single elements, one generated kernel for any chain or tree of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from penstock.kernels.gpu.pointwise_reading import Reading, reading
from penstock.kernels.gpu.pointwise_terms import Call, Term, number, source
from penstock.kernels.gpu.pointwise_text import THREADS, PointwiseKernel, pointwise_kernel
from penstock.kernels.gpu.program import C_TYPES

if TYPE_CHECKING:
    from penstock.tensors.gpu.batch import DeviceBatch, StridedBatch
    from penstock.tensors.gpu.queue import Queue

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

    Parameters
    ----------
    sources
        The batches that it reads; their shapes broadcast to those of `out`.
    numbers
        For each number that it reads one value a sample, of the number's type.
    faults
        Address of an int32 for each `Fault` of the term, if it has any.
    """
    sizes = out.sizes()
    if not sizes.any():
        return
    shape = out.uniform_shape
    found = reading(out.shapes, sizes, shape, sources)
    kernel = pointwise_kernel(term, found.accesses, found.axes, wide=found.wide)
    together = shape is not None and not faults and _one_sample(out, sources, numbers, found)
    count = 1 if together else len(out)
    table, fields = np.empty(count, kernel.row), kernel.row.names or ()
    table["size"] = sizes.sum() if together else sizes
    table["out"] = out.pointers[:count]
    for k, (batch, strides) in enumerate(zip(sources, found.strides, strict=True)):
        if f"source{k}" in fields:
            table[f"source{k}"] = batch.pointers[:count]
        if strides is not None and f"strides{k}" in fields:
            table[f"strides{k}"] = strides
    if found.extents is not None and "extents" in fields:
        table["extents"] = found.extents
    for k, values in enumerate(numbers):
        if f"number{k}" in fields:
            table[f"number{k}"] = values[:count]
    tiles, tiles_each = _lay_tiles(table, kernel, out.dtype.itemsize)
    queue.launch(
        kernel,
        (tiles, 1, 1),
        (THREADS, 1, 1),
        queue.upload(table),
        np.int32(count),
        np.uint32(tiles_each),
        np.uint64(faults),
    )


def _one_sample(
    out: DeviceBatch,
    sources: Sequence[DeviceBatch | StridedBatch],
    numbers: Sequence[np.ndarray],
    found: Reading,
) -> bool:
    """Whether the whole batch can be computed as if it were one sample."""
    return (
        all(access is None for access in found.accesses)
        and out.is_dense
        and all(getattr(batch, "is_dense", False) for batch in sources)
        and all(not v.strides[0] or bool((v == v[0]).all()) for v in numbers)
    )


def _lay_tiles(table: np.ndarray, kernel: PointwiseKernel, itemsize: int) -> tuple[int, int]:
    """Fill in which tile begins which sample; number of tiles, and of each sample's if equal."""
    shift = (table["out"] // np.uint64(itemsize) % np.uint64(kernel.length)).astype(np.int64)
    table["shift"] = shift
    sizes = table["size"]
    tiles = -(-(sizes + shift) // kernel.tile)
    if (sizes == sizes[0]).all():
        each = int(tiles.max())
        table["first_tile"] = np.arange(len(table)) * each
        return each * len(table), each
    tiles[sizes == 0] = 0
    ends = np.cumsum(tiles)
    table["first_tile"] = ends - tiles
    return int(ends[-1]), 0
