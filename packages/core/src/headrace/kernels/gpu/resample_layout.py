"""Memory layout of a batch's images that are resampled: of the source and of the output."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from headrace.kernels.plan.compiled import compiled
from headrace.tensors.gpu.batch import DeviceBatch, as_contiguous, shape_row, shape_rows
from headrace.tensors.gpu.traced import traced
from headrace.tensors.gpu.tracked import empty_beside

FRAMES = np.dtype(
    [(name, np.int64) for name in ("outer", "inner", "row", "outers", "inners", "channels")]
)
"""Images that are read: each sample has two axes of frames, `outer` and `inner`. Strides, in bytes,
may be negative; the elements of a row lie side by side. After them are the extents of the two axes
and the number of channels.
"""

PLACES = np.dtype(
    [
        (name, np.int64)
        for name in ("outer", "inner", "row", "pixel", "channel", "channels", "table")
    ]
)
"""Layout of the output: strides in elements, and the number of channels: as many as are read, or
more with a `table`. That is the address of means, factors and values outside, one after the other,
of all channels, or 0 where pixels are not normalised.
"""


@dataclass(slots=True)
class _Images:
    """Images of a batch.

    `pointers`: uint64 ``(samples,)``. `layout`: one a sample or one for all.
    """

    dtype: np.dtype
    pointers: np.ndarray
    layout: np.ndarray


class FrameLayout(_Images):
    """Images of a batch that are read; the layout is of type `FRAMES`."""


class Target(_Images):
    """Images of a batch that are written; the layout is of type `PLACES`."""


def contiguous_frames(
    shapes: np.ndarray, itemsize: int, row: int, *, channels_last: bool
) -> np.ndarray:
    """`FRAMES` of contiguous samples of `shapes`, int64 ``(n, ndim)``; axis `row` has the rows."""
    layout = empty_beside(len(shapes), FRAMES, shapes)
    _lay_frames(shapes, _NO_STRIDES, itemsize, row, channels_last, layout)
    return layout


def frames_of(batch: DeviceBatch, row: int, *, channels_last: bool) -> np.ndarray:
    """`contiguous_frames` of the samples of a batch."""
    shape = batch.uniform_shape
    if shape is None:
        return contiguous_frames(
            shape_rows(batch), batch.dtype.itemsize, row, channels_last=channels_last
        )
    return _frames_of_one(shape, batch.dtype.itemsize, row, channels_last)


@lru_cache(maxsize=1024)
def _frames_of_one(
    shape: tuple[int, ...], itemsize: int, row: int, channels_last: bool
) -> np.ndarray:
    return contiguous_frames(shape_row(shape), itemsize, row, channels_last=channels_last)


def strided_frames(
    shapes: np.ndarray, strides: np.ndarray, row: int, *, channels_last: bool
) -> np.ndarray:
    """The same of samples with these strides, in bytes."""
    layout = empty_beside(len(shapes), FRAMES, shapes, strides)
    _lay_frames(as_contiguous(shapes), as_contiguous(strides), 0, row, channels_last, layout)
    return layout


_NO_STRIDES = np.empty((0, 0), np.int64)


@traced
@compiled
def _lay_frames(
    shapes: np.ndarray,
    strides: np.ndarray,
    itemsize: int,
    row: int,
    channels_last: bool,
    layout: np.ndarray,
) -> None:
    ndim = shapes.shape[1]
    for i in range(len(shapes)):
        frame, shape = layout[i], shapes[i]
        frame.outer = frame.inner = frame.row = 0
        step = itemsize
        for axis in range(ndim - 1, -1, -1):
            stride = strides[i, axis] if strides.size else step
            if axis == row:
                frame.row = stride
            elif axis == row - 1:
                frame.inner = stride
            elif axis == row - 2:
                frame.outer = stride
            step *= shape[axis]
        frame.outers = shape[row - 2] if row > 1 else 1
        frame.inners = shape[row - 1] if row > 0 else 1
        frame.channels = shape[ndim - 1] if channels_last else 1


def places_of(
    strides: np.ndarray, row: int, channels: np.ndarray | int, table: np.ndarray | int = 0
) -> np.ndarray:
    """`PLACES` of outputs with these strides, in elements.

    `strides`: int64 ``(n, ndim)``, in the order of the axes that are read; the last may be a
    column. `channels`, `table`: as of `PLACES`: one for each row of `strides`, or a number.
    """
    places = empty_beside(len(strides), PLACES, strides)
    _place_strides(places, strides, row, channels, table)
    return places


@traced
def _place_strides(
    places: np.ndarray,
    strides: np.ndarray,
    row: int,
    channels: np.ndarray | int,
    table: np.ndarray | int,
) -> None:
    places["outer"] = strides[:, row - 2] if row > 1 else 0
    places["inner"] = strides[:, row - 1] if row > 0 else 0
    places["row"] = strides[:, row]
    places["pixel"] = strides[:, row + 1]
    places["channel"] = strides[:, -1] if row + 2 < strides.shape[1] else 1
    places["channels"] = channels
    places["table"] = table


def contiguous_places(shapes: np.ndarray, row: int, *, channels_last: bool) -> np.ndarray:
    """`PLACES` of contiguous samples of `shapes`, int64 ``(n, ndim)``."""
    frames = contiguous_frames(shapes, 1, row, channels_last=channels_last)
    places = empty_beside(len(shapes), PLACES, shapes)
    _lay_places(places, frames)
    return places


@traced
def _lay_places(places: np.ndarray, frames: np.ndarray) -> None:
    for name in ("outer", "inner", "row", "channels"):
        places[name] = frames[name]
    places["pixel"] = frames["channels"]
    places["channel"] = 1
    places["table"] = 0
