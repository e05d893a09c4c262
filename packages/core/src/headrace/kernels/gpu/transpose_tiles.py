"""Tiles of copies that change the order of elements: how samples are cut into them."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from headrace.kernels.gpu.program import kernel
from headrace.kernels.gpu.records import launch_counted
from headrace.kernels.gpu.shared import constant, enumeration, followed, record
from headrace.kernels.gpu.strided_axes import AXIS
from headrace.kernels.plan.compiled import compiled
from headrace.tensors.gpu.batch import as_contiguous
from headrace.tensors.gpu.queue import Queue
from headrace.tensors.gpu.traced import told, traced

if TYPE_CHECKING:
    from headrace.kernels.gpu.strided_axes import StridedAxes

STAGE_BYTES = constant(__name__, "STAGE_BYTES", 25600, "uint32")
"""Shared memory of a block of ``transpose.cu``."""
NESTED_BYTES = 272
"""Steps along `x` up to which a span may hold several of them."""
PIXEL_SPAN_BYTES = constant(__name__, "PIXEL_SPAN_BYTES", 128, "uint32")
"""Shared memory of a span of ``transpose_pixels.cu``, if the source is as wide."""
_PIXEL_STAGE_BYTES, _SMALL_STAGE_BYTES = 52224, 30720
"""Shared memory of a block there: of four blocks on a multiprocessor, or of two before sm_80."""
_THREADS = constant(__name__, "THREADS", 128, "uint32")
_PIXEL_THREADS = constant(__name__, "PIXEL_THREADS", 384, "uint32")
"""Of a block of ``transpose.cu``, and of ``transpose_pixels.cu``."""
BITS = {size: np.dtype(f"u{size}") for size in (1, 2, 4, 8)}
"""Elements of so many bytes, as what they are copied as."""


_ONE, _ONE_AN_X, _ONE_AN_A = enumeration(__name__, "Spans", ("ONE", "ONE_AN_X", "ONE_AN_A"))
"""Number of memory runs that the source of a tile consists of."""
_TILES = record("""transpose_tiles:Tiles {
    uint32 first_block;
    uint32 run;  // elements
    uint64 source, target;
    uint64 low;  // the memory that all of the source lies in
    uint64 high, a_extent, x_extent;
    int64 a_source;  // bytes from element to element, as the next two
    int64 x_source, a_target;
    uint32 a_tiles, x_tiles, a_tile, x_tile;
    int32 spans;  // see `Spans`
    uint32 unit;  // bytes of a copy to shared memory: 4 or 16
    uint32 pitch;  // from span to span in shared memory, in bytes
    uint32 joined;  // whether rows of the output follow one another, written as _ONE
}""")


@cache
def _near_record(outer: int) -> np.dtype:
    return followed(_TILES, ("axes", AXIS, (max(outer, 1),)))


def copy_near_tiles(queue: Queue, axes: StridedAxes, run: int, x: int, fast: int, a: int) -> None:
    """Copy by way of shared memory."""
    outer = axes.extents.shape[1] - len({run, x, a} - {-1})
    records = np.zeros(len(axes.source), _near_record(outer))
    turned = axes.itemsize == 1 and run >= 0 and a == fast
    turned = turned and _are_turned_pixels(axes.extents, axes.strides, run, x, a)
    stage_bytes = STAGE_BYTES
    if turned:
        has_less = queue.runtime.compute_capability < (8, 0)
        stage_bytes = _SMALL_STAGE_BYTES if has_less else _PIXEL_STAGE_BYTES
    blocks, blocks_each, inner, shared_bytes = _describe(
        records,
        as_contiguous(axes.source),
        as_contiguous(axes.target),
        axes.extents,
        axes.strides,
        axes.itemsize,
        run,
        x,
        fast,
        a,
        stage_bytes,
        NESTED_BYTES,
        PIXEL_SPAN_BYTES if turned else 0,
    )
    inner, shared_bytes = int(inner), int(shared_bytes)  # the same from here on
    name, threads = kernel("transpose.cu", "copy_tiles", BITS[axes.itemsize], inner), _THREADS
    if turned:
        name, threads = kernel("transpose_pixels.cu", "transpose_pixels"), _PIXEL_THREADS
    launch_counted(
        queue,
        name,
        records,
        blocks,
        blocks_each,
        np.int32(outer),
        threads=threads,
        shared_bytes=shared_bytes,
    )


@told
@compiled
def _are_turned_pixels(extents: np.ndarray, strides: np.ndarray, run: int, x: int, a: int) -> bool:
    """True if rows of pixels of three bytes become columns, and most of them are long."""
    long, whole = 0, 0
    for i in range(len(extents)):
        size = 1
        for axis in range(extents.shape[1]):
            size *= extents[i, axis]
        if not size:
            continue
        if extents[i, run] != 3 or (extents[i, a] > 1 and strides[i, a] != 3):
            return False
        whole += size
        if extents[i, a] >= 8 and extents[i, x] > 8:
            long += size
    return long * 2 > whole


@traced
@compiled
def _describe(
    records: np.ndarray,
    source: np.ndarray,
    target: np.ndarray,
    extents: np.ndarray,
    strides: np.ndarray,
    itemsize: int,
    run_axis: int,
    x_axis: int,
    fast_axis: int,
    a_axis: int,
    stage_bytes: int,
    nested_bytes: int,
    pixel_span_bytes: int,
) -> tuple[int, int, int, int]:
    """Fill `records`; `pixel_span_bytes` is 0 but for ``transpose_pixels.cu``.

    Returns the number of blocks; that of each sample, if all have as many, else 0; the kernel's
    template argument `Inner`; and its dynamic shared memory in bytes.
    """
    ndim = extents.shape[1]
    total, each, inner, shared = 0, 0, -1, 0
    for i in range(len(records)):
        record = records[i]
        row = i if len(extents) > 1 else 0
        run, x_extent, a_extent = 1, 1, 1
        x_source, a_source, a_target = 0, 0, 0
        low = np.int64(source[i])
        high, images, step, place = low + itemsize, 1, itemsize, len(record.axes)
        for axis in range(ndim - 1, -1, -1):
            extent, stride = extents[row, axis], strides[row, axis]
            if axis == run_axis:
                run = extent
            elif axis == x_axis:
                x_extent, x_source = extent, stride
            elif axis == a_axis:
                a_extent, a_source, a_target = extent, stride, step
            else:
                place -= 1
                record.axes[place].extent = extent
                record.axes[place].source = stride
                record.axes[place].target = step
                images *= extent
            step *= extent
            if stride < 0:
                low += (extent - 1) * stride
            else:
                high += (extent - 1) * stride
        unit, x_step, a_step = run * itemsize, abs(x_source), abs(a_source)
        size, joined = 16, False
        if pixel_span_bytes:
            # A span an `x`, its first byte where it is within 16; `slot_of` adds 3 bytes a span.
            # A word tells where it is; six more are for pixels that follow the last.
            spans = _ONE_AN_X
            pitch = min(pixel_span_bytes, (a_extent * unit + 15 + 15) // 16 * 16)
            x = _even_part(x_extent, (stage_bytes - 16 - 24) // (pitch + 3 + 4))
            a = _even_part(a_extent, (pitch - 15) // unit)
            own = x * pitch + x * 3 // 16 * 16 + 16 + 4 * (x + 6)
            shared = max(shared, own)
        elif fast_axis == x_axis:
            # Mirrors: one span an `a`, as many as there is room for.
            spans = _ONE_AN_A
            x = max(stage_bytes - 64 - unit, 0) // max(x_step, 1) + 1
            x = x_extent if x >= x_extent else x // 32 * 32 if x >= 32 else x
            pitch = (x - 1) * x_step + unit + 32
            pitch += (a_source - pitch) % 16
            a = 1
            if x == x_extent:
                a = min((stage_bytes - 16) // max(pitch, 1), a_extent)
                a = a // 8 * 8 if a > 8 and a < a_extent else a
        else:
            reach = (a_extent - 1) * a_step + unit
            dense = reach <= x_step and x_step <= 2 * reach and x_step <= nested_bytes
            # Threads that read four bytes each meet in a bank where these are far apart.
            if dense and itemsize == 1 and x_step % 8 == 0:
                dense = False
            if dense or (x_extent <= 1 and reach <= nested_bytes):
                # Channels that lie within a step along `x`: one span has it all.
                spans, pitch, a = _ONE, 0, a_extent
                x = max(stage_bytes - 32 - reach, 0) // max(x_step, 1) + 1
                even = 256 * max(4 // itemsize, 1)
                even = even if x >= even else 32 if x >= 32 else 1
                # Lines of the output may begin in the middle of what threads write at a time.
                if even > 32 and x >= even:
                    even, x = 32, x // even * even - 128 // itemsize
                x = x_extent if x >= x_extent else x // even * even
            elif x_extent <= 8:
                # A long span an `x`, their beginnings in different banks.
                spans, x = _ONE_AN_X, x_extent
                room = (stage_bytes - 16) // max(x_extent, 1) - 176 - unit
                a = max(room, 0) // max(a_step, 1) + 1
                a = a_extent if a >= a_extent else a // 32 * 32 if a >= 32 else a
                pitch = (a - 1) * a_step + unit + 32
                pitch += (x_source - pitch) % 16
                while (pitch // 4 - 32 // max(x_extent, 1)) % 32 >= 4:
                    pitch += 16
                joined = run == 1 and a_target == x_extent * itemsize
            else:
                # A span an `x`, their elements in different banks.
                spans = _ONE_AN_X
                a = max(128 - unit, 0) // max(a_step, 1) + 1
                a = min(a, a_extent)
                pitch = (a - 1) * a_step + unit
                if x_source % 4 or x_source % 8 == 4:
                    pitch += 32
                    pitch += (x_source - pitch) % 16
                else:
                    size = 4
                    word = max(itemsize, 4)
                    pitch = ((pitch + 8 + word - 1) // word | 1) * word
                x = min(max((stage_bytes - 16) // pitch, 1), x_extent)
        a, x = max(a, 1), max(x, 1)
        a_tiles, x_tiles = -(-a_extent // a), -(-x_extent // x)
        blocks = a_tiles * x_tiles * images if run > 0 else 0
        record.run = run
        record.source = source[i]
        record.target = target[i]
        record.low = low
        record.high = high
        record.a_extent = a_extent
        record.x_extent = x_extent
        record.a_source = a_source
        record.x_source = x_source
        record.a_target = a_target
        record.a_tiles = a_tiles
        record.x_tiles = x_tiles
        record.a_tile = a
        record.x_tile = x
        record.spans = spans
        record.unit = size
        record.pitch = pitch
        record.joined = joined
        record.first_block = total
        if blocks:
            own = x_extent if joined else run
            inner = own if inner in (-1, own) else 0
        each = blocks if i == 0 or blocks == each else 0
        total += blocks
    return total, each, inner if inner in (1, 3) else 0, shared


@compiled
def _even_part(extent: int, most: int) -> int:
    """The extent of parts of up to `most`, of about the same size."""
    parts = max(-(-extent // most), 1)
    return -(-extent // parts)
