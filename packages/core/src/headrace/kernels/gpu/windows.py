"""Shapes and strides of all samples of a batch, worked out on the host."""

from __future__ import annotations

import numpy as np

from headrace.kernels.plan.compiled import compiled
from headrace.tensors.gpu.traced import told, traced
from headrace.tensors.gpu.tracked import empty_beside


@traced
@compiled
def element_counts(shapes: np.ndarray, counts: np.ndarray) -> int:
    """Fill `counts` with the numbers of elements of samples of `shapes`; the largest."""
    most = 0
    for i in range(len(shapes)):
        counts[i] = 1
        for axis in range(shapes.shape[1]):
            counts[i] *= shapes[i, axis]
        most = max(most, counts[i])
    return most


def strides_of(shapes: np.ndarray, itemsize: int) -> np.ndarray:
    """Strides in bytes, ``(samples, ndim)``, of C-contiguous samples of `shapes`."""
    strides = empty_beside(shapes.shape, np.int64, shapes)
    _lay_strides(strides, shapes, itemsize)
    return strides


@traced
@compiled
def _lay_strides(strides: np.ndarray, shapes: np.ndarray, itemsize: int) -> None:
    for i in range(len(shapes)):
        step = itemsize
        for axis in range(shapes.shape[1] - 1, -1, -1):
            strides[i, axis] = step
            step *= shapes[i, axis]


@traced
@compiled
def lay_outputs(
    shapes: np.ndarray,
    channels: np.ndarray,
    channel_axis: int,
    order: np.ndarray,
    out_shapes: np.ndarray,
    strides: np.ndarray,
) -> bool:
    """Shapes of outputs with other channels, and axes in another order.

    `shapes`: of the samples before that, int64 ``(samples, ndim)``. `channels`: how many channels
    the outputs have, int64 ``(samples,)``. `order`: which axis of `shapes` each axis of the outputs
    is, int64 ``(ndim,)``. `out_shapes`: filled with the shapes of the outputs. `strides`: filled
    with their strides in elements, in the order of the axes of `shapes`.
    """
    alike = True
    for i in range(len(shapes)):
        step = 1
        for k in range(len(order) - 1, -1, -1):
            axis = order[k]
            extent = channels[i] if axis == channel_axis else shapes[i, axis]
            out_shapes[i, k] = extent
            strides[i, axis] = step
            step *= extent
            alike &= extent == out_shapes[0, k]
    return alike


@told
@compiled
def same_outside(shapes: np.ndarray, others: np.ndarray, begin: int, end: int) -> bool:
    """True if shapes differ along the axes from number `begin` to `end` only.

    Both are int64 ``(samples, ndim)``; either may have one row for all.
    """
    for i in range(max(len(shapes), len(others))):
        shape = shapes[i if len(shapes) > 1 else 0]
        other = others[i if len(others) > 1 else 0]
        for axis in range(len(shape)):
            if (axis < begin or axis >= end) and shape[axis] != other[axis]:
                return False
    return True
