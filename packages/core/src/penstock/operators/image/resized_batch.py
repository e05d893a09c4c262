"""Resized images, volumes or sequences of a batch on the GPU, computed when their consumer asks."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from penstock.tensors.gpu.batch import DeviceBatch, LazyBatch, StridedBatch, contiguous_strides

if TYPE_CHECKING:
    from penstock.kernels.gpu.resample import Frames
    from penstock.kernels.gpu.resample_taps import AxesSampling, Taps
    from penstock.tensors.gpu.queue import Queue


class ResizedBatch(LazyBatch):
    """A recipe: a source and how its spatial axes are to be resampled.

    A window or a mirror image of it is one, too, so only what is wanted in the end is computed.
    The values are the same, bit for bit, whether a part is computed by itself or with the whole,
    and whether it is normalised on the way (`write`) or afterwards.

    Attributes
    ----------
    source
        The samples that are resampled.
    axes
        How their spatial axes are resampled, and which pixels are wanted.
    first
        Position of the first spatial axis.
    rounds_to
        The integer type that pixels are rounded to, or `None` for floating point.
    """

    __slots__ = ("axes", "dtype", "first", "rounds_to", "shapes", "source")

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
        self.dtype = dtype
        self.rounds_to = rounds_to
        self.shapes = source.shapes.copy()
        self.shapes[:, self._spatial] = axes.length.T

    @property
    def _spatial(self) -> slice:
        return slice(self.first, self.first + len(self.axes.length))

    @property
    def channels_last(self) -> bool:
        """Whether the last axis is not a spatial one."""
        return bool(self._spatial.stop < self.ndim)

    def _with(self, source: DeviceBatch | StridedBatch, axes: AxesSampling) -> ResizedBatch:
        return ResizedBatch(source, axes, self.first, self.dtype, self.rounds_to)

    def window(self, anchors: np.ndarray, shapes: np.ndarray) -> ResizedBatch:
        """The part of each sample that begins at `anchors`, inside of it, ``(samples, ndim)``."""
        spatial = self._spatial
        axes = self.axes.window(anchors[:, spatial].T, shapes[:, spatial].T)
        others = np.ones(self.ndim, np.bool_)
        others[spatial] = False
        source = self.source
        if (shapes[:, others] != self.shapes[:, others]).any():
            # Frames and channels are not resampled: those that are not wanted are not read.
            begin, size = np.zeros_like(source.shapes), source.shapes.copy()
            begin[:, others], size[:, others] = anchors[:, others], shapes[:, others]
            source = StridedBatch.of(source).window(begin, size)
        return self._with(source, axes)

    def flipped(self, axis: int, where: np.ndarray) -> ResizedBatch:
        """Axis number `axis` in the opposite order, in the samples where `where` is true."""
        if axis in range(self.ndim)[self._spatial]:
            return self._with(self.source, self.axes.flipped(axis - self.first, where))
        return self._with(StridedBatch.of(self.source).flipped(axis, where), self.axes)

    def materialise(self, queue: Queue) -> DeviceBatch:
        """The samples in device memory."""
        out = queue.empty(self.shapes, self.dtype)
        strides = contiguous_strides(self.shapes, 1)
        self.write(queue, out, strides)
        return out

    def write(
        self,
        queue: Queue,
        out: DeviceBatch,
        strides: np.ndarray,
        channels: np.ndarray | None = None,
        table: np.ndarray | int = 0,
    ) -> None:
        """Queue the computation into memory of any order of axes.

        Parameters
        ----------
        queue
            Where to queue it.
        out
            Memory, and element type, of the output.
        strides
            int64 ``(samples, ndim)``: elements between neighbours in `out`, in the order of the
            axes here.
        channels, table
            To normalise on the way, where channels come last: how many channels `out` has, and the
            table of `penstock.kernels.gpu.resample.Target`.
        """
        from penstock.kernels.gpu.resample import Target, resample_images
        from penstock.kernels.gpu.resample_taps import axes_taps

        shapes, first = self.shapes, self.first
        row = first + len(self.axes.length) - 2
        if not shapes.all(axis=1).any():
            return
        taps = axes_taps(queue, self.axes)
        frames = self._frames(queue, taps)
        nothing = np.zeros(len(shapes), np.int64)
        # Volumes have no more than one axis of frames where strides are not those of a contiguous
        # output, images up to two.
        outer = row - 2
        target = Target(
            out.dtype,
            out.pointers,
            strides[:, outer] if outer >= 0 else nothing,
            strides[:, row - 1] if row else nothing,
            strides[:, row],
            strides[:, row + 1],
            strides[:, -1] if self.channels_last else np.ones_like(nothing),
            frames.channels if channels is None else channels,
            table,
        )
        resample_images(
            queue, frames, taps, shapes[:, row], shapes[:, row + 1], target, self.rounds_to
        )

    def _frames(self, queue: Queue, taps: Taps) -> Frames:
        """The images that are resampled along rows and columns."""
        from penstock.kernels.gpu.resample import Frames, blend_slices

        shapes, first, is_volume = self.shapes, self.first, len(self.axes.length) == 3
        row = first + 1 if is_volume else first
        source = _with_contiguous_end(queue, self.source, row if is_volume else row + 1)
        strides = source.strides
        one = np.ones(len(shapes), np.int64)
        frames = Frames(
            source.dtype,
            source.pointers,
            strides[:, row - 2] if row > 1 else one,
            strides[:, row - 1] if row else one,
            strides[:, row],
            shapes[:, row - 2] if row > 1 else one,
            shapes[:, row - 1] if row else one,
            shapes[:, -1] if self.channels_last else one,
        )
        if not is_volume:
            return frames
        if first == 2:
            if (strides[:, 0] != strides[:, 1] * shapes[:, 1]).any():
                source = StridedBatch.of(source.materialise(queue))
                return self._with(source, self.axes)._frames(queue, taps)
            frames.outers = shapes[:, 0] * shapes[:, 1]
        if self._keeps_slices():
            begin = (self.axes.begin[0] * frames.inner).astype(np.uint64)
            frames.pointers = frames.pointers + begin
            frames.inner = frames.inner * self.axes.step[0]
            return frames
        frames.row = contiguous_strides(source.shapes, 4)[:, row]
        elements = source.shapes[:, row:].prod(axis=1)
        frames.pointers = blend_slices(queue, frames, taps, shapes[:, first], elements)
        frames.dtype = np.dtype(np.float32)
        frames.inner = elements * 4
        frames.outer = frames.inner * shapes[:, first]
        return frames

    def _keeps_slices(self) -> bool:
        """Whether the slices of volumes are slices of the source."""
        axes = self.axes
        begin, last = axes.begin[0], axes.begin[0] + axes.step[0] * (axes.length[0] - 1)
        inside = (np.minimum(begin, last) >= 0) & (np.maximum(begin, last) < axes.in_size[0])
        return bool((axes.keeps()[0] & inside).all())


def _with_contiguous_end(
    queue: Queue, source: DeviceBatch | StridedBatch, axis: int
) -> StridedBatch:
    """`source` with the elements of its axes from number `axis` on in one piece."""
    if isinstance(source, StridedBatch):
        expected = contiguous_strides(source.shapes[:, axis:], source.dtype.itemsize)
        fits = (source.strides[:, axis:] == expected) | (source.shapes[:, axis:] <= 1)
        if not fits.all():
            source = source.materialise(queue)
    return StridedBatch.of(source)
