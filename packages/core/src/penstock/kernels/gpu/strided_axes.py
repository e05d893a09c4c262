"""Axes of strided samples, brought to as few as possible, for all samples of a batch at once."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from penstock.tensors.gpu.batch import DeviceBatch, StridedBatch, contiguous_strides


@dataclass(slots=True)
class Axes:
    """What is to be copied: elements at strides, into elements that lie next to one another.

    Attributes
    ----------
    source, target
        uint64 ``(samples,)``: addresses of the first elements.
    extents
        int64 ``(samples, axes)``, outermost first; at least one axis.
    strides
        int64 ``(samples, axes)``: those of the source, in bytes. 0 where the extent is 1.
    itemsize
        Bytes of an element: 1, 2, 4 or 8.
    has_runs
        Whether elements along the innermost axis lie next to one another in the source.
    """

    source: np.ndarray
    target: np.ndarray
    extents: np.ndarray
    strides: np.ndarray
    itemsize: int
    has_runs: bool = field(init=False)

    def __post_init__(self) -> None:
        apart = (self.strides[:, -1] != self.itemsize) & (self.extents[:, -1] > 1)
        self.has_runs = not apart.any()

    @classmethod
    def of(cls, source: StridedBatch, target: DeviceBatch) -> Axes:
        """The axes of a copy, those merged that are one axis to memory."""
        itemsize = source.dtype.itemsize
        extents, strides = merged(source.shapes, source.strides)
        return cls(source.pointers, target.pointers, extents, strides, itemsize)

    @property
    def target_strides(self) -> np.ndarray:
        """Strides of the target, in bytes."""
        return contiguous_strides(self.extents, self.itemsize)

    @property
    def run_bytes(self) -> np.ndarray:
        """Bytes along the innermost axis if it `has_runs`, else of an element."""
        if self.has_runs:
            return self.extents[:, -1] * self.itemsize
        return np.full(len(self.extents), self.itemsize, np.int64)

    @property
    def are_one_piece(self) -> bool:
        """Whether all samples together are one piece of memory on both sides."""
        if not self.has_runs or self.extents.shape[1] > 1 or not len(self.extents):
            return False
        sizes = (self.extents[:-1, 0] * self.itemsize).astype(np.uint64)
        return all((a[1:] - a[:-1] == sizes).all() for a in (self.source, self.target))

    def with_larger_elements(self) -> Axes:
        """The same with whole runs, or parts of them, as elements of up to 8 bytes.

        Possible where the alignments of both sides allow it: RGBA of bytes are 32-bit elements.
        """
        if not self.has_runs:
            return self
        sizes = self.run_bytes
        places = np.bitwise_or.reduce(self.source) | np.bitwise_or.reduce(self.target)
        places |= np.uint64(np.bitwise_or.reduce(np.abs(self.strides[:, :-1]), axis=None))
        places |= np.uint64(np.bitwise_or.reduce(sizes))
        itemsize = next(size for size in (8, 4, 2, 1) if int(places) % size == 0)
        if itemsize <= self.itemsize:
            return self
        extents, strides = self.extents.copy(), self.strides.copy()
        extents[:, -1] = sizes // itemsize
        strides[:, -1] = np.where(extents[:, -1] == 1, 0, itemsize)
        if extents.shape[1] > 1 and (extents[:, -1] == 1).all():
            extents, strides = extents[:, :-1], strides[:, :-1]
        return Axes(self.source, self.target, extents, strides, itemsize)


def merged(extents: np.ndarray, strides: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Extents and strides, ``(samples, axes)``, with neighbours made one that memory sees as one.

    There is at least one axis left. Strides of axes of extent 1 become 0, since they do not matter.
    """
    count, ndim = extents.shape
    empty = (extents == 0).any(axis=1)
    kept_extents: list[np.ndarray] = []
    kept_strides: list[np.ndarray] = []
    for axis in range(ndim - 1, -1, -1):
        extent, stride = extents[:, axis], strides[:, axis]
        single = extent == 1
        if single.all():
            continue
        if kept_extents:
            inner, step = kept_extents[-1], kept_strides[-1]
            inner_single = inner == 1
            if (single | inner_single | empty | (stride == step * inner)).all():
                kept_extents[-1] = inner * extent
                kept_strides[-1] = np.where(inner_single, stride, step)
                continue
        kept_extents.append(extent)
        kept_strides.append(stride)
    if not kept_extents:
        return np.ones((count, 1), np.int64), np.zeros((count, 1), np.int64)
    all_extents = np.stack(kept_extents[::-1], axis=1)
    all_strides = np.stack(kept_strides[::-1], axis=1)
    return all_extents, np.where(all_extents == 1, 0, all_strides)
