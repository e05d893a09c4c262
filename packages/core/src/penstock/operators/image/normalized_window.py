"""Windows of a batch on the GPU on their way through `crop_mirror_normalize`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from penstock.tensors.gpu.batch import (
    DeviceBatch,
    StridedBatch,
    contiguous_strides,
    plain,
    shape_rows,
    uniform_shape,
)

if TYPE_CHECKING:
    from penstock.operators.image.pixel_normalization import NumbersTable
    from penstock.operators.image.resized_batch import ResizedBatch
    from penstock.tensors.gpu.queue import Queue


class NormalizedWindows:
    """What of each sample is normalised, and where it goes.

    All arrays have a row a sample, or one for samples that are all alike.

    Parameters
    ----------
    anchors, shapes, extents
        The windows, and the samples, which they may leave; int64 ``(n, ndim)``, in the order of
        the axes of the samples.
    channels
        How many channels the output has, int64 ``(n,)``.
    layout, out_layout
        Layouts of samples and output.
    table
        The numbers that pixels are normalised with.
    inside
        Whether all windows lie inside of their samples.
    """

    __slots__ = (
        "_anchors",
        "_channels",
        "_extents",
        "_kept_places",
        "_layout",
        "_order",
        "_shapes",
        "_strides",
        "_table",
        "_whole",
        "inside",
        "out_extents",
    )

    def __init__(
        self,
        anchors: np.ndarray,
        shapes: np.ndarray,
        extents: np.ndarray,
        channels: np.ndarray,
        layout: str,
        out_layout: str,
        table: NumbersTable,
        *,
        inside: bool,
    ) -> None:
        self._anchors, self._shapes, self._extents = anchors, shapes, extents
        self._channels = channels
        self.inside = inside
        self._layout = layout
        self._table = table
        self._whole = not anchors.any() and np.array_equal(shapes, extents)
        full = shapes.copy()
        full[:, layout.index("C")] = channels
        out_shapes = full.take([layout.index(letter) for letter in out_layout], axis=1)
        uniform = uniform_shape(out_shapes)
        self.out_extents: tuple[int, ...] | np.ndarray = out_shapes if uniform is None else uniform
        """The shape of all outputs, or those of each."""
        strides = contiguous_strides(out_shapes, 1)
        self._strides = strides.take([out_layout.index(letter) for letter in layout], axis=1)
        columns_first = out_layout.index("W") < out_layout.index("H")
        inner = "WHC" if columns_first else "HWC"
        outer = [letter for letter in layout if letter not in inner]
        self._order = [layout.index(letter) for letter in (*outer, *inner)]
        self._kept_places: tuple[Queue, np.ndarray] | None = None

    def resample(
        self, queue: Queue, data: ResizedBatch, mirror: np.ndarray | None, out: DeviceBatch
    ) -> None:
        """Resample windows inside of `data`, whose channels come last, straight to `out`.

        Parameters
        ----------
        queue
            Where to queue it.
        data
            The resized samples.
        mirror
            Which samples are mirrored along W, ``(samples,)``; `None` for none.
        out
            Memory for the output.
        """
        part = data if self._whole else data.window(self._anchors, self._shapes)
        if mirror is not None:
            part = part.flipped(self._layout.index("W"), mirror)
        part.write(queue, out, self._places(queue))

    def _places(self, queue: Queue) -> np.ndarray:
        from penstock.kernels.gpu.resample import places_of

        if self._kept_places is not None and self._kept_places[0] is queue:
            return self._kept_places[1]
        row = self._layout.index("H")
        addresses = self._table.addresses(queue)
        strides, channels = self._strides, self._channels
        if len(addresses) > len(strides):
            strides = np.broadcast_to(strides, (len(addresses), strides.shape[1]))
        places = places_of(strides, row, channels, addresses)
        if self._table.is_constant:
            self._kept_places = queue, places
        return places

    def normalize(
        self,
        queue: Queue,
        data: DeviceBatch | StridedBatch,
        mirror: np.ndarray | None,
        out: DeviceBatch,
    ) -> None:
        """Normalise the windows of samples in memory; parameters as of `resample`."""
        from penstock.kernels.gpu.normalize_pixels import Windows, normalize_pixels

        strides = (
            data.strides
            if isinstance(data, StridedBatch)
            else contiguous_strides(shape_rows(data), data.dtype.itemsize)
        )
        order = self._order
        normalize_pixels(
            queue,
            data,
            _in_order(strides, order),
            Windows(
                _in_order(self._anchors, order),
                _in_order(self._shapes, order),
                _in_order(self._extents, order),
                order.index(self._layout.index("W")),
            ),
            mirror,
            out,
            _in_order(self._strides, order),
            self._channels,
            self._table.addresses(queue),
        )


def _in_order(values: np.ndarray, axes: Sequence[int]) -> np.ndarray:
    if list(axes) == list(range(len(axes))):
        return plain(values)
    return values.take(axes, axis=1)
