"""Warped images or volumes of a batch on the GPU, computed when their consumer asks."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from headrace.kernels.gpu import pointwise_terms as _terms
from headrace.kernels.gpu import resample_layout as _resample_layout
from headrace.kernels.gpu import warp as _kernels
from headrace.kernels.gpu.warp_request import Warp, WarpWindows
from headrace.operators.support.pointwise.color_batch import MappedBatch
from headrace.tensors.gpu.batch import (
    DeviceBatch,
    StridedBatch,
    as_contiguous,
    same_shapes,
    shape_row,
    uniform_shape,
)
from headrace.tensors.gpu.queue import Queue
from headrace.tensors.gpu.tracked import empty_beside

if TYPE_CHECKING:
    from headrace.kernels.gpu.pointwise_terms import Term


class WarpedBatch(MappedBatch):
    """A lazy batch: how samples are warped, and which part of that is wanted.

    Windows and mirror images of it, and functions of its elements, are lazy, too. What is wanted in
    the end is computed by one kernel, with the bits of one operator after the other: a window keeps
    where it is on the canvas, and elements are rounded to every type that they would have had in
    memory. A warp of a warp is no such batch: elements in between are rounded, and blended anew. So
    it is computed after this one.

    `warp`: what is computed of the whole samples. `windows`: which part of it is wanted, and what
    of that is mirrored.
    """

    __slots__ = ("_queue", "_rows", "_uniform", "_whole", "dtype", "shapes", "warp", "windows")

    def __init__(
        self, queue: Queue, warp: Warp, windows: WarpWindows, *, whole: bool = False
    ) -> None:
        self._queue = queue
        self.warp = warp
        self.windows = windows
        self._whole = whole
        self.dtype = warp.dtype if warp.chain is None else warp.chain.dtype
        source = warp.source
        channels = source.shapes[:, -1:]
        shape = source.uniform_shape
        if shape is not None:
            channels = channels[:1]
        count = max(len(windows.size), len(channels))
        rows = empty_beside((count, source.ndim), np.int64, windows.size, channels)
        rows[:, :-1], rows[:, -1:] = windows.size, channels
        self._rows = self.shapes = rows
        self._uniform = uniform_shape(rows)
        if self._uniform is not None:
            self._rows = shape_row(self._uniform)
            self.shapes = same_shapes(self._uniform, len(source))

    @classmethod
    def of(cls, queue: Queue, warp: Warp, canvas: np.ndarray) -> WarpedBatch:
        """Whole warps to extents `canvas`, int64 ``(samples, rank)``, or one row for all."""
        nothing = np.zeros((1, canvas.shape[1]), np.int64)
        windows = WarpWindows(canvas, nothing, canvas, nothing.astype(np.bool_))
        return cls(queue, warp, windows, whole=True)

    @property
    def uniform_shape(self) -> tuple[int, ...] | None:
        """The shape that all samples have; `None` if they differ (or there are none)."""
        return self._uniform

    def window(self, anchors: np.ndarray, shapes: np.ndarray) -> WarpedBatch | StridedBatch:
        """The part of each sample that begins at `anchors`, inside of it.

        Both are ``(samples, ndim)``, or ``(1, ndim)`` for what all samples have in common.
        """
        if not np.array_equal(
            np.broadcast_to(shapes[:, -1], len(self)), self.shapes[:, -1]
        ):  # some channels: all are looked up together
            return StridedBatch.of(self.materialise(self._queue)).window(anchors, shapes)
        w = self.windows
        begin, size = anchors[:, :-1], shapes[:, :-1]
        # Where an axis runs backwards, the window is as far from its other end.
        begin = np.where(w.mirrored, w.size - begin - size, begin)
        windows = replace(w, first=as_contiguous(w.first + begin), size=as_contiguous(size))
        return WarpedBatch(self._queue, self.warp, windows)

    def flipped(self, axis: int, where: np.ndarray) -> WarpedBatch:
        """Axis number `axis` in the opposite order, in the samples where `where` is true."""
        mirrored = np.broadcast_to(self.windows.mirrored, (len(where), self.ndim - 1)).copy()
        mirrored[:, axis] ^= where
        windows = replace(self.windows, mirrored=mirrored)
        return WarpedBatch(self._queue, self.warp, windows)

    def mapped(self, term: Term, numbers: tuple[np.ndarray, ...]) -> WarpedBatch:
        """The batch of what `term`, of source 0, makes of each element."""
        warp = self.warp
        inner = _terms.source(0, warp.dtype) if warp.chain is None else warp.chain
        own = tuple(range(len(warp.numbers), len(warp.numbers) + len(numbers)))
        chain = _terms.substituted(term, (inner,), own, ())
        warp = replace(warp, chain=chain, numbers=warp.numbers + numbers)
        return WarpedBatch(self._queue, warp, self.windows)

    def materialise(self, queue: Queue) -> DeviceBatch:
        """The samples in device memory."""
        out = queue.empty(self.extents, self.dtype, len(self))
        if self._whole:
            w = self.warp
            _kernels.warp(queue, w.source, out, w.matrices, nearest=w.nearest, fill=w.fill)
            return out
        places = _resample_layout.contiguous_places(self._rows, self.ndim - 3, channels_last=True)
        self.write(queue, out, places)
        return out

    def write(self, queue: Queue, out: DeviceBatch, places: np.ndarray) -> None:
        """Queue the computation into memory of any order of axes.

        `places`: `headrace.kernels.gpu.resample_layout.PLACES`, in elements of `out`; to normalise
        on the way, with a table.
        """
        target = _resample_layout.Target(out.dtype, out.pointers, places)
        _kernels.warp_placed(queue, self.warp, self.windows, target)
