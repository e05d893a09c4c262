"""Mirroring, by OpenCV wherever rows are mirrored: NumPy takes 40 times as long for that.

Mirrored rows of bytes are the worst case of a strided copy (1 ns a byte); OpenCV shuffles whole
vectors.
"""

from __future__ import annotations

import math
from itertools import product

import numpy as np

from headrace.kernels.cpu.bits import MAX_CHANNELS, movable
from headrace.kernels.cpu.opencv import cv2


def flip_into(source: np.ndarray, axes: tuple[int, ...], out: np.ndarray) -> None:
    """Fill `out` with `source` mirrored along `axes`."""
    if source.size == 0:
        return
    if len(axes) == 1 and source.flags.c_contiguous:
        axis, shape = axes[0], source.shape
        channels = math.prod(shape[axis + 1 :])
        if channels <= MAX_CHANNELS:
            # However many axes lie before the mirrored one, they are all just rows.
            flat = (-1, shape[axis], channels) if channels > 1 else (-1, shape[axis])
            cv2().flip(movable(source).reshape(flat), 1, movable(out).reshape(flat))
            return
    columns = _column_axis(source, axes)
    if columns < 0:
        index = [slice(None)] * source.ndim
        for axis in axes:
            index[axis] = slice(None, None, -1)
        np.copyto(out, source[tuple(index)])
        return
    source, out = movable(source), movable(out)
    tail = (source.shape[columns], *_channels(source.shape[columns + 1 :]))
    rows = columns - 1
    code = -1 if rows in axes else 1
    plane = (source.shape[rows], *tail) if columns else (1, *tail)
    lead = [
        range(extent - 1, -1, -1) if axis in axes else range(extent)
        for axis, extent in enumerate(source.shape[: max(rows, 0)])
    ]
    targets = product(*(range(extent) for extent in source.shape[: max(rows, 0)]))
    for taken, given in zip(product(*lead), targets, strict=True):
        cv2().flip(source[taken].reshape(plane), code, out[given].reshape(plane))


def _channels(shape: tuple[int, ...]) -> tuple[int, ...]:
    count = math.prod(shape)
    return (count,) if count > 1 else ()


def _column_axis(source: np.ndarray, axes: tuple[int, ...]) -> int:
    """The innermost mirrored axis if OpenCV can mirror it as columns of an image, else -1."""
    if not axes:
        return -1
    axis = axes[-1]
    channels = 1
    expected = source.itemsize
    for k in range(source.ndim - 1, axis - 1, -1):
        if source.strides[k] != expected and source.shape[k] != 1:
            return -1
        if k > axis:
            channels *= source.shape[k]
        expected *= source.shape[k]
    if channels > MAX_CHANNELS or source.shape[axis] == 1:
        # Mirroring whole blocks is fast in NumPy, too.
        return -1
    if axis and source.strides[axis - 1] < 0:
        return -1
    return axis
