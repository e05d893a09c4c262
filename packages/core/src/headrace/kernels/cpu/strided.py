"""Copies of samples that are views: windows and mirror images."""

from __future__ import annotations

from collections.abc import Callable

import numba
import numpy as np

from headrace.kernels.compilation import njit
from headrace.kernels.cpu.copy_rows import copy_bytes
from headrace.kernels.cpu.pointers import elements
from headrace.kernels.cpu.simd import LANES, load_channel, store_pixels
from headrace.tensors.rows import Rows, pack_rows
from headrace.tensors.strided_rows import StridedRows

Empty = Callable[[tuple[int, ...], np.dtype], np.ndarray]


def contiguous(rows: StridedRows, empty: Empty) -> Rows:
    """A copy of `rows` without gaps, in memory from `empty`."""
    out = pack_rows(rows.shapes, rows.dtype, empty)
    copy_strided(rows.origins, rows.strides, rows.shapes, out.addresses, rows.dtype.itemsize)
    return out


_SHORT_BYTES = 32
"""Runs up to which a loop over bytes is quicker than a call."""
_PIXEL = 3
"""Bytes of a pixel whose channels are bytes."""
_BYTE = np.empty(0, np.uint8)


@njit(nogil=True)
def _reversed_pixels(given: np.ndarray, wanted: np.ndarray, count: int) -> int:
    """Copy pixels of three bytes in reverse, sixteen at a time; how many are left."""
    for x in range(0, count - count % LANES, LANES):
        at = (count - x - LANES) * _PIXEL
        a = load_channel(given, at, 3, 0, True)
        b = load_channel(given, at, 3, 1, True)
        c = load_channel(given, at, 3, 2, True)
        store_pixels(wanted, x * _PIXEL, a, b, c)
    return count % LANES


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
    ndim = shapes.shape[1]
    index = np.empty(ndim, np.int64)
    for k in range(len(sources)):
        run, axis = itemsize, ndim - 1
        while axis >= 0 and (shapes[k, axis] == 1 or strides[k, axis] == run):
            run *= shapes[k, axis]
            axis -= 1
        count = 1
        for d in range(axis + 1):
            count *= shapes[k, d]
            index[d] = 0
        if run == 0 or count == 0:
            continue
        steps = 1 if axis < 0 else shapes[k, axis]
        step = 0 if axis < 0 else strides[k, axis]
        source, target = np.int64(sources[k]), targets[k]
        for _ in range(count // steps):
            if run <= _SHORT_BYTES:
                # One array for all steps: from the lowest address on, where they go backwards.
                low = min(source, source + step * (steps - 1))
                given = numba.carray(elements(np.uint64(low), _BYTE), 1)
                wanted = numba.carray(elements(target, _BYTE), 1)
                at, to, left = source - low, 0, steps
                if run == _PIXEL and step == -_PIXEL:
                    left = _reversed_pixels(given, wanted, steps)
                    at += step * (steps - left)
                    to = (steps - left) * _PIXEL
                for _ in range(left):
                    for j in range(run):
                        wanted[to + j] = given[at + j]
                    at += step
                    to += run
            elif step < 0:
                # From both ends: rows that are read backwards alone take a quarter longer.
                for j in range((steps + 1) // 2):
                    for row in (j, steps - 1 - j):
                        place = np.uint64(source + row * step)
                        copy_bytes(target + np.uint64(row * run), place, run)
            else:
                for j in range(steps):
                    place = np.uint64(source + j * step)
                    copy_bytes(target + np.uint64(j * run), place, run)
            target += np.uint64(steps * run)
            for d in range(axis - 1, -1, -1):
                index[d] += 1
                source += strides[k, d]
                if index[d] < shapes[k, d]:
                    break
                source -= strides[k, d] * shapes[k, d]
                index[d] = 0
