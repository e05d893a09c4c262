"""Copies of one sample that is a view, and of the part of it that a window shows."""

from __future__ import annotations

import numba
import numpy as np

from headrace.kernels.compilation import njit
from headrace.kernels.cpu.copy_rows import copy_bytes
from headrace.kernels.cpu.pointers import elements, pointer
from headrace.kernels.cpu.simd import LANES, load_channel, store_pixels

SHORT_BYTES = 32
"""Runs up to which few words are quicker than a call."""
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
def _copy_short(target: np.uint64, source: np.uint64, size: int) -> None:
    """Copy `SHORT_BYTES` or fewer, by words of fixed sizes that may overlap."""
    last = np.uint64(size)
    if size >= 16:
        copy_bytes(target, source, 16)
        copy_bytes(target + last - np.uint64(16), source + last - np.uint64(16), 16)
    elif size >= 8:
        copy_bytes(target, source, 8)
        copy_bytes(target + last - np.uint64(8), source + last - np.uint64(8), 8)
    elif size >= 4:
        copy_bytes(target, source, 4)
        copy_bytes(target + last - np.uint64(4), source + last - np.uint64(4), 4)
    else:
        copy_bytes(target, source, 1)
        if size > 1:
            copy_bytes(target + last - np.uint64(2), source + last - np.uint64(2), 2)


@njit(nogil=True)
def copy_sample(
    source: int,
    strides: np.ndarray,
    shape: np.ndarray,
    target: np.uint64,
    itemsize: int,
    index: np.ndarray,
) -> None:
    """Copy a sample with gaps, or mirrored, to contiguous memory.

    `source`, `target`: addresses. `strides`, `shape`: bytes and extents, int64 ``(ndim,)``.
    `index`: scratch memory of as many numbers.
    """
    ndim = len(shape)
    run, axis = itemsize, ndim - 1
    while axis >= 0 and (shape[axis] == 1 or strides[axis] == run):
        run *= shape[axis]
        axis -= 1
    count = 1
    for d in range(axis + 1):
        count *= shape[d]
        index[d] = 0
    if run == 0 or count == 0:
        return
    steps = 1 if axis < 0 else shape[axis]
    step = 0 if axis < 0 else strides[axis]
    for _ in range(count // steps):
        if run <= SHORT_BYTES:
            left = steps
            if run == _PIXEL and step == -_PIXEL:
                low = np.uint64(source + step * (steps - 1))
                given = numba.carray(elements(low, _BYTE), 1)
                wanted = numba.carray(elements(target, _BYTE), 1)
                left = _reversed_pixels(given, wanted, steps)
            for j in range(steps - left, steps):
                _copy_short(target + np.uint64(j * run), np.uint64(source + j * step), run)
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
            source += strides[d]
            if index[d] < shape[d]:
                break
            source -= strides[d] * shape[d]
            index[d] = 0


@njit(nogil=True)
def fill_elements(address: np.uint64, count: int, itemsize: int, bits: int) -> None:
    """Write `count` elements of these bits."""
    if itemsize == 1:
        numba.carray(pointer(address), count, np.uint8)[:] = np.uint8(bits & 0xFF)
    elif itemsize == 2:
        numba.carray(pointer(address), count, np.uint16)[:] = np.uint16(bits & 0xFFFF)
    elif itemsize == 4:
        numba.carray(pointer(address), count, np.uint32)[:] = np.uint32(bits & 0xFFFFFFFF)
    else:
        numba.carray(pointer(address), count, np.int64)[:] = bits


@njit(nogil=True)
def copy_window(
    source: int,
    strides: np.ndarray,
    extents: np.ndarray,
    anchors: np.ndarray,
    shape: np.ndarray,
    target: np.uint64,
    itemsize: int,
) -> None:
    """Copy what a window shows of a sample to its place in the window, which is contiguous.

    All arrays are int64 ``(ndim,)``.
    """
    ndim = len(shape)
    scratch = np.empty((4, ndim), np.int64)
    shown, steps, index, inner = scratch[0], scratch[1], scratch[2], scratch[3]
    place, size = np.int64(target), itemsize
    partial = -1
    for axis in range(ndim - 1, -1, -1):
        first = min(max(-anchors[axis], 0), shape[axis])
        last = max(min(extents[axis] - anchors[axis], shape[axis]), first)
        shown[axis], steps[axis] = last - first, size
        if last == first:
            return
        if shown[axis] < shape[axis] and partial < 0:
            partial = axis
        source += (anchors[axis] + first) * strides[axis]
        place += first * size
        size *= shape[axis]
    # What lies behind the innermost axis that is cut is in one piece.
    block = max(partial, 0)
    count = 1
    for axis in range(block):
        count *= shown[axis]
        index[axis] = 0
    for _ in range(count):
        copy_sample(
            source, strides[block:], shown[block:], np.uint64(place), itemsize, inner[block:]
        )
        for axis in range(block - 1, -1, -1):
            index[axis] += 1
            source += strides[axis]
            place += steps[axis]
            if index[axis] < shown[axis]:
                break
            source -= strides[axis] * shown[axis]
            place -= steps[axis] * shown[axis]
            index[axis] = 0
