"""``(pixel - mean) * factor`` on the way from one layout and element type to another.

The GPU's side of `headrace.kernels.cpu.normalize_pixels`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from headrace.kernels.gpu.program import kernel
from headrace.kernels.gpu.records import THREADS, launch_counted
from headrace.kernels.gpu.shared import constant, enumeration, record
from headrace.kernels.plan.compiled import compiled
from headrace.tensors.gpu.batch import DeviceBatch, StridedBatch
from headrace.tensors.gpu.queue import Queue
from headrace.tensors.gpu.traced import traced

if TYPE_CHECKING:
    from headrace.kernels.gpu.color import PixelColors
    from headrace.kernels.gpu.program import Kernel

_ITEMS = constant(__name__, "ITEMS", 4)
"""Pixels, or elements, that a thread makes at a time."""
UNITS = THREADS * _ITEMS
"""Pixels, or elements, that a block makes at a time."""
_MOST_32_BITS = (1 << 31) - 1
_MOST_TURNS = 4
_STAGE_BYTES = constant(__name__, "STAGE_BYTES", 13824)
"""Shared memory of a block of ``normalize_planes.cu``."""
_TILE_PIXELS = 4096
"""Pixels that such a block makes, if as many fit."""
_BLOCKS = 8
"""Blocks for each multiprocessor, before they are given more work instead."""
SCATTERED, PIXELS, PLANES = enumeration(__name__, "Mode", ("SCATTERED", "PIXELS", "PLANES"))
"""Ways to write an output: element by element; or as runs of memory, channels together or in
planes.
"""

_SAMPLE = record("""normalize_pixels:NormalizedSample {
    uint32 first_block;
    // Of the first element of the window, which need not be in the data.
    const char* source;
    int64 strides[5];  // bytes: outer, inner, row, pixel, channel
    char* out;
    int64 out_strides[5];  // elements
    const float* table;  // see `Finish`
    // What of the window is in the data: begin and end of outer, inner, rows and columns.
    int32 inside[4][2], inners, height, width, channels, out_channels;
    int32 planes;  // a frame is worked on in; 1 where a block makes all channels
    int32 groups;  // units a pixel
    int32 turns;  // of UNITS each, for one block
}""")
_PACKED = record("""normalize_pixels:PackedSample {
    uint32 first_block;
    // Bytes from pixel to pixel; negative: rows run backwards.
    int32 pixel;
    const char* source;  // of the first element of the window
    int64 outer;  // bytes between neighbours, as the next two
    int64 inner, row;
    char* out;
    int64 out_outer;  // elements between neighbours, as the next two
    int64 out_inner, out_channel;
    const float* table;  // see `Finish`
    int32 inners, height, width;
    int32 tile_rows;  // what a block makes, as the next
    int32 tile_columns;
}""")
"""A sample whose pixels, side by side, go to planes."""


@dataclass(slots=True)
class PixelWindows:
    """Windows of samples with up to two axes of frames, rows, columns and channels.

    Arrays are int64 ``(samples, ndim)``, or ``(1, ndim)`` for what all samples have in common.

    `anchors`, `shapes`: where each begins, which need not be in the sample, and its extents.
    `extents`: of the samples. `mirrored_axis`: number of the axis along which samples are mirrored.
    """

    anchors: np.ndarray
    shapes: np.ndarray
    extents: np.ndarray
    mirrored_axis: int


def normalize_pixels(
    queue: Queue,
    source: DeviceBatch | StridedBatch,
    strides: np.ndarray,
    windows: PixelWindows,
    mirror: np.ndarray | None,
    target: DeviceBatch,
    target_strides: np.ndarray,
    target_channels: np.ndarray,
    table: np.ndarray,
    colors: PixelColors | None = None,
) -> None:
    """Queue the normalisation of windows of a batch.

    `source`: uint8, int16, uint16, int32, float16 or float32. `strides`: of its samples, in bytes,
    in the order of the axes of `windows`; they may be negative. `mirror`: which samples are
    mirrored, bool ``(samples,)``; `None` for none. `target`: float32, float16, uint8 or int8.
    `table`: address of float32 numbers, uint64: the means of all channels of the target, then their
    factors, then their values where there is no source.
    """
    records = np.zeros(len(source.pointers), _SAMPLE)
    parts, mode, checked, farthest, packed = _describe(
        records,
        source.pointers,
        strides,
        source.dtype.itemsize,
        windows.anchors,
        windows.shapes,
        windows.extents,
        _NOBODY if mirror is None else mirror,
        windows.mirrored_axis,
        target.pointers,
        target_strides,
        target_channels,
        table,
    )
    parts, mode = int(parts), int(mode)
    if packed:
        tiles = np.empty(len(records), _PACKED)
        blocks, blocks_each = _cut_tiles(
            records, windows.shapes, source.dtype.itemsize, _STAGE_BYTES, _TILE_PIXELS, tiles
        )
        # Where little is written, blocks are small and many of them resident: the loads of some are
        # under way while others store.
        threads = THREADS if target.dtype.itemsize == 4 else THREADS // 2
        types = source.dtype, target.dtype
        name = kernel("normalize_planes.cu", "normalize_planes", *types, parts, threads)
        _launch(queue, name, tiles, blocks, blocks_each, colors, threads)
        return
    blocks, blocks_each = _count_blocks(records, windows.shapes, UNITS, 1)
    turns = _turns(queue, blocks)
    if turns > 1:
        blocks, blocks_each = _count_blocks(records, windows.shapes, UNITS, turns)
    name = kernel(
        "normalize_pixels.cu",
        "normalize_pixels",
        source.dtype,
        target.dtype,
        parts,
        mode,
        checked,
        _INT64 if farthest > _MOST_32_BITS else _INT32,
    )
    _launch(queue, name, records, blocks, blocks_each, colors)


def _launch(
    queue: Queue,
    name: Kernel,
    records: np.ndarray,
    blocks: int,
    blocks_each: int,
    colors: PixelColors | None,
    threads: int = THREADS,
) -> None:
    if colors is None:
        nothing = np.uint64(0)
        launch_counted(queue, name, records, blocks, blocks_each, nothing, threads=threads)
        return
    from headrace.kernels.gpu.color_text import with_colors

    numbers = colors.table(queue)
    both = with_colors(name, colors.body)
    launch_counted(queue, both, records, blocks, blocks_each, numbers, threads=threads)


_NOBODY = np.empty(0, np.bool_)
_INT32, _INT64 = np.dtype(np.int32), np.dtype(np.int64)


@traced
@compiled
def _describe(
    records: np.ndarray,
    pointers: np.ndarray,
    strides: np.ndarray,
    itemsize: int,
    anchors: np.ndarray,
    shapes: np.ndarray,
    extents: np.ndarray,
    mirror: np.ndarray,
    mirrored_axis: int,
    out: np.ndarray,
    out_strides: np.ndarray,
    out_channels: np.ndarray,
    table: np.ndarray,
) -> tuple[int, int, bool, int, bool]:
    """Fill `records`, all but how blocks are shared out.

    Returns arguments of the kernel's template: G, MODE and CHECKED; the longest way, in bytes or
    elements, between two elements of a frame, or more; and whether pixels that lie side by side go
    to planes.
    """
    ndim = shapes.shape[1]
    absent = 5 - ndim  # axes that there are not
    three, four, few, runs = True, True, True, True
    together, whole_rows, planes_of_rows, packed = True, True, True, True
    leaves, padded = False, False
    most, longest = 0, 0
    for i in range(len(records)):
        record = records[i]
        window = i if len(shapes) > 1 else 0
        step, out_step = i if len(strides) > 1 else 0, i if len(out_strides) > 1 else 0
        for k in range(absent):
            record.inside[k, 1] = 1
        place = np.int64(pointers[i])
        for axis in range(ndim):
            stride, extent = strides[step, axis], shapes[window, axis]
            anchor = anchors[window, axis]
            place += anchor * stride
            begin = min(max(-anchor, 0), extent)
            size = extents[i if len(extents) > 1 else 0, axis]
            end = min(max(size - anchor, begin), extent)
            if axis == mirrored_axis and mirror.size and mirror[i]:
                place += (extent - 1) * stride
                stride = -stride
                begin, end = extent - end, extent - begin
            leaves |= begin > 0 or end < extent
            most = max(most, extent)
            if axis >= ndim - 3:
                longest = max(longest, abs(stride), abs(out_strides[out_step, axis]))
            record.strides[absent + axis] = stride
            record.out_strides[absent + axis] = out_strides[out_step, axis]
            if axis < ndim - 1:
                record.inside[absent + axis, 0] = begin
                record.inside[absent + axis, 1] = end
        record.source = place
        record.out = out[i]
        record.table = table[i if len(table) > 1 else 0]
        record.inners = shapes[window, ndim - 4] if ndim > 3 else 1
        record.height = shapes[window, ndim - 3]
        record.width = shapes[window, ndim - 2]
        channels = shapes[window, ndim - 1]
        made = out_channels[i if len(out_channels) > 1 else 0]
        record.channels = channels
        record.out_channels = made
        row, pixel = record.out_strides[2], record.out_strides[3]
        three &= channels == 3
        four &= channels == 4
        few &= made <= 4
        runs &= record.strides[4] == itemsize
        together &= (record.out_strides[4] == 1 or made == 1) and pixel == made
        whole_rows &= row == record.width * made
        planes_of_rows &= pixel == 1 and row == record.width
        padded |= channels != made
        packed &= abs(record.strides[3]) == channels * itemsize and record.width >= 4
    parts, mode = 1, SCATTERED
    if runs and few:
        parts = 3 if three else 4 if four else 1
    if together:
        mode = PIXELS if whole_rows else SCATTERED
    elif planes_of_rows:
        mode = PLANES
    for record in records:
        record.groups = record.out_channels if parts == 1 and together else 1
        record.planes = record.out_channels if parts == 1 and not together else 1
    packed &= parts > 1 and mode == PLANES and not (leaves or padded)
    return parts, mode, leaves or padded, 3 * most * longest, packed


@traced
@compiled
def _cut_tiles(
    records: np.ndarray,
    shapes: np.ndarray,
    itemsize: int,
    stage_bytes: int,
    tile_pixels: int,
    tiles: np.ndarray,
) -> tuple[int, int]:
    """Fill `tiles`: whole rows, or parts of a row, for each block.

    Returns what `_count_blocks` does.
    """
    blocks, each = 0, 0
    for i in range(len(records)):
        record = records[i]
        pixel = record.channels * itemsize
        width, height = int(record.width), int(record.height)
        # Between rows there are up to 47 bytes of shared memory.
        most = min((stage_bytes - 16 - 47) // pixel, tile_pixels)
        columns, rows = width, 1
        if width > most:
            columns = most // 256 * 256
        elif width:
            room = (stage_bytes - 16) // (width * pixel + 47)
            rows = max(min(min(tile_pixels // width, room), height), 1)
        tile = tiles[i]
        tile.tile_rows, tile.tile_columns = rows, columns
        tile.pixel = record.strides[3]
        tile.source = record.source
        tile.outer, tile.inner, tile.row = record.strides[0], record.strides[1], record.strides[2]
        tile.out = record.out
        tile.out_outer, tile.out_inner = record.out_strides[0], record.out_strides[1]
        tile.out_channel = record.out_strides[4]
        tile.table = record.table
        tile.inners, tile.height, tile.width = record.inners, record.height, record.width
        own = 0
        if width and height:
            own = -(-height // rows) * -(-width // columns)
        for axis in range(shapes.shape[1] - 3):
            own *= shapes[i if len(shapes) > 1 else 0, axis]
        tile.first_block = blocks
        each = own if i == 0 or own == each else 0
        blocks += own
    return blocks, each


@traced
@compiled
def _count_blocks(
    records: np.ndarray, shapes: np.ndarray, block_units: int, turns: int
) -> tuple[int, int]:
    """Share out blocks that make `block_units` units `turns` times.

    Returns how many there are; and how many a sample has, if all have as many, else 0.
    """
    blocks, each = 0, 0
    for i in range(len(records)):
        record = records[i]
        frames = np.int64(record.planes)
        for axis in range(shapes.shape[1] - 3):
            frames *= shapes[i if len(shapes) > 1 else 0, axis]
        units = np.int64(record.height) * record.width * record.groups
        own = frames * -(-units // (block_units * turns))
        record.turns = turns
        record.first_block = blocks
        each = own if i == 0 or own == each else 0
        blocks += own
    return blocks, each


def _turns(queue: Queue, blocks: int) -> int:
    """Units of work for each block, so that every multiprocessor still gets enough blocks."""
    found = blocks // (_BLOCKS * queue.runtime.multiprocessors)
    return int(min(max(found, 1), _MOST_TURNS))
