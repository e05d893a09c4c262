"""Windows of a batch on the GPU on their way through `crop_mirror_normalize`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from penstock.operators.image.resized_batch import ResizedBatch
    from penstock.operators.operator import BatchContext
    from penstock.tensors.gpu.batch import DeviceBatch, StridedBatch


class NormalizedWindow:
    """What of each sample is normalised.

    Parameters
    ----------
    anchors, shapes, extents
        The windows, and the samples, which they may leave; int64 ``(samples, ndim)``, axes in the
        order others, H, W, C.
    mirror
        Which samples are mirrored along W, ``(samples,)``; `None` for none.
    """

    def __init__(
        self,
        anchors: np.ndarray,
        shapes: np.ndarray,
        extents: np.ndarray,
        mirror: np.ndarray | None,
    ) -> None:
        self._anchors = anchors
        self._shapes = shapes
        self._mirror = mirror if mirror is not None and mirror.any() else None
        self._begin = np.clip(-anchors, 0, shapes)
        """Where, in each window, data begins."""
        self._end = np.clip(extents - anchors, self._begin, shapes)
        """Where it ends."""
        self.shows_data = (self._end > self._begin).all(axis=1)
        """Which windows have any data in them."""

    def resample(
        self,
        c: BatchContext,
        data: ResizedBatch,
        from_input: Sequence[int],
        out: DeviceBatch,
        strides: np.ndarray,
        channels: np.ndarray,
        table: np.ndarray,
    ) -> None:
        """Resample windows inside of the data straight to `out`; `normalize` has the parameters.

        Parameters
        ----------
        from_input
            Numbers of the axes of `data`, in the order that they have here.
        """
        back = np.argsort(from_input)
        part = data.window(self._anchors[:, back], self._shapes[:, back])
        if self._mirror is not None:
            part = part.flipped(from_input[-2], self._mirror)
        part.write(c.queue, out, strides[:, back], channels, table)

    def normalize(
        self,
        c: BatchContext,
        source: StridedBatch,
        out: DeviceBatch,
        strides: np.ndarray,
        channels: np.ndarray,
        table: np.ndarray,
        *,
        columns_first: bool,
    ) -> None:
        """Normalise the windows of `source`, whose axes are in the order that they have here.

        Parameters
        ----------
        out
            Where they go.
        strides
            int64 ``(samples, ndim)``: elements between neighbours in `out`.
        channels
            How many channels `out` has, int64 ``(samples,)``.
        table
            See `penstock.kernels.gpu.normalize_pixels.normalize_pixels`.
        columns_first
            Whether the pixels of a column of `out`, not those of a row, are neighbours.
        """
        from penstock.kernels.gpu.normalize_pixels import Pixels, normalize_pixels

        begin, end = self._begin, self._end
        step = source.strides
        first = source.pointers.astype(np.int64) + (self._anchors * step).sum(axis=1)
        if self._mirror is not None:
            width = self._shapes[:, -2]
            first = np.where(self._mirror, first + (width - 1) * step[:, -2], first)
            step, begin, end = step.copy(), begin.copy(), end.copy()
            step[:, -2] = np.where(self._mirror, -step[:, -2], step[:, -2])
            begin[:, -2] = np.where(self._mirror, width - self._end[:, -2], self._begin[:, -2])
            end[:, -2] = np.where(self._mirror, width - self._begin[:, -2], self._end[:, -2])
        shapes = self._shapes
        if columns_first:
            order = [*range(shapes.shape[1] - 3), -2, -3, -1]
            step, strides, shapes = step[:, order], strides[:, order], shapes[:, order]
            begin, end = begin[:, order], end[:, order]
        normalize_pixels(
            c.queue,
            Pixels(source.dtype, first.astype(np.uint64), step, source.shapes[:, -1]),
            Pixels(out.dtype, out.pointers, strides, channels),
            shapes,
            (begin, end),
            table,
        )
