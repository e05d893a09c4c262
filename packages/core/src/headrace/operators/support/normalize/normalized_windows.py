"""Windows of a batch on the GPU on their way through `crop_mirror_normalize`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.kernels.gpu import normalize_pixels as _kernels
from headrace.kernels.gpu import resample_layout as _resample_layout
from headrace.kernels.gpu import windows as _windows
from headrace.tensors.gpu.batch import DeviceBatch, StridedBatch, as_contiguous, shape_rows
from headrace.tensors.gpu.queue import Queue

if TYPE_CHECKING:
    from headrace.kernels.gpu.color import PixelColors
    from headrace.operators.support.normalize.pixels import NumbersTable
    from headrace.operators.support.resize.resized_batch import ResizedBatch
    from headrace.operators.support.warp.warped_batch import WarpedBatch


class AxisOrder:
    """Order of the samples' axes in the output."""

    __slots__ = ("channels", "columns", "inner", "inner_columns", "is_inner", "out", "rows")

    def __init__(self, layout: str, out_layout: str) -> None:
        self.rows, self.columns = layout.index("H"), layout.index("W")
        self.channels = layout.index("C")
        self.out = np.array([layout.index(letter) for letter in out_layout])
        """Axis of the samples for each axis of the output."""
        columns_first = out_layout.index("W") < out_layout.index("H")
        inner = "WHC" if columns_first else "HWC"
        outer = [letter for letter in layout if letter not in inner]
        self.inner = [layout.index(letter) for letter in (*outer, *inner)]
        """The axes of the samples, those of pixels after all others, neighbours in the output."""
        self.inner_columns = self.inner.index(self.columns)
        self.is_inner = self.inner == list(range(len(layout)))
        """True if they are in that order already."""

    def inwards(self, values: np.ndarray) -> np.ndarray:
        """``(samples, ndim)`` with the axes in the order `inner`."""
        return as_contiguous(values) if self.is_inner else values.take(self.inner, axis=1)


class NormalizedWindows:
    """Windows of samples that are normalised, and their places in the output.

    All arrays have a row a sample, or one for samples that are all alike.

    `anchors`, `shapes`, `extents`: the windows, and the samples, which they may leave; int64 ``(n,
    ndim)``, in the order of the axes of the samples. `channels`: how many channels the output has,
    int64 ``(n,)``.
    """

    __slots__ = (
        "_anchors",
        "_are_whole",
        "_channels",
        "_extents",
        "_kept_places",
        "_order",
        "_shapes",
        "_strides",
        "_table",
        "inside",
        "out_extents",
    )

    def __init__(
        self,
        anchors: np.ndarray,
        shapes: np.ndarray,
        extents: np.ndarray,
        channels: np.ndarray,
        order: AxisOrder,
        table: NumbersTable,
        *,
        inside: bool,
    ) -> None:
        self._anchors, self._shapes, self._extents = anchors, shapes, extents
        self._channels = channels
        self._order = order
        self._table = table
        self.inside = inside
        out_shapes, self._strides = np.empty_like(shapes), np.empty_like(shapes)
        alike = _windows.lay_outputs(
            as_contiguous(shapes), channels, order.channels, order.out, out_shapes, self._strides
        )
        self.out_extents: tuple[int, ...] | np.ndarray = out_shapes
        """The shape of all outputs, or those of each."""
        if alike and len(out_shapes):
            self.out_extents = tuple(out_shapes[0].tolist())
        self._are_whole = np.array_equal(shapes, extents)
        self._kept_places: tuple[Queue, np.ndarray] | None = None

    def resample(
        self,
        queue: Queue,
        data: ResizedBatch | WarpedBatch,
        mirror: np.ndarray | None,
        out: DeviceBatch,
    ) -> None:
        """Compute windows inside of `data`, whose channels come last, straight to `out`.

        `mirror`: which samples are mirrored along W, ``(samples,)``; `None` for none.
        """
        part: Any = data
        if not self._are_whole:
            part = data.window(self._anchors, self._shapes)
        if mirror is not None:
            part = part.flipped(self._order.columns, mirror)
        part.write(queue, out, self._places(queue))

    def _places(self, queue: Queue) -> np.ndarray:
        if self._kept_places is not None and self._kept_places[0] is queue:
            return self._kept_places[1]
        row = self._order.rows
        addresses = self._table.addresses(queue)
        strides, channels = self._strides, self._channels
        if len(addresses) > len(strides):
            strides = np.broadcast_to(strides, (len(addresses), strides.shape[1]))
        places = _resample_layout.places_of(strides, row, channels, addresses)
        if self._table.is_constant:
            self._kept_places = queue, places
        return places

    def normalize(
        self,
        queue: Queue,
        data: DeviceBatch | StridedBatch,
        mirror: np.ndarray | None,
        out: DeviceBatch,
        colors: PixelColors | None = None,
    ) -> None:
        """Normalise the windows of samples in memory; parameters as of `resample`.

        `colors` are functions of pixels to be done first, see `normalize_pixels`.
        """
        if isinstance(data, StridedBatch):
            strides = data.strides
        else:
            strides = _windows.strides_of(shape_rows(data), data.dtype.itemsize)
        inwards = self._order.inwards
        _kernels.normalize_pixels(
            queue,
            data,
            inwards(strides),
            _kernels.PixelWindows(
                inwards(self._anchors),
                inwards(self._shapes),
                inwards(self._extents),
                self._order.inner_columns,
            ),
            mirror,
            out,
            inwards(self._strides),
            self._channels,
            self._table.addresses(queue),
            colors,
        )
