"""Normalisation of short rows by moments of their own, in one launch."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from headrace.kernels.cpu.normalize import in_blocks
from headrace.kernels.gpu.program import kernel
from headrace.kernels.gpu.records import THREADS, launch_evenly
from headrace.kernels.gpu.shared import record
from headrace.tensors.gpu.batch import DeviceBatch, shape_row
from headrace.tensors.gpu.queue import Queue

_WARP = 32
_LONGEST = 16 << 10
"""Elements that a block works on; of longer rows, several blocks are faster."""
_LONGEST_OF_WARP = 512
_SAMPLE = record("normalize_short:Sample { uint64 source, out; int64 rows, size; }")


def normalize_short_rows(
    queue: Queue,
    data: DeviceBatch,
    out: DeviceBatch,
    axes: tuple[int, ...],
    *,
    ddof: int,
    epsilon: float,
    scale: float,
    shift: float,
) -> bool:
    """Fill `out` with `data`, shifted and scaled by its mean and deviation along `axes`."""
    shape = data.uniform_shape
    found = _rows_of_one(shape, axes) if shape is not None else _rows(data.shapes, axes)
    if found is None:
        return False
    rows, sizes, longest, most = found
    samples = np.empty(len(data), _SAMPLE)
    samples["source"], samples["out"] = data.pointers, out.pointers
    samples["rows"], samples["size"] = rows, sizes
    lanes = _WARP if longest <= _LONGEST_OF_WARP else THREADS
    blocks = -(-most // (THREADS // lanes))
    name = kernel("normalize_short.cu", "normalize_short", data.dtype, out.dtype, lanes)
    numbers = np.float64(ddof), np.float64(epsilon), np.float64(scale), np.float32(shift)
    launch_evenly(queue, name, samples, blocks, *numbers)
    return True


_Rows = tuple[Any, Any, int, int]
"""Numbers of rows and their elements, of each sample or of one for all, and the largest of each."""


@lru_cache(maxsize=1024)
def _rows_of_one(shape: tuple[int, ...], axes: tuple[int, ...]) -> _Rows | None:
    return _rows(shape_row(shape), axes)


def _rows(shapes: np.ndarray, axes: tuple[int, ...]) -> _Rows | None:
    """Rows to normalise in samples of these shapes; `None` if this kernel does not fit them."""
    rows: Any
    sizes: Any
    # The first sample tells most batches apart, at no cost.
    _, size, inner, _ = in_blocks(tuple(shapes[0].tolist()), axes) if len(shapes) else (0, 0, 0, ())
    if inner != 1 or not 0 < size <= _LONGEST:
        return None
    found = [in_blocks(tuple(shape), axes) for shape in shapes.tolist()]
    if any(kept[axis] != 1 for _, _, _, kept in found for axis in axes):
        return None
    rows, sizes, inner = np.array([blocks[:3] for blocks in found], np.int64).T
    longest = int(sizes.max())
    if (inner != 1).any() or longest > _LONGEST or (sizes == 0).any():
        return None
    return rows, sizes, longest, int(rows.max())
