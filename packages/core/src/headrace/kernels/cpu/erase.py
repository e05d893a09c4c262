"""Copies of samples in which regions are filled."""

from __future__ import annotations

import numpy as np

from headrace.kernels.compilation import njit
from headrace.kernels.cpu.copy_rows import copy_bytes

_RUN = 1024
"""Elements one after another that are worth a loop of their own."""


@njit(nogil=True)
def erase(
    sources: np.ndarray,
    targets: np.ndarray,
    out: np.ndarray,
    origins: np.ndarray,
    shapes: np.ndarray,
    begins: np.ndarray,
    ends: np.ndarray,
    axes: np.ndarray,
    fills: np.ndarray,
    channel: int,
) -> None:
    """Copy contiguous samples, and fill regions of the copies.

    `sources`, `targets`: uint64 ``(samples,)``: the addresses of samples, and of their copies.
    `out`, `origins`: memory that all copies are in, flat, and the element of it that each begins
    with. `shapes`: int64 ``(samples, ndim)``. `begins`, `ends`: int64 ``(samples, regions, axes)``,
    within the data. `axes`: int64: those that regions have bounds along. `fills`: ``(samples, 1)``,
    or a value for each channel.
    """
    ndim = shapes.shape[1]
    strides, first, last, index = np.empty((4, ndim), np.int64)
    for k in range(len(sources)):
        size = 1
        for d in range(ndim - 1, -1, -1):
            strides[d] = size
            size *= shapes[k, d]
        copy_bytes(targets[k], sources[k], size * out.itemsize)
        for region in range(begins.shape[1]):
            first[:] = 0
            last[:] = shapes[k]
            for j in range(len(axes)):
                first[axes[j]], last[axes[j]] = begins[k, region, j], ends[k, region, j]
            if (last > first).all():
                _fill(
                    *(out, origins[k], targets[k], strides, first, last, index),
                    *(fills[k], channel),
                )


@njit(nogil=True)
def _fill(
    out: np.ndarray,
    origin: int,
    target: np.uint64,
    strides: np.ndarray,
    first: np.ndarray,
    last: np.ndarray,
    index: np.ndarray,
    fills: np.ndarray,
    channel: int,
) -> None:
    """Fill the region from `first` to `last`, run by run: elements that follow one another."""
    axis = len(strides) - 1
    run = last[axis] - first[axis]
    while axis > 0 and run == strides[axis - 1] and run < _RUN:
        axis -= 1
        run = (last[axis] - first[axis]) * strides[axis]
    count = 1
    for d in range(axis):
        count *= last[d] - first[d]
    index[:] = first
    row = target
    several = len(fills) > 1
    for number in range(count):
        place = 0
        for d in range(axis + 1):
            place += index[d] * strides[d]
        begin = origin + place
        address = target + np.uint64(place * out.itemsize)
        if number and not (several and channel < axis):  # the same as the first run
            copy_bytes(address, row, run * out.itemsize)
        elif several and channel >= axis:
            row = address
            for i in range(run):
                out[begin + i] = fills[(place + i) // strides[channel] % len(fills)]
        else:
            row = address
            out[begin : begin + run] = fills[index[channel] if several else 0]
        for d in range(axis - 1, -1, -1):
            index[d] += 1
            if index[d] < last[d]:
                break
            index[d] = first[d]
