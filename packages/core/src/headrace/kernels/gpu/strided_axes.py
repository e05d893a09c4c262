"""Axes of strided samples, brought to as few as possible, for all samples of a batch at once."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headrace.kernels.gpu.shared import record
from headrace.kernels.gpu.windows import strides_of
from headrace.kernels.plan.compiled import compiled
from headrace.tensors.gpu.batch import DeviceBatch, StridedBatch, rows_in_common
from headrace.tensors.gpu.traced import told, traced
from headrace.tensors.gpu.tracked import empty_beside

AXIS = record("""strided_axes:Axis {
    uint64 extent;
    int64 source;  // bytes from element to element, on both sides
    int64 target;
}""")
"""An axis of a sample, as it follows the record of one in the tables of kernels."""


@dataclass(slots=True)
class StridedAxes:
    """Axes of a copy: elements at strides, into contiguous elements.

    `source`, `target`: uint64 ``(samples,)``: addresses of the first elements. `extents`: int64
    ``(samples, axes)``, or ``(1, axes)`` for samples that are all alike; outermost first, at least
    one axis. `strides`: of the same shape: those of the source, in bytes. 0 where the extent is 1.
    `itemsize`: bytes of an element: 1, 2, 4 or 8. `has_runs`: whether elements along the innermost
    axis lie next to one another in the source.
    """

    source: np.ndarray
    target: np.ndarray
    extents: np.ndarray
    strides: np.ndarray
    itemsize: int
    has_runs: bool

    @classmethod
    def of(cls, source: StridedBatch, target: DeviceBatch) -> StridedAxes:
        """The axes of a copy, those merged that are one axis to memory."""
        shapes, strides = rows_in_common(source.shapes, source.strides)
        return cls.merged(source.pointers, target.pointers, shapes, strides, source.dtype.itemsize)

    @classmethod
    def merged(
        cls,
        source: np.ndarray,
        target: np.ndarray,
        shapes: np.ndarray,
        strides: np.ndarray,
        itemsize: int,
    ) -> StridedAxes:
        """The same of shapes and strides, int64 ``(samples, ndim)`` or ``(1, ndim)``."""
        width = max(shapes.shape[1], 1)
        extents, steps = empty_beside((2, len(shapes), width), np.int64, shapes, strides)
        kept, has_runs = merge_axes(shapes, strides, itemsize, extents, steps)
        if kept < width:
            extents, steps = copied(extents[:, width - kept :]), copied(steps[:, width - kept :])
        return cls(source, target, extents, steps, itemsize, has_runs)

    @property
    def target_strides(self) -> np.ndarray:
        """Strides of the target, in bytes."""
        return strides_of(self.extents, self.itemsize)

    @property
    def sizes_bytes(self) -> np.ndarray:
        """Bytes of each sample, int64 ``(samples,)``."""
        sizes = self.extents.prod(axis=1) * self.itemsize
        return np.broadcast_to(sizes, len(self.source))

    def with_larger_elements(self) -> StridedAxes:
        """The same with whole runs, or parts of them, as elements of up to 8 bytes.

        Possible where the alignments of both sides allow it: RGBA of bytes are 32-bit elements.
        """
        if not self.has_runs:
            return self
        extents, strides = copied(self.extents), copied(self.strides)
        itemsize, dropped, has_runs = enlarge_elements(
            self.source, self.target, extents, strides, self.itemsize
        )
        if itemsize == self.itemsize:
            return self
        if dropped:
            extents, strides = copied(extents[:, :-1]), copied(strides[:, :-1])
        return StridedAxes(self.source, self.target, extents, strides, itemsize, has_runs)


def copied(values: np.ndarray) -> np.ndarray:
    """A copy that recordings know of, C-contiguous."""
    found = empty_beside(values.shape, values.dtype, values)
    _copy(found, values)
    return found


@traced
def _copy(out: np.ndarray, values: np.ndarray) -> None:
    out[...] = values


@told
@compiled
def merge_axes(
    shapes: np.ndarray, strides: np.ndarray, itemsize: int, extents: np.ndarray, steps: np.ndarray
) -> tuple[int, bool]:
    """Extents and strides, ``(samples, axes)``, with neighbours made one that memory sees as one.

    There is at least one axis left. Strides of axes of extent 1 become 0, since they do not matter.

    `extents`, `steps`: filled with those of the axes that are left, in the last columns. Returns
    how many these are; and whether elements along the innermost lie next to one another.
    """
    rows, ndim = shapes.shape
    width = extents.shape[1]
    kept = 0
    for axis in range(ndim - 1, -1, -1):
        at = width - kept  # the column of the axis kept last
        single, joins = True, kept > 0
        for i in range(rows):
            extent = shapes[i, axis]
            if extent == 1:
                continue
            single = False
            if not joins:
                break
            inner = extents[i, at]
            if inner != 1 and strides[i, axis] != steps[i, at] * inner:
                empty = False
                for k in range(ndim):
                    empty |= shapes[i, k] == 0
                joins = empty
        if single:
            continue
        if not joins:
            kept += 1
            at = width - kept
            for i in range(rows):
                extents[i, at] = shapes[i, axis]
                steps[i, at] = strides[i, axis]
            continue
        for i in range(rows):
            if extents[i, at] == 1:
                steps[i, at] = strides[i, axis]
            extents[i, at] *= shapes[i, axis]
    if not kept:
        kept = 1
        extents[:, width - 1] = 1
    has_runs = True
    for i in range(rows):
        for at in range(width - kept, width):
            if extents[i, at] == 1:
                steps[i, at] = 0
        has_runs &= extents[i, width - 1] <= 1 or steps[i, width - 1] == itemsize
    return kept, has_runs


@told
@compiled
def enlarge_elements(
    source: np.ndarray, target: np.ndarray, extents: np.ndarray, steps: np.ndarray, itemsize: int
) -> tuple[int, bool, bool]:
    """Make innermost axes, along which elements lie next to one another, ones of larger
    elements.

    Returns the size of an element; whether the last axis is superfluous now; and whether the axis
    that is the last without it has its elements next to one another.
    """
    places = np.uint64(0)
    for i in range(len(source)):
        places |= source[i] | target[i]
    rows, count = extents.shape
    last = count - 1
    for i in range(rows):
        places |= np.uint64(extents[i, last] * itemsize)
        for axis in range(last):
            places |= np.uint64(abs(steps[i, axis]))
    size = 8
    while places & np.uint64(size - 1):
        size //= 2
    if size <= itemsize:
        return itemsize, False, True
    single, has_runs = True, True
    for i in range(rows):
        extents[i, last] = extents[i, last] * itemsize // size
        steps[i, last] = 0 if extents[i, last] == 1 else size
        single &= extents[i, last] == 1
    if not single or not last:
        return size, False, True
    for i in range(rows):
        has_runs &= extents[i, last - 1] <= 1 or steps[i, last - 1] == size
    return size, True, has_runs


@traced
@compiled
def follow(source: np.ndarray, target: np.ndarray, extents: np.ndarray, itemsize: int) -> int:
    """The bytes of all samples, of one axis, if they follow one another on both sides; else -1."""
    total = np.int64(0)
    for i in range(len(source)):
        size = np.uint64(extents[i if len(extents) > 1 else 0, 0] * itemsize)
        total += np.int64(size)
        if i + 1 < len(source) and (
            source[i + 1] - source[i] != size or target[i + 1] - target[i] != size
        ):
            return -1
    return int(total)
