"""Copies of samples that are views: windows and mirror images."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from headrace.kernels.compilation import njit
from headrace.kernels.cpu.copy_sample import SHORT_BYTES, copy_sample
from headrace.tensors.addresses import addresses_of
from headrace.tensors.rows import Rows, pack_rows
from headrace.tensors.strided_rows import StridedRows

Empty = Callable[[tuple[int, ...], np.dtype], np.ndarray]

_FEW = 4096
"""Elements up to which a call takes longer than it saves."""


def contiguous(rows: StridedRows, empty: Empty) -> Rows:
    """A copy of `rows` without gaps, in memory from `empty`."""
    out = pack_rows(rows.shapes, rows.dtype, empty)
    copy_strided(rows.origins, rows.strides, rows.shapes, out.addresses, rows.dtype.itemsize)
    return out


def copy_view(value: np.ndarray, out: np.ndarray) -> None:
    """Copy a sample that may be a view, even one of `out`, to contiguous memory."""
    size = value.itemsize
    # NumPy takes many times as long where short runs, as of a pixel's channels, have gaps between.
    if (
        value.size < _FEW
        or value.flags.c_contiguous
        or value.strides[-1] != size
        or not 1 < value.shape[-1] <= SHORT_BYTES // size
        or np.may_share_memory(value, out)
    ):
        np.copyto(out, value)
        return
    strides, shapes = np.array([value.strides]), np.array([value.shape])
    copy_strided(addresses_of([value]), strides, shapes, addresses_of([out]), size)


@njit(nogil=True)
def copy_strided(
    sources: np.ndarray,
    strides: np.ndarray,
    shapes: np.ndarray,
    targets: np.ndarray,
    itemsize: int,
) -> None:
    """Copy samples with gaps, or mirrored, to contiguous memory.

    `sources`, `targets`: addresses, uint64 ``(samples,)``. `strides`, `shapes`: bytes and extents,
    int64 ``(samples, ndim)``.
    """
    index = np.empty(shapes.shape[1], np.int64)
    for k in range(len(sources)):
        copy_sample(np.int64(sources[k]), strides[k], shapes[k], targets[k], itemsize, index)
