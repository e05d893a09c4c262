"""Objects in segmentation masks: connected elements with the same label."""

from __future__ import annotations

import numpy as np

from headrace.kernels.compilation import njit


@njit(nogil=True)
def _root(parents: np.ndarray, element: int) -> int:
    while parents[element] != element:
        parents[element] = parents[parents[element]]
        element = parents[element]
    return element


@njit(nogil=True)
def _step(place: np.ndarray, shape: np.ndarray) -> None:
    """To the next element."""
    for d in range(len(shape) - 1, -1, -1):
        place[d] += 1
        if place[d] < shape[d]:
            break
        place[d] = 0


@njit(nogil=True)
def find_blobs(
    mask: np.ndarray, shape: np.ndarray, background: int
) -> tuple[np.ndarray, np.ndarray]:
    """Labels and bounding boxes of all objects.

    Elements belong together if they have the same label and one is after the other along an axis.

    `mask`: int32, flat. `shape`: int64 ``(axes,)``. Returns labels, int32 ``(objects,)``, in the
    order of the objects' first elements; and where they begin and end along each axis, int32
    ``(objects, 2 * axes)``.
    """
    ndim = len(shape)
    strides = np.ones(ndim, np.int64)
    for d in range(ndim - 2, -1, -1):
        strides[d] = strides[d + 1] * shape[d + 1]
    parents = np.empty(mask.size, np.int64)
    place = np.zeros(ndim, np.int64)
    count = 0
    for i in range(mask.size):
        parents[i] = i
        if mask[i] != background:
            count += 1
            for d in range(ndim):
                before = i - strides[d]
                if place[d] and mask[before] == mask[i]:
                    a, b = _root(parents, before), _root(parents, i)
                    if a != b:
                        parents[max(a, b)] = min(a, b)
                        count -= 1
        _step(place, shape)
    labels = np.empty(count, np.int32)
    boxes = np.empty((count, 2 * ndim), np.int32)
    numbers = np.empty(mask.size, np.int64)
    place[:] = 0
    found = 0
    for i in range(mask.size):
        if mask[i] != background:
            root = _root(parents, i)
            if root == i:  # an object's first element is its root
                numbers[i] = found
                labels[found] = mask[i]
                for d in range(ndim):
                    boxes[found, d] = place[d]
                    boxes[found, ndim + d] = place[d] + 1
                found += 1
            else:
                box = boxes[numbers[root]]
                for d in range(ndim):
                    box[d] = min(box[d], place[d])
                    box[ndim + d] = max(box[ndim + d], place[d] + 1)
        _step(place, shape)
    return labels, boxes
