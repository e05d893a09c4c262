"""Affine warps of images and volumes: every output element looks up where it comes from.

Windows of warps are mirrored, converted, normalised and laid out by the same kernel. Coordinates
are those that the whole warp has: an element's depend on its place on the canvas, to the last bit.
Between the steps numbers are rounded to the type that they would have had in memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.kernels.cpu.warp import saturated_number
from headrace.kernels.cpu.warp_image import RESTART
from headrace.kernels.gpu.color import PixelColors
from headrace.kernels.gpu.color_steps import PerChannel
from headrace.kernels.gpu.color_text import ColorBody, color_body, with_colors
from headrace.kernels.gpu.program import C_TYPES, kernel
from headrace.kernels.gpu.records import THREADS
from headrace.kernels.gpu.resample_layout import Target, contiguous_places
from headrace.kernels.gpu.shared import constant, record
from headrace.kernels.gpu.warp_matrices import DeviceMatrices
from headrace.kernels.gpu.warp_request import Warp, WarpWindows
from headrace.kernels.plan.compiled import compiled
from headrace.tensors.gpu.batch import DeviceBatch, as_contiguous, shape_rows
from headrace.tensors.gpu.queue import Queue
from headrace.tensors.gpu.traced import traced

_TILE_WIDTH = constant(__name__, "TILE_WIDTH", 64)
_TILE_ROWS = constant(__name__, "TILE_ROWS", 32)
_STRIP_WIDTH = constant(__name__, "RESTART", RESTART)
"""Elements of a row after which coordinates start afresh."""
_MOST_CHANNELS = 4
"""Pixels of more channels, and batches of several numbers of channels, have a kernel in common."""

_SAMPLE = record("""warp:Sample {
    uint64 source, out;
    double fill;
    float matrix[3][4];  // from (x, y, z, 1) of the output
    int32 extent[4];  // depth, height, width, channels
    int32 canvas[3];  // depth, height, width of the output
    int32 tiles_across;
    // Elements of the output between neighbours. Negative ones mirror; `out` is where the first
    // element of the window goes.
    int64 out_plane, out_row, out_pixel, out_channel;
    const float* table;  // see `Finish`
    int32 first[3];  // depth, row, column of the canvas that the window begins with
    int32 size[3];  // its extents
    int32 out_channels;
}""")


def warp(
    queue: Queue,
    source: DeviceBatch,
    out: DeviceBatch,
    matrices: np.ndarray | DeviceMatrices,
    *,
    nearest: bool,
    fill: float | None,
) -> None:
    """Fill `out` with `source` seen through affine maps, with the values of `kernels.cpu.warp`.

    `matrices`: float32 ``(samples, 2, 3)`` or ``(samples, 3, 4)``, or one for all; they map (x, y[,
    z], 1) of the output to the input, in elements; or matrices on the device.
    """
    if not len(out):
        return
    rank, shapes = source.ndim - 1, shape_rows(out)
    canvas, nothing = as_contiguous(shapes[:, :-1]), np.zeros((1, rank), np.int64)
    windows = WarpWindows(canvas, nothing, canvas, nothing.astype(np.bool_))
    places = contiguous_places(shapes, rank - 2, channels_last=True)
    request = Warp(source, matrices, out.dtype, nearest, fill)
    warp_placed(queue, request, windows, Target(out.dtype, out.pointers, places), whole=True)


def warp_placed(
    queue: Queue, warp: Warp, windows: WarpWindows, target: Target, *, whole: bool = False
) -> None:
    """Queue the computation of windows into memory of any order of axes.

    `whole`: true if that is all of it, as `warp` has it, and contiguous memory.
    """
    source, dtype, count = warp.source, warp.dtype, len(target.pointers)
    inside, beyond = _fills(source, dtype, warp.fill, nearest=warp.nearest)
    rank = source.ndim - 1
    known = warp.matrices
    if isinstance(known, DeviceMatrices):  # they follow
        known = np.zeros((1, rank, rank + 1), np.float32)
    samples = np.empty(count, _SAMPLE)
    are_bytes = rank == 2 and source.dtype == dtype == np.uint8 and not warp.nearest
    most, channels, in_strips = _describe(
        samples,
        source.pointers,
        shape_rows(source),
        target.pointers,
        target.layout,
        target.dtype.itemsize,
        known,
        windows.canvas,
        windows.first,
        windows.size,
        windows.mirrored,
        inside,
        beyond,
        _TILE_WIDTH,
        _STRIP_WIDTH if are_bytes else 0,
        _TILE_ROWS,
        _MOST_CHANNELS,
    )
    if not most:
        return
    described = queue.upload(samples)
    if isinstance(warp.matrices, DeviceMatrices):
        warp.matrices.place(queue, described, rank)
    arguments: tuple[Any, ...] = ()
    if not whole:
        numbers, pitch = np.uint64(0), 0
        if warp.chain is not None:
            body = _body(warp)
            numbers, pitch = PixelColors(body, warp.numbers).table(queue), body.numbers.itemsize
        arguments = numbers, np.uint32(pitch)
    queue.launch(
        _kernel(warp, target, int(channels), in_strips=in_strips, whole=whole),
        (most * count, 1, 1),
        (THREADS, 1, 1),
        described,
        queue.word(np.uint32, most),
        np.bool_(warp.fill is None),
        *arguments,
        shared_bytes=_made_bytes(target) if in_strips and not whole else 0,
    )


def _made_bytes(target: Target) -> int:
    """Bytes of a tile in its last form: ``Made`` in ``cuda/warp_bytes_placed.cuh``."""
    size, channels = target.dtype.itemsize, int(target.layout["channels"][0])
    return 32 + _TILE_ROWS * (channels * _TILE_WIDTH + 4) * size


def _kernel(warp: Warp, target: Target, channels: int, *, in_strips: bool, whole: bool) -> Any:
    rank = warp.source.ndim - 1
    if whole:
        if in_strips:
            return kernel("warp_bytes.cu", "warp_bytes", channels)
        types = warp.source.dtype, target.dtype
        return kernel("warp.cu", "warp", *types, rank, channels, warp.nearest)
    normalized = bool(target.layout["table"][0])
    made = int(target.layout["channels"][0])
    arguments: tuple[Any, ...] = (target.dtype, channels, made, normalized)
    function = "warp_bytes_placed"
    if not in_strips:
        function = "warp_placed"
        given = (warp.source.dtype, warp.dtype, target.dtype)
        arguments = (*given, rank, channels, warp.nearest, normalized)
    if warp.chain is None:
        keep = f"Keep<{C_TYPES[warp.dtype]}>"
        return kernel(f"{function}.cu", function, *arguments, keep)
    return with_colors(kernel(f"{function}.cu", function, *arguments), _body(warp), "Each<Body>")


def _body(warp: Warp) -> ColorBody:
    """Functions of elements that follow a warp, as ones of pixels of one channel."""
    assert warp.chain is not None
    return color_body(warp.dtype, 1, (PerChannel(warp.chain, len(warp.numbers), 1),))


@compiled
def _common_channels(shapes: np.ndarray, in_strips: bool, most_channels: int) -> tuple[int, bool]:
    """The number of channels of all samples, 0 where the kernel has to look; and whether kernels
    that work by strips, if there are some, take all images.
    """
    rank = shapes.shape[1] - 1
    common = shapes[0, rank]
    for i in range(len(shapes)):
        size = 1
        for k in range(rank + 1):
            size *= shapes[i, k]
        in_strips &= size > 0 and size < 1 << 31 and shapes[i, rank - 1] >= 4
        if shapes[i, rank] != common:
            common = 0
    if common > most_channels:
        common = 0
    return common, in_strips and common > 0


@compiled
def _place_matrix(sample: Any, matrix: np.ndarray) -> None:
    """Write a matrix ``(rank, rank + 1)`` to a sample; what it does not say is 0."""
    rank = len(matrix)
    for k in range(3):
        for j in range(4):
            sample.matrix[k, j] = 0
    for k in range(rank):
        for j in range(rank):
            sample.matrix[k, j] = matrix[k, j]
        sample.matrix[k, 3] = matrix[k, rank]


@traced
@compiled
def _describe(
    samples: np.ndarray,
    pointers: np.ndarray,
    shapes: np.ndarray,
    out: np.ndarray,
    places: np.ndarray,
    itemsize: int,
    matrices: np.ndarray,
    canvas: np.ndarray,
    first: np.ndarray,
    sizes: np.ndarray,
    mirrored: np.ndarray,
    fill: float,
    fill_of_empty: float,
    tile_width: int,
    strip_width: int,
    tile_rows: int,
    most_channels: int,
) -> tuple[int, int, bool]:
    """Fill `samples`.

    Returns the most tiles or strips of a sample, 0 if there is nothing to do; the number of
    channels of all samples, 0 where the kernel has to look; and whether to work by strips, for
    which all images must be at least 4 pixels wide, and less than 2**31 bytes, and be written in
    planes or as pixels.
    """
    rank = shapes.shape[1] - 1
    absent = 3 - rank
    common, in_strips = _common_channels(shapes, strip_width > 0, most_channels)
    for i in range(len(places)):
        place = places[i]
        in_planes = place.pixel == 1
        as_pixels = place.channel == 1 and place.pixel == place.channels
        in_strips &= (in_planes or as_pixels) and place.channels <= 4
        in_strips &= place.channels == places[0].channels
    width = strip_width if in_strips else tile_width
    most, some = 0, False
    for i in range(len(samples)):
        sample = samples[i]
        shape = shapes[i if len(shapes) > 1 else 0]
        matrix = matrices[i if len(matrices) > 1 else 0]
        place = places[i if len(places) > 1 else 0]
        own_canvas = canvas[i if len(canvas) > 1 else 0]
        begin = first[i if len(first) > 1 else 0]
        size = sizes[i if len(sizes) > 1 else 0]
        backwards = mirrored[i if len(mirrored) > 1 else 0]
        sample.source = pointers[i]
        sample.table = place.table
        sample.out_channels = place.channels
        sample.out_channel = place.channel
        _place_matrix(sample, matrix)
        for k in range(absent):
            sample.extent[k] = sample.canvas[k] = sample.size[k] = 1
            sample.first[k] = 0
        elements, made, lines = 1, place.channels, 1
        sample.out_plane = place.inner
        sample.out_row = place.row
        sample.out_pixel = place.pixel
        offset = 0
        for k in range(rank):
            sample.canvas[absent + k] = own_canvas[k]
            sample.first[absent + k] = begin[k]
            sample.size[absent + k] = size[k]
            made *= size[k]
            if k < rank - 1:
                lines *= size[k]
            if backwards[k] and size[k] > 0:
                if k == rank - 1:
                    offset += (size[k] - 1) * place.pixel
                    sample.out_pixel = -place.pixel
                elif k == rank - 2:
                    offset += (size[k] - 1) * place.row
                    sample.out_row = -place.row
                else:
                    offset += (size[k] - 1) * place.inner
                    sample.out_plane = -place.inner
        for k in range(rank + 1):
            sample.extent[absent + k] = shape[k]
            elements *= shape[k]
        sample.out = out[i] + np.uint64(offset * itemsize)
        sample.fill = fill if elements else fill_of_empty
        if made <= 0:
            for k in range(3):
                sample.size[k] = 0
            sample.tiles_across = 1
            continue
        some = True
        column = begin[rank - 1]
        across = (column + size[rank - 1] - 1) // width - column // width + 1
        sample.tiles_across = across
        most = max(most, across * -(-lines // tile_rows))
    return most if some else 0, common, in_strips


def _fills(
    source: DeviceBatch, dtype: np.dtype, fill: float | None, *, nearest: bool
) -> tuple[float, float]:
    """Values of elements outside, in a sample and in one without elements."""
    if fill is None:
        return 0.0, 0.0
    value = float(saturated_number(fill, dtype))
    if nearest:
        return value, value
    # Where neighbours are interpolated, they also take on the type of the input, if there is one.
    return float(np.float32(saturated_number(value, source.dtype))), value
