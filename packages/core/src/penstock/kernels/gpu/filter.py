"""Separable filters of images and volumes with symmetric windows."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from penstock.kernels.gpu.program import kernel

if TYPE_CHECKING:
    from penstock.tensors.gpu.batch import DeviceBatch
    from penstock.tensors.gpu.queue import Queue

_THREADS, _WARP = 256, 32
_MOST_CHANNELS = 4
_REACHES = (4, 8, 16, 32)
"""Windows up to which there are kernels that keep neighbours in registers."""
_SHORT_REACH, _MIDDLE_REACH = 8, 16
"""Of these, those that leave registers for 16 rows at a time, and for blocks of wide strips."""
_STRIP_ROWS, _STRIP_WIDTHS = (128, 64, 32, 16), (128, 64, 32)
"""What a block may make: the more, the fewer elements are read twice."""
_ENOUGH_STRIPS = 1024
_SHARED_BYTES = 48 << 10
_MOST_LINE_BYTES = 1 << 23
"""Bytes of a row up to which 32 bits tell those of a strip apart."""
_TILE_ELEMENTS = 1024

_PLANES_SAMPLE = np.dtype(
    [
        ("source", np.uint64),
        ("out", np.uint64),
        ("row_weights", np.uint64),
        ("column_weights", np.uint64),
        ("row_reach", np.int32),
        ("column_reach", np.int32),
        ("height", np.int32),
        ("width", np.int32),
        ("strips", np.uint32),
        ("strips_across", np.uint32),
        ("strips_down", np.uint32),
    ],
    align=True,
)
_AXIS_SAMPLE = np.dtype(
    [
        ("source", np.uint64),
        ("out", np.uint64),
        ("weights", np.uint64),
        ("size", np.int64),
        ("inner", np.int64),
        ("extent", np.int32),
        ("reach", np.int32),
    ],
    align=True,
)


class Windows(NamedTuple):
    """Windows of all samples, or, with a first extent of 1, those that all have in common."""

    reaches: np.ndarray
    """int64 ``(samples, axes)``: elements to either side of the centre."""
    weights: np.ndarray
    """float32 ``(samples, axes, longest + 1)``: the centre's weight, those at distance 1 and more,
    then anything."""


class _Window(NamedTuple):
    """Windows along one axis, on the device."""

    reaches: np.ndarray
    addresses: np.ndarray
    longest: int

    def common_reach(self) -> int:
        """How far all windows reach; 0 where they differ."""
        return self.longest if (self.reaches == self.longest).all() else 0


def gaussian_windows(sigmas: np.ndarray, sizes: np.ndarray) -> Windows:
    """Gaussian windows: `kernels.cpu.filter.gaussian_window` of many.

    Parameters
    ----------
    sigmas
        float64 ``(samples, axes)``: standard deviations in elements.
    sizes
        int64 ``(samples, axes)``: odd numbers of weights of the whole windows.
    """
    if len(sigmas) > 1 and (sigmas == sigmas[0]).all() and (sizes == sizes[0]).all():
        sigmas, sizes = sigmas[:1], sizes[:1]
    reaches = sizes // 2
    distance = np.arange(int(reaches.max(initial=0)) + 1, dtype=np.float64)
    weights = np.exp(distance * distance / (-2.0 * sigmas * sigmas)[..., None])
    weights[distance > reaches[..., None]] = 0
    weights /= 2 * weights.sum(axis=-1, keepdims=True) - weights[..., :1]
    return Windows(reaches, weights.astype(np.float32))


def filter_separably(
    queue: Queue,
    source: DeviceBatch,
    out: DeviceBatch,
    first_axis: int,
    windows: Windows,
) -> None:
    """Fill `out` with `source` filtered along neighbouring axes, the border mirrored.

    Parameters
    ----------
    source
        Any shape and type of numbers.
    out
        Of the shape of `source` and any type. Sums are float32; integers are rounded, halves away
        from zero, and saturate.
    first_axis
        First of the axes to filter.
    windows
        For one to three axes in order.
    """
    if not out.sizes().any():
        return
    along = _uploaded(queue, windows, len(out))
    if len(along) == 3:
        deep = queue.empty(source.shapes, np.float32)
        _filter_axis(queue, source, deep, first_axis, along[0])
        source, first_axis, along = deep, first_axis + 1, along[1:]
    last_axis = first_axis + len(along) - 1
    channels = _common_channels(source.shapes[:, last_axis + 1 :].prod(axis=1))
    longest = int(source.shapes[:, last_axis:].prod(axis=1).max())
    if longest * source.dtype.itemsize > _MOST_LINE_BYTES:
        channels = 0
    reach = next((r for r in _REACHES if r >= max(w.longest for w in along)), 0)
    if channels and reach:
        if len(along) == 1:
            # Rows of the image are whatever lies outside of the axis; they are not filtered down.
            along = [*_uploaded(queue, _IDENTITY, len(out)), *along]
        _filter_planes(queue, source, out, last_axis, along, channels, reach)
        return
    for axis, window in enumerate(along[:-1], first_axis):
        between = queue.empty(source.shapes, np.float32)
        _filter_axis(queue, source, between, axis, window)
        source = between
    _filter_axis(queue, source, out, last_axis, along[-1])


_IDENTITY = Windows(np.zeros((1, 1), np.int64), np.ones((1, 1, 1), np.float32))


def _uploaded(queue: Queue, windows: Windows, count: int) -> list[_Window]:
    reaches, weights = windows
    steps = np.arange(reaches.size, dtype=np.uint64) * np.uint64(weights.strides[-2])
    addresses = (queue.upload(weights) + steps).reshape(reaches.shape)
    return [
        _Window(
            np.broadcast_to(reaches[:, axis], count),
            np.broadcast_to(addresses[:, axis], count),
            int(reaches[:, axis].max()),
        )
        for axis in range(reaches.shape[1])
    ]


def _common_channels(channels: np.ndarray) -> int:
    """Elements of a pixel, if they are few and as many in all samples; else 0."""
    first = int(channels[0])
    return first if first <= _MOST_CHANNELS and (channels == first).all() else 0


def _filter_planes(
    queue: Queue,
    source: DeviceBatch,
    out: DeviceBatch,
    column_axis: int,
    windows: list[_Window],
    channels: int,
    reach: int,
) -> None:
    """Filter along `column_axis` and the axis before it."""
    rows, columns = windows
    shapes = source.shapes
    width = shapes[:, column_axis]
    if column_axis:
        height, planes = shapes[:, column_axis - 1], shapes[:, : column_axis - 1].prod(axis=1)
    else:
        height = planes = np.ones(len(shapes), np.int64)
    if rows.longest == 0:
        # Rows have nothing to do with one another: all planes are one.
        height, planes = height * planes, np.ones_like(planes)
    # Windows that all reach as far have a kernel of their own.
    own_reach = rows.common_reach()
    exact = own_reach > 0 and own_reach == columns.common_reach()
    reach = own_reach if exact else reach
    strip_width = _strip_width(channels, reach, out.dtype.itemsize)
    across = -(-width // strip_width)
    strip_rows = _strip_rows(int((across * planes).sum()), int(height.max()))
    down = -(-height // strip_rows)
    samples = np.empty(len(out), _PLANES_SAMPLE)
    samples["source"], samples["out"] = source.pointers, out.pointers
    samples["row_weights"], samples["column_weights"] = rows.addresses, columns.addresses
    samples["row_reach"], samples["column_reach"] = rows.reaches, columns.reaches
    samples["height"], samples["width"] = height, width
    samples["strips"] = strips = planes * down * across
    samples["strips_across"], samples["strips_down"] = across, down
    most = int(strips.max())
    arguments = channels, reach, strip_width, exact
    queue.launch(
        kernel("filter_planes.cu", "filter_planes", source.dtype, out.dtype, *arguments),
        (most * len(out), 1, 1),
        (-(-(strip_width + 2 * reach) * channels // _WARP) * _WARP, 1, 1),
        queue.upload(samples),
        np.uint32(most),
        np.int32(strip_rows),
    )


def _strip_width(channels: int, reach: int, itemsize: int) -> int:
    """Columns of a strip: as many as a block has shared memory, and then registers, for."""
    rows = 16 if reach <= _SHORT_REACH else 8
    for width in _STRIP_WIDTHS[reach > _MIDDLE_REACH :]:
        margin = -(-reach // 4) * 4
        between = channels * (rows * (width + 2 * margin + 4) + 16) * 4
        tables = (_STRIP_ROWS[0] + 4 * reach + 2) * 4
        if between + rows * (width * channels * itemsize + 4) + tables <= _SHARED_BYTES:
            break
    return width


def _strip_rows(strips: int, tallest: int) -> int:
    """Rows of a strip, so that there are strips for all of the device, if that can be."""
    for rows in _STRIP_ROWS:
        if strips * -(-tallest // rows) >= _ENOUGH_STRIPS:
            break
    return rows


def _filter_axis(
    queue: Queue, source: DeviceBatch, out: DeviceBatch, axis: int, window: _Window
) -> None:
    """Filter along one axis."""
    sizes = source.sizes()
    samples = np.empty(len(out), _AXIS_SAMPLE)
    samples["source"], samples["out"] = source.pointers, out.pointers
    samples["weights"], samples["reach"] = window.addresses, window.reaches
    samples["size"], samples["extent"] = sizes, source.shapes[:, axis]
    samples["inner"] = source.shapes[:, axis + 1 :].prod(axis=1)
    most = -(-int(sizes.max()) // _TILE_ELEMENTS)
    queue.launch(
        kernel("filter_axis.cu", "filter_axis", source.dtype, out.dtype),
        (most * len(out), 1, 1),
        (_THREADS, 1, 1),
        queue.upload(samples),
        np.int32(most),
    )
