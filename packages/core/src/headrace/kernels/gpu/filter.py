"""Separable filters of images and volumes with symmetric windows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from headrace.kernels.gpu.program import kernel
from headrace.kernels.gpu.records import THREADS, launch_evenly
from headrace.kernels.gpu.shared import constant, record
from headrace.kernels.plan.compiled import compiled
from headrace.tensors.gpu.batch import DeviceBatch, as_contiguous, shape_rows
from headrace.tensors.gpu.queue import Queue
from headrace.tensors.gpu.traced import traced

_WARP = 32
_MOST_CHANNELS = 4
_REACHES = (4, 8, 16, 32)
"""Windows up to which there are kernels that keep neighbours in registers."""
_SHORT_REACH = constant(__name__, "SHORT_REACH", 8)
_ROWS_OF_SHORT = constant(__name__, "ROWS_OF_SHORT", 16)
_ROWS_OF_LONG = constant(__name__, "ROWS_OF_LONG", 8)
"""Rows at a time: up to which reach there are registers for how many, and for longer windows."""
_MIDDLE_REACH = 16
"""That up to which there are registers for blocks of wide strips."""
_MOST_ROWS = constant(__name__, "MOST_ROWS", 128)
_STRIP_ROWS, _STRIP_WIDTHS = (_MOST_ROWS, 64, 32, 16), (128, 64, 32)
"""Largest number of elements that a block makes: the more, the fewer elements are read twice."""
_ENOUGH_STRIPS = 1024
_SHARED_BYTES = 48 << 10
_MOST_LINE_BYTES = 1 << 23
"""Bytes of a row up to which 32 bits tell those of a strip apart."""
_EACH = constant(__name__, "EACH", 4)
"""Elements that a thread makes along one axis."""

_PLANES_SAMPLE = record("""filter:PlanesSample {
    uint64 source, out;
    uint64 row_weights, column_weights;  // the centre's first
    int32 row_reach, column_reach, height, width;
    uint32 strips, strips_across, strips_down;
}""")
_AXIS_SAMPLE = record("""filter:AxisSample {
    uint64 source, out;
    uint64 weights;  // the centre's first
    int64 size;  // elements: a multiple of extent * inner
    int64 inner;  // elements from one position along the axis to the next
    int32 extent, reach;
}""")


class FilterWindows(NamedTuple):
    """Windows of all samples, or, with a first extent of 1, those that all have in common."""

    reaches: np.ndarray
    """int64 ``(samples, axes)``: elements to either side of the centre."""
    weights: np.ndarray
    """float32 ``(samples, axes, longest + 1)``: the centre's weight, those at distance 1 and more,
    then anything."""


class _Window(NamedTuple):
    """Windows along one axis, on the device."""

    reaches: np.ndarray
    """int64, one a sample or one for all."""
    weights: int
    """Address of those of the first sample."""
    step: int
    """Bytes from there to those of the next sample; 0 if all have the same."""
    longest: int
    common: int
    """Reach of all windows; 0 where they differ."""


def gaussian_windows(sigmas: np.ndarray, sizes: np.ndarray) -> FilterWindows:
    """Gaussian windows: `kernels.cpu.filter.gaussian_window` of many.

    `sigmas`: float64 ``(samples, axes)``: standard deviations in elements. `sizes`: int64
    ``(samples, axes)``: odd numbers of weights of the whole windows.
    """
    if len(sigmas) > 1 and (sigmas == sigmas[0]).all() and (sizes == sizes[0]).all():
        sigmas, sizes = sigmas[:1], sizes[:1]
    reaches = sizes // 2
    distance = np.arange(int(reaches.max(initial=0)) + 1, dtype=np.float64)
    weights = np.exp(distance * distance / (-2.0 * sigmas * sigmas)[..., None])
    weights[distance > reaches[..., None]] = 0
    weights /= 2 * weights.sum(axis=-1, keepdims=True) - weights[..., :1]
    return FilterWindows(reaches, weights.astype(np.float32))


def filter_separably(
    queue: Queue, source: DeviceBatch, out: DeviceBatch, first_axis: int, windows: FilterWindows
) -> None:
    """Fill `out` with `source` filtered along neighbouring axes, the border mirrored."""
    last_axis = first_axis + windows.reaches.shape[1] - 1
    shapes = shape_rows(source)
    some, channels, longest = _facts(shapes, last_axis)
    if not some or not len(out):
        return
    along = _uploaded(queue, windows)
    if len(along) == 3:
        deep = queue.empty(source.extents, np.float32, len(source))
        _filter_axis(queue, source, deep, first_axis, along[0])
        source, first_axis, along = deep, first_axis + 1, along[1:]
    if channels > _MOST_CHANNELS or longest * source.dtype.itemsize > _MOST_LINE_BYTES:
        channels = 0
    channels = int(channels)
    reach = next((r for r in _REACHES if r >= max(w.longest for w in along)), 0)
    if channels and reach:
        if len(along) == 1:
            # Rows of the image are whatever lies outside of the axis; they are not filtered down.
            along = [*_uploaded(queue, _IDENTITY), *along]
        _filter_planes(queue, source, out, last_axis, along, channels, reach)
        return
    for axis, window in enumerate(along[:-1], first_axis):
        between = queue.empty(source.extents, np.float32, len(source))
        _filter_axis(queue, source, between, axis, window)
        source = between
    _filter_axis(queue, source, out, last_axis, along[-1])


_IDENTITY = FilterWindows(np.zeros((1, 1), np.int64), np.ones((1, 1, 1), np.float32))


@traced
@compiled
def _facts(shapes: np.ndarray, last_axis: int) -> tuple[bool, int, int]:
    """Three facts: whether there are elements; the elements of a pixel, after `last_axis`, if equal
    in all samples, else 0; and those of the longest row of pixels.
    """
    some, common, longest = False, -1, 0
    for i in range(len(shapes)):
        size, channels = 1, 1
        for axis in range(shapes.shape[1]):
            size *= shapes[i, axis]
            if axis > last_axis:
                channels *= shapes[i, axis]
        some |= size > 0
        common = channels if common in (-1, channels) else 0
        longest = max(longest, channels * shapes[i, last_axis])
    return some, max(common, 0), longest


def _uploaded(queue: Queue, windows: FilterWindows) -> list[_Window]:
    reaches, weights = windows
    address = int(queue.upload(weights))
    step, next_axis = weights.strides[0] if len(weights) > 1 else 0, weights.strides[1]
    found = []
    for axis in range(reaches.shape[1]):
        own = as_contiguous(reaches[:, axis])
        longest = int(own.max())
        common = longest if len(own) == 1 or int(own.min()) == longest else 0
        found.append(_Window(own, address + axis * next_axis, step, longest, common))
    return found


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
    shapes, count = shape_rows(source), len(out)
    # Rows that have nothing to do with one another: all planes are one.
    one_plane = rows.longest == 0
    # Windows that all reach as far have a kernel of their own.
    exact = rows.common > 0 and rows.common == columns.common
    reach = rows.common if exact else reach
    strip_width = _strip_width(channels, reach, out.dtype.itemsize)
    samples = np.empty(count, _PLANES_SAMPLE)
    most, strip_rows = _describe_planes(
        samples,
        source.pointers,
        out.pointers,
        shapes,
        column_axis,
        one_plane,
        strip_width,
        _STRIP_ROWS,
        _ENOUGH_STRIPS,
        rows.reaches,
        rows.weights,
        rows.step,
        columns.reaches,
        columns.weights,
        columns.step,
    )
    arguments = channels, reach, strip_width, exact
    name = kernel("filter_planes.cu", "filter_planes", source.dtype, out.dtype, *arguments)
    threads = -(-(strip_width + 2 * reach) * channels // _WARP) * _WARP
    launch_evenly(queue, name, samples, most, queue.word(np.int32, strip_rows), threads=threads)


@compiled
def _plane(shape: np.ndarray, column_axis: int, one_plane: bool) -> tuple[int, int, int]:
    """Number, height and width of the planes of a sample."""
    planes, height = 1, 1
    for axis in range(column_axis - 1):
        planes *= shape[axis]
    if column_axis:
        height = shape[column_axis - 1]
    if one_plane:
        return 1, height * planes, shape[column_axis]
    return planes, height, shape[column_axis]


@compiled
def _measure(
    shapes: np.ndarray, count: int, column_axis: int, one_plane: bool, strip_width: int
) -> tuple[int, int]:
    """Number of strips side by side, in all planes, and the height of the tallest."""
    strips, tallest = 0, 0
    for i in range(len(shapes)):
        planes, height, width = _plane(shapes[i], column_axis, one_plane)
        strips += -(-width // strip_width) * planes
        tallest = max(tallest, height)
    return strips * (count if len(shapes) == 1 else 1), tallest


@compiled
def _strip_rows(strips: int, tallest: int, choices: tuple[int, ...], enough: int) -> int:
    """Rows of a strip, so that there are strips for all of the device, if that can be."""
    for rows in choices:
        if strips * -(-tallest // rows) >= enough:
            return rows
    return choices[-1]


@traced
@compiled
def _describe_planes(
    samples: np.ndarray,
    source: np.ndarray,
    out: np.ndarray,
    shapes: np.ndarray,
    column_axis: int,
    one_plane: bool,
    strip_width: int,
    choices: tuple[int, ...],
    enough: int,
    row_reaches: np.ndarray,
    row_weights: int,
    row_step: int,
    column_reaches: np.ndarray,
    column_weights: int,
    column_step: int,
) -> tuple[int, int]:
    """Fill `samples`; the most strips of one of them, and the rows of a strip."""
    strips, tallest = _measure(shapes, len(samples), column_axis, one_plane, strip_width)
    strip_rows = _strip_rows(strips, tallest, choices, enough)
    most = 0
    for i in range(len(samples)):
        sample = samples[i]
        planes, height, width = _plane(shapes[i if len(shapes) > 1 else 0], column_axis, one_plane)
        across, down = -(-width // strip_width), -(-height // strip_rows)
        sample.source = source[i]
        sample.out = out[i]
        sample.row_weights = row_weights + i * row_step
        sample.column_weights = column_weights + i * column_step
        sample.row_reach = row_reaches[i if len(row_reaches) > 1 else 0]
        sample.column_reach = column_reaches[i if len(column_reaches) > 1 else 0]
        sample.height = height
        sample.width = width
        sample.strips = planes * down * across
        sample.strips_across = across
        sample.strips_down = down
        most = max(most, planes * down * across)
    return most, strip_rows


def _strip_width(channels: int, reach: int, itemsize: int) -> int:
    """Columns of a strip: as many as a block has shared memory, and then registers, for."""
    rows = _ROWS_OF_SHORT if reach <= _SHORT_REACH else _ROWS_OF_LONG
    for width in _STRIP_WIDTHS[reach > _MIDDLE_REACH :]:
        margin = -(-reach // 4) * 4
        between = channels * (rows * (width + 2 * margin + 4) + 16) * 4
        tables = (_MOST_ROWS + 4 * reach + 2) * 4
        if between + rows * (width * channels * itemsize + 4) + tables <= _SHARED_BYTES:
            break
    return width


def _filter_axis(
    queue: Queue, source: DeviceBatch, out: DeviceBatch, axis: int, window: _Window
) -> None:
    """Filter along one axis."""
    samples = np.empty(len(out), _AXIS_SAMPLE)
    largest = _describe_axis(
        samples,
        source.pointers,
        out.pointers,
        shape_rows(source),
        axis,
        window.reaches,
        window.weights,
        window.step,
    )
    most = -(-largest // (THREADS * _EACH))
    name = kernel("filter_axis.cu", "filter_axis", source.dtype, out.dtype)
    launch_evenly(queue, name, samples, most)


@traced
@compiled
def _describe_axis(
    samples: np.ndarray,
    source: np.ndarray,
    out: np.ndarray,
    shapes: np.ndarray,
    axis: int,
    reaches: np.ndarray,
    weights: int,
    step: int,
) -> int:
    """Fill `samples`; the elements of the largest."""
    largest = 0
    for i in range(len(samples)):
        sample, shape = samples[i], shapes[i if len(shapes) > 1 else 0]
        outer, inner = 1, 1
        for k in range(len(shape)):
            if k <= axis:
                outer *= shape[k]
            else:
                inner *= shape[k]
        sample.source = source[i]
        sample.out = out[i]
        sample.weights = weights + i * step
        sample.reach = reaches[i if len(reaches) > 1 else 0]
        sample.size = outer * inner
        sample.extent = shape[axis]
        sample.inner = inner
        largest = max(largest, outer * inner)
    return largest
