"""Separable resampling of images, rounded, normalised and laid out on the way: the GPU's side of
`headrace.kernels.cpu.resample`.

Three kernels, for the whole batch in one launch each: ``resample_taps`` works out source pixels and
weights, and then, depending on how many there are, ``resample_tiles`` sums vertically into shared
memory and from there horizontally, or ``resample_direct`` has every thread read what it needs.
Volumes are blended along their depth first, into float32 slices, by ``blend_slices``. Sums are made
in the CPU's order, so they differ by nothing but the signs of zeros.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.kernels.cpu.normalize_pixels import LIMITS
from headrace.kernels.gpu.normalize_pixels import PIXELS, PLANES, SCATTERED, UNITS
from headrace.kernels.gpu.program import kernel
from headrace.kernels.gpu.records import launch_counted, launch_records, quotient_up
from headrace.kernels.gpu.shared import constant, record
from headrace.kernels.plan.compiled import compiled
from headrace.tensors.gpu.queue import Queue
from headrace.tensors.gpu.traced import traced

if TYPE_CHECKING:
    from headrace.kernels.gpu.resample_layout import FrameLayout, Target
    from headrace.kernels.gpu.resample_taps import Taps

_TILE_ROWS = constant(__name__, "ROWS", 32)
_BAND_ELEMENTS = constant(__name__, "BAND", 256)
_STAGE_BYTES = constant(__name__, "STAGE_BYTES", 16896)
_PASS_UNITS = constant(__name__, "PASS_UNITS", 32)
"""Units that a block of ``resample_tiles.cu`` makes at a time."""
_PASSES = constant(__name__, "PASSES", 4)
_PASSES_OF_GROUPS = constant(__name__, "PASSES_OF_GROUPS", 2)
"""Largest number of passes of a block, where a unit is one element, and where it is a pixel."""
_MOST_TILE_UNITS = tuple(
    _PASS_UNITS * passes for passes in (0, _PASSES, 0, _PASSES_OF_GROUPS, _PASSES_OF_GROUPS)
)
"""Units that it makes in all, by the channels that a thread works on at a time."""
_MOST_TILED_CHANNELS = 16
_TILE_BAND_BYTES = constant(__name__, "BAND_BYTES", (_BAND_ELEMENTS + 4) * _TILE_ROWS * 4)
_MOST_TILES = constant(__name__, "MOST_TILES", 4)
_MOST_STRIP_PIXELS = constant(__name__, "MOST_COLUMNS", 256)
_ENOUGH_BLOCKS = 2112
"""Tiles, and columns of them, that a block makes one after the other, if there are enough blocks to
keep the device busy."""
_SPARSE = 1.5
"""Source pixels an output pixel from which on most of them are not read, where two along each axis
are enough."""

_ROUNDING = {kind: (np.int32(1), *map(np.float32, limits)) for kind, limits in LIMITS.items()}
_NO_ROUNDING = np.int32(0), np.float32(0), np.float32(0)

_SAMPLE = record("""resample:ResampledSample {
    uint32 first_block;
    const char* source;
    int64 outer, inner, row;  // bytes between neighbours; pixels lie side by side
    char* out;
    int64 out_outer, out_inner, out_row, out_pixel, out_channel;  // elements between neighbours
    const float* table;  // see `Finish`
    const int* row_first;  // first source row of each output row
    const float* row_weights;  // `row_taps` for each output row
    const int* column_first;
    const float* column_weights;
    int32 row_taps, column_taps;
    int32 in_rows, in_columns;  // of a frame
    int32 inners, height, width, channels, out_channels;
    int32 tile_pixels;  // columns of the output that a block makes at a time
    int32 tiles;  // so many times
    // Whether they are written to a plane for each channel, by the kernel of tiles.
    int32 planar;
}""")

_BLENDED = record("""resample:BlendedSample {
    uint32 first_block;
    const char* source;
    int64 outer, slice;  // bytes between neighbours; the elements of a slice lie side by side
    float* out;  // contiguous
    const int* first;
    const float* weights;
    int64 elements;  // of a slice
    int32 taps, depth;
}""")


def resample_images(
    queue: Queue, source: FrameLayout, taps: Taps, target: Target, rounds_to: np.dtype | None
) -> None:
    """Queue the resampling of images into `target`.

    `source`: uint8, int16, uint16 or float32 pixels.
    """
    records = queue.records(_SAMPLE, len(source.pointers))
    blocks, blocks_each, most, parts, mode = _describe(
        records,
        source.pointers,
        source.layout,
        taps.axes,
        taps.columns,
        target.pointers,
        target.layout,
        target.dtype.itemsize,
        UNITS,
        _TILE,
        _MOST_TILE_UNITS,
        _STRIP,
        _SPARSE,
        (SCATTERED, PIXELS, PLANES),
    )
    shared, parts, mode = 0, int(parts), int(mode)
    if mode == _TILED:
        name = kernel("resample_tiles.cu", "resample_tiles", source.dtype, target.dtype, parts)
        shared = _TILE_BAND_BYTES + _STAGE_BYTES
    else:
        counted = int(most) if most <= 2 else 0
        name = kernel(
            "resample_direct.cu",
            "resample_direct",
            source.dtype,
            target.dtype,
            parts,
            mode,
            counted,
        )
    rounding = _NO_ROUNDING if rounds_to is None else _ROUNDING[rounds_to]
    launch_counted(queue, name, records, blocks, blocks_each, *rounding, shared_bytes=shared)


_TILED = -1
_TILE = _TILE_ROWS, _PASS_UNITS, _BAND_ELEMENTS, _TILE_BAND_BYTES, _MOST_TILED_CHANNELS
_STRIP = _MOST_TILES, _MOST_STRIP_PIXELS, _ENOUGH_BLOCKS


@compiled
def _tile_pixels(
    record: Any,
    scale: float,
    channels: int,
    groups: int,
    itemsize: int,
    most_units: int,
    tile: tuple[int, int, int, int, int],
) -> int:
    """Columns of the output that a block makes.

    `itemsize`: bytes of an element of the output.
    """
    tile_rows, pass_units, band, band_bytes, _ = tile
    # Rows of the tile are padded to an odd number of words, planes to whole ones.
    room = (band_bytes // tile_rows - 8) // itemsize // record.out_channels // 4 * 4
    most = max(min(most_units // groups, room), 1)
    # Columns whose source fits into the band, whatever its coordinates are rounded to.
    free = (band - 3) // channels - record.column_taps - 3
    fitting = most if most * scale <= free else int(free / scale) + 1
    one_pass = max(min(pass_units // groups, most), 1)
    if 2 * fitting < one_pass:
        return one_pass
    fitting = max(min(fitting, most), 1)
    # Tiles of about the same size, which begin where words do.
    even = -(-record.width // -(-record.width // fitting))
    return min(-(-even // 4) * 4, fitting)


@traced
@compiled
def _describe(
    records: np.ndarray,
    pointers: np.ndarray,
    frames: np.ndarray,
    axes: np.ndarray,
    columns: np.ndarray,
    out: np.ndarray,
    places: np.ndarray,
    itemsize: int,
    units: int,
    tile: tuple[int, int, int, int, int],
    tile_units: tuple[int, ...],
    strip: tuple[int, int, int],
    sparse: float,
    modes: tuple[int, int, int],
) -> tuple[int, int, int, int, int]:
    """Fill `records`, and choose a kernel.

    Returns the number of blocks; that of each sample if all have as many, else 0; the most taps of
    an axis; how many channels a thread works on at a time; and how `resample_direct` writes, or
    `_TILED` for the other kernel.
    """
    rows_axis, columns_axis = axes.shape[0] - 2, axes.shape[0] - 1
    most, most_channels = 0, 0
    parts = frames[0].channels
    for frame in frames:
        most_channels = max(most_channels, frame.channels)
        if frame.channels != parts:
            parts = 1
    if parts != 3 and parts != 4:
        parts = 1
    pixels, planes, single, whole, one_or_pixels, together = True, True, True, True, True, True
    covered, made = 0.0, 0.0
    for i in range(len(records)):
        record = records[i]
        frame, place = frames[i if len(frames) > 1 else 0], places[i if len(places) > 1 else 0]
        rows = axes[rows_axis, columns[rows_axis, i] if columns.size else i]
        line = axes[columns_axis, columns[columns_axis, i] if columns.size else i]
        record.source = pointers[i]
        record.outer = frame.outer
        record.inner = frame.inner
        record.row = frame.row
        record.out = out[i]
        record.out_outer = place.outer
        record.out_inner = place.inner
        record.out_row = place.row
        record.out_pixel = place.pixel
        record.out_channel = place.channel
        record.table = place.table
        record.row_first = rows.first
        record.row_weights = rows.weights
        record.row_taps = rows.taps
        record.height = rows.length
        record.column_first = line.first
        record.column_weights = line.weights
        record.column_taps = line.taps
        record.width = line.length
        record.in_rows = rows.in_size
        record.in_columns = line.in_size
        record.inners = frame.inners
        record.channels = frame.channels
        record.out_channels = place.channels
        most = max(most, rows.taps, line.taps)
        area = float(rows.length * line.length)
        covered += abs(float(rows.scale) * float(line.scale)) * area
        made += area
        by_pixels = place.channel == 1 and place.pixel == place.channels
        record.planar = not by_pixels
        one_group = frame.channels == parts
        pixels &= by_pixels
        planes &= not by_pixels and place.pixel == 1
        single &= one_group
        one_or_pixels &= by_pixels or one_group
        whole &= by_pixels and (one_group or place.channels == frame.channels)
        together &= place.row == line.length * place.pixel
    mode = _TILED
    few = most <= 1 or (most == 2 and covered > sparse * made)
    few = few and one_or_pixels
    if few or not (pixels or planes) or most_channels > tile[4]:
        mode, by_pixels, by_planes = modes
        if together and whole:
            mode = by_pixels
        elif together and planes and single and itemsize < 4:
            mode = by_planes
    tiles = 0
    for i in range(len(records)):
        record, frame = records[i], frames[i if len(frames) > 1 else 0]
        record.tile_pixels = record.tiles = 0
        if mode != _TILED or record.height <= 0 or record.width <= 0 or record.channels <= 0:
            continue
        line = axes[columns_axis, columns[columns_axis, i] if columns.size else i]
        scale, groups = abs(float(line.scale) * line.step), frame.channels // parts
        record.tile_pixels = _tile_pixels(
            record, scale, frame.channels, groups, itemsize, tile_units[parts], tile
        )
        across = -(-record.width // record.tile_pixels)
        tiles += frame.outers * frame.inners * -(-record.height // tile[0]) * across
    most_tiles, most_pixels, enough = strip
    at_once = max(1, min(most_tiles, tiles // enough))
    total, each = 0, 0
    for i in range(len(records)):
        record, frame = records[i], frames[i if len(frames) > 1 else 0]
        blocks = 0
        if record.height > 0 and record.width > 0 and record.channels > 0:
            images = frame.outers * frame.inners
            if mode == _TILED:
                across = -(-record.width // record.tile_pixels)
                strips = -(-across // min(at_once, most_pixels // record.tile_pixels))
                record.tiles = -(-across // strips)
                blocks = images * -(-record.height // tile[0]) * -(-across // record.tiles)
            else:
                units_each = record.height * record.width * (frame.channels // parts)
                blocks = images * -(-units_each // units)
        record.first_block = total
        each = blocks if i == 0 or blocks == each else 0
        total += blocks
    return total, each, most, parts, mode


def blend_slices(
    queue: Queue, source: FrameLayout, taps: Taps, depth: np.ndarray, elements: np.ndarray
) -> np.ndarray:
    """Queue the resampling of volumes along their depth; the addresses of the float32 results.

    `source`: volumes: the inner axis is the depth, and slices are contiguous. `depth`: how many
    slices the output has, ``(samples,)``. Returns uint64 ``(samples,)``. The results are
    contiguous: outer axis, depth, slices.
    """
    layout, axes = source.layout, taps.axes[0]
    if taps.columns.size:
        axes = axes[taps.columns[0]]
    slices = layout["outers"] * depth
    sizes = slices * elements * 4
    ends = np.cumsum(sizes)
    out = (queue.scratch(int(ends[-1])) + ends - sizes).astype(np.uint64)
    records = np.empty(len(depth), _BLENDED)
    records["source"] = source.pointers
    records["outer"] = layout["outer"]
    records["slice"] = layout["inner"]
    records["out"] = out
    records["first"] = axes["first"]
    records["weights"] = axes["weights"]
    records["elements"] = elements
    records["taps"] = axes["taps"]
    records["depth"] = depth
    name = kernel("resample_blend.cu", "blend_slices", source.dtype)
    launch_records(queue, name, records, slices * quotient_up(elements, UNITS))
    return out
