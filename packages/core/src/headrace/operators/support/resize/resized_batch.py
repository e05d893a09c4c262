"""Resized images, volumes or sequences of a batch on the GPU, computed when their consumer asks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headrace.kernels.gpu import resample as _resample
from headrace.kernels.gpu import resample_layout as _resample_layout
from headrace.kernels.gpu import resample_taps as _resample_taps
from headrace.kernels.gpu import windows as _windows
from headrace.tensors.gpu.batch import (
    DeviceBatch,
    LazyBatch,
    StridedBatch,
    are_contiguous,
    as_contiguous,
    contiguous_strides,
    same_shapes,
    shape_row,
    shape_rows,
)
from headrace.tensors.gpu.queue import Queue

if TYPE_CHECKING:
    from headrace.kernels.gpu.resample_axes import AxesSampling
    from headrace.kernels.gpu.resample_layout import FrameLayout
    from headrace.kernels.gpu.resample_taps import Taps


class ResizedBatch(LazyBatch):
    """A lazy batch: a source and how its spatial axes are to be resampled.

    A window or a mirror image of it is one, too, so only what is wanted in the end is computed. The
    values are the same, bit for bit, whether a part is computed by itself or with the whole, and
    whether it is normalised on the way (`write`) or afterwards.

    `source`: the samples that are resampled. `axes`: how their spatial axes are resampled, and
    which pixels are wanted. `first`: position of the first spatial axis. `row`: position of the
    axis of rows; that of columns is the next one. `rounds_to`: the integer type that pixels are
    rounded to, or `None` for floating point.
    """

    __slots__ = (
        "_rows",
        "_uniform",
        "axes",
        "dtype",
        "first",
        "rounds_to",
        "row",
        "shapes",
        "source",
    )

    def __init__(
        self,
        source: DeviceBatch | StridedBatch,
        axes: AxesSampling,
        first: int,
        dtype: np.dtype,
        rounds_to: np.dtype | None,
    ) -> None:
        self.source = source
        self.axes = axes
        self.first = first
        self.row = first + axes.rank - 2
        self.dtype = dtype
        self.rounds_to = rounds_to
        self._uniform: tuple[int, ...] | None = None
        shape = source.uniform_shape
        if shape is not None:
            self._uniform = axes.common_shape(shape, first)
        if self._uniform is None:
            self._rows, alike = axes.out_shapes(shape_rows(source), first)
            self.shapes = self._rows
            if alike and len(source):
                self._uniform = tuple(self._rows[0].tolist())
        if self._uniform is not None:
            self._rows = shape_row(self._uniform)
            self.shapes = same_shapes(self._uniform, len(source))

    @property
    def uniform_shape(self) -> tuple[int, ...] | None:
        """The shape that all samples have; `None` if they differ (or there are none)."""
        return self._uniform

    @property
    def channels_last(self) -> bool:
        """True if the last axis is not a spatial one."""
        return self.row + 2 < self.ndim

    def _with(self, source: DeviceBatch | StridedBatch, axes: AxesSampling) -> ResizedBatch:
        return ResizedBatch(source, axes, self.first, self.dtype, self.rounds_to)

    def window(self, anchors: np.ndarray, shapes: np.ndarray) -> ResizedBatch:
        """The part of each sample that begins at `anchors`, inside of it.

        Both are ``(samples, ndim)``, or ``(1, ndim)`` for what all samples have in common.
        """
        axes = self.axes.window(anchors, shapes, self.first)
        source = self.source
        if not _windows.same_outside(as_contiguous(shapes), self._rows, self.first, self.row + 2):
            others = [*range(self.first), *range(self.row + 2, self.ndim)]
            # Frames and channels are not resampled: those that are not wanted are not read.
            begin, size = np.zeros_like(source.shapes), source.shapes.copy()
            begin[:, others], size[:, others] = anchors[:, others], shapes[:, others]
            source = StridedBatch.of(source).window(begin, size)
        return self._with(source, axes)

    def flipped(self, axis: int, where: np.ndarray) -> ResizedBatch:
        """Axis number `axis` in the opposite order, in the samples where `where` is true."""
        if self.first <= axis < self.row + 2:
            # Shapes stay, and need not be worked out again.
            turned = ResizedBatch.__new__(ResizedBatch)
            turned._rows, turned._uniform = self._rows, self._uniform
            turned.axes = self.axes.flipped(axis - self.first, where)
            turned.dtype, turned.rounds_to = self.dtype, self.rounds_to
            turned.first, turned.row = self.first, self.row
            turned.shapes, turned.source = self.shapes, self.source
            return turned
        return self._with(StridedBatch.of(self.source).flipped(axis, where), self.axes)

    def materialise(self, queue: Queue) -> DeviceBatch:
        """The samples in device memory."""
        out = queue.empty(self.extents, self.dtype, len(self))
        places = _resample_layout.contiguous_places(
            self._rows, self.row, channels_last=self.channels_last
        )
        self.write(queue, out, places)
        return out

    def write(self, queue: Queue, out: DeviceBatch, places: np.ndarray) -> None:
        """Queue the computation into memory of any order of axes.

        `places`: `headrace.kernels.gpu.resample_layout.PLACES`, in elements of `out`; to normalise
        on the way, where channels come last, with a table.
        """
        if 0 in self._uniform if self._uniform is not None else not _any_elements(self._rows):
            return
        taps = _resample_taps.axes_taps(queue, self.axes)
        frames = self._frames(queue, taps)
        _resample.resample_images(
            queue,
            frames,
            taps,
            _resample_layout.Target(out.dtype, out.pointers, places),
            self.rounds_to,
        )

    def _frames(self, queue: Queue, taps: Taps) -> FrameLayout:
        """The images that are resampled along rows and columns."""
        source, row = self.source, self.row
        if self.axes.rank == 3:
            return self._slices(queue, taps)
        last = self.channels_last
        if isinstance(source, StridedBatch):
            source = _with_contiguous_end(queue, source, row + 1)
            layout = _resample_layout.strided_frames(
                source.shapes, source.strides, row, channels_last=last
            )
        else:
            layout = _resample_layout.frames_of(source, row, channels_last=last)
        return _resample_layout.FrameLayout(source.dtype, source.pointers, layout)

    def _slices(self, queue: Queue, taps: Taps) -> FrameLayout:
        """The slices of volumes, blended where they are not slices of the source."""
        shapes, first, row = self.shapes, self.first, self.row
        source = _with_contiguous_end(queue, StridedBatch.of(self.source), row)
        strides = source.strides
        if first == 2 and (strides[:, 0] != strides[:, 1] * shapes[:, 1]).any():
            source = StridedBatch.of(source.materialise(queue))
            return self._with(source, self.axes)._slices(queue, taps)
        layout = _resample_layout.strided_frames(
            source.shapes, strides, row, channels_last=self.channels_last
        )
        # Inner frames are slices, of the output; there is one more axis of frames, or two as one.
        layout["inners"] = shapes[:, first]
        if first == 2:
            layout["outers"] = shapes[:, 0] * shapes[:, 1]
        frames = _resample_layout.FrameLayout(source.dtype, source.pointers, layout)
        depth = self.axes.each(0)
        last = depth["begin"] + depth["step"] * (depth["length"] - 1)
        inside = np.minimum(depth["begin"], last) >= 0
        inside &= np.maximum(depth["begin"], last) < depth["in_size"]
        if (self.axes.keeps(0) & inside).all():
            begin = (depth["begin"] * layout["inner"]).astype(np.uint64)
            frames.pointers = frames.pointers + begin
            layout["inner"] *= depth["step"]
            return frames
        elements = source.shapes[:, row:].prod(axis=1)
        frames.pointers = _resample.blend_slices(queue, frames, taps, shapes[:, first], elements)
        frames.dtype = np.dtype(np.float32)
        layout["row"] = contiguous_strides(source.shapes, 4)[:, row]
        layout["inner"] = elements * 4
        layout["outer"] = layout["inner"] * shapes[:, first]
        return frames


def _any_elements(rows: np.ndarray) -> bool:
    return bool(rows.all(axis=1).any())


def _with_contiguous_end(queue: Queue, source: StridedBatch, axis: int) -> StridedBatch:
    """`source` with the elements of its axes from number `axis` on in one piece."""
    fits = are_contiguous(source.shapes[:, axis:], source.strides[:, axis:], source.dtype.itemsize)
    return source if fits else StridedBatch.of(source.materialise(queue))
