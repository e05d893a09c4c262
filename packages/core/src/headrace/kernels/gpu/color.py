"""Functions of pixels, one generated kernel for any chain of them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headrace.kernels.gpu.records import THREADS, fill_fields, launch_counted
from headrace.kernels.gpu.shared import record
from headrace.kernels.plan.compiled import compiled
from headrace.tensors.gpu.batch import (
    DeviceBatch,
    StridedBatch,
    are_contiguous,
    rows_in_common,
    shape_rows,
)
from headrace.tensors.gpu.queue import Queue
from headrace.tensors.gpu.traced import traced

if TYPE_CHECKING:
    from headrace.kernels.gpu.color_text import ColorBody

_MOST_TURNS = 4
_BLOCKS = 8
"""Blocks for each multiprocessor, before they are given more work instead."""
_PLACE = record("""color:ColorPlace {
    uint32 first_block;
    int32 shift;  // pixels of the first tile that are in front of the sample
    const char* source;  // of the first pixel
    char* out;  // one run of memory
    int64 pixels;
    // Of a view: where its first byte is, and the end of its last.
    const char* low;
    const char* high;
    int64 outer;  // bytes between neighbours, as the next three
    int64 row;
    int32 pixel, channel, height, width;
    int32 turns;  // tiles of a block
    int32 padding;  // so that numbers begin after the record in C++, too
}""")


@lru_cache(maxsize=1024)
def _row(numbers: np.dtype) -> np.dtype:
    return np.dtype([("place", _PLACE), ("numbers", numbers)], align=True)


class PixelColors(NamedTuple):
    """Functions of the pixels that another kernel reads."""

    body: ColorBody
    """The functions."""
    numbers: Sequence[np.ndarray]
    """For each array of numbers of `body` one row a sample."""

    def table(self, queue: Queue) -> np.uint64:
        """Address of the numbers for the kernel that is launched next, a row a sample."""
        if not self.numbers:
            return np.uint64(0)
        table = np.zeros(len(self.numbers[0]), self.body.numbers)
        fill_fields(table, *self.numbers)
        return queue.upload(table)


def fits(source: StridedBatch) -> bool:
    """True if samples seen through strides can be read as the kernel does: in frames of rows."""
    if source.ndim > 4 or not len(source):
        return source.ndim <= 4
    return bool((np.abs(source.strides[:, -2:]) < 1 << 31).all())


def compute(
    queue: Queue,
    body: ColorBody,
    source: DeviceBatch | StridedBatch,
    numbers: Sequence[np.ndarray],
    out: DeviceBatch,
) -> None:
    """Queue the computation of `out` from pixels ``(..., H, W, C)``; through strides, it `fits`."""
    if not len(out):
        return
    table = np.zeros(len(out), _row(body.numbers))
    fill_fields(table["numbers"], *numbers)
    # The places within the table, written to where they are.
    places = np.ndarray(len(out), _PLACE, table, strides=table.strides)  # type: ignore[call-overload]
    shapes, strides = shape_rows(source), _NONE
    if isinstance(source, StridedBatch):
        shapes, strides = rows_in_common(source.shapes, source.strides)
        if are_contiguous(shapes, strides, source.dtype.itemsize):
            strides = _NONE
    blocks, each = _describe(
        places,
        source.pointers,
        shapes,
        strides,
        source.dtype.itemsize,
        out.pointers,
        body.out_channels * body.out_dtype.itemsize,
        THREADS * body.each,
        _BLOCKS * queue.runtime.multiprocessors,
        _MOST_TURNS,
    )
    launch_counted(queue, body.kernel(view=bool(len(strides))), table, blocks, each)


_NONE = np.empty((0, 0), np.int64)


@traced
@compiled
def _describe(
    places: np.ndarray,
    pointers: np.ndarray,
    shapes: np.ndarray,
    strides: np.ndarray,
    itemsize: int,
    out: np.ndarray,
    out_pixel: int,
    tile: int,
    least_blocks: int,
    most_turns: int,
) -> tuple[int, int]:
    """Fill `places`.

    `pointers`, `shapes`, `strides`: of the source; strides in bytes, none for samples without gaps.
    Shapes and strides have a row a sample, or one for all. `itemsize`: bytes of an element of the
    source. `out`, `out_pixel`: where the output begins, and bytes of its pixels. Returns number of
    blocks; and that of each sample, if all have as many, else 0.
    """
    blocks, each, tiles = 0, 0, 0
    ndim = shapes.shape[1]
    for i in range(len(places)):
        place = places[i]
        shape = shapes[i if len(shapes) > 1 else 0]
        pixels = 1
        for axis in range(ndim - 1):
            pixels *= shape[axis]
        channels = shape[ndim - 1]
        place.source, place.out = pointers[i], out[i]
        place.pixels = pixels
        if len(strides):
            step = strides[i if len(strides) > 1 else 0]
            place.channel, place.pixel = step[ndim - 1], step[ndim - 2]
            place.row = step[ndim - 3] if ndim > 2 else 0
            place.outer = step[ndim - 4] if ndim > 3 else 0
            low, high = np.int64(pointers[i]), np.int64(pointers[i]) + itemsize
            for axis in range(ndim):
                reach = max(shape[axis] - 1, 0) * step[axis]
                low += min(reach, 0)
                high += max(reach, 0)
            place.low, place.high = low, high
            place.width = max(shape[ndim - 2], 1)
            place.height = max(shape[ndim - 3], 1) if ndim > 2 else 1
        # The first tile begins where accesses of 16 bytes do.
        shift = 0
        begin = np.int64(out[i] & np.uint64(15))
        while shift < 16 and (begin - shift * out_pixel) % 16:
            shift += 1
        place.shift = shift if shift < 16 else 0
        place.first_block = -(-(pixels + place.shift) // tile) if pixels and channels else 0
        tiles += place.first_block
    turns = min(max(tiles // least_blocks, 1), most_turns)
    for i in range(len(places)):
        place = places[i]
        place.turns = turns
        own = int(-(-np.int64(place.first_block) // turns))
        place.first_block = blocks
        each = own if i == 0 or own == each else 0
        blocks += own
    return blocks, each
