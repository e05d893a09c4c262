"""Turn decoded pixels in device memory upright, and into the wanted colours and element type.

Mirrors `headrace.kernels.cpu.decode.convert` and `rotate`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from headrace.kernels.cpu.decode.convert import ycbcr_matrix
from headrace.kernels.cpu.decode.exif import UPRIGHT
from headrace.kernels.gpu.program import kernel
from headrace.kernels.gpu.records import THREADS, quotient_up
from headrace.kernels.gpu.shared import constant, record
from headrace.tensors.gpu.queue import Queue

_FILE = "decode_convert.cu"
_TURNED_FILE = "decode_convert_turned.cu"
_PIXELS_EACH = constant(__name__, "PIXELS_EACH", 8)
_BYTES_EACH = constant(__name__, "BYTES_EACH", 16)
"""Pixels, and bytes of the larger type, that a thread converts at a time."""
_TILE = constant(__name__, "TILE", 32)
_TILE_ROWS = constant(__name__, "TILE_ROWS", 8)
_MOST_IMAGES = 65535

_DESCRIPTOR = record("""decode.convert:DecodedImage {
    uint64 source;  // address of the upright image's first pixel
    uint64 target;  // address of the output, HWC without gaps
    int64 row_step;  // elements from a row of the upright image to the next one
    int64 column_step;  // elements from a column to the next one
    int32 height, width, channels, unused;
}""")


class DecodedImages(NamedTuple):
    """An image in device memory as it is stored, HWC, that waits for conversion."""

    source: int
    """Its address."""
    target: int
    """Address of the output."""
    rows: int
    columns: int
    channels: int
    orientation: int
    """EXIF orientation to be undone, 1 to 8."""
    row_pixels: int
    """Number of pixels from the start of one row to that of the next: at least `columns`."""


def convert(
    queue: Queue, images: list[DecodedImages], native: np.dtype, target: np.dtype, *, ycbcr: bool
) -> None:
    """Queue the conversion of `images`, whose elements are of type `native`."""
    table = np.array(images, np.int64).reshape(len(images), 7)
    orientation = table[:, 5]
    descriptors = _descriptors(table, native.itemsize)
    matrix = np.uint64(0)
    if ycbcr:
        matrix = queue.upload(ycbcr_matrix(native, target))
    turned = orientation >= 5
    flat = (orientation == UPRIGHT) & (table[:, 3] == table[:, 6]) & (not ycbcr)
    pixels = descriptors["height"].astype(np.int64) * descriptors["width"]
    elements_each = THREADS * (_BYTES_EACH // max(native.itemsize, target.itemsize))
    tiles = quotient_up(descriptors["height"], _TILE) * quotient_up(descriptors["width"], _TILE)
    square, row, args = (_TILE, _TILE_ROWS, 1), (THREADS, 1, 1), (matrix,)
    for chosen, file, function, blocks, threads, given in (
        (flat, _FILE, "elements", quotient_up(table[:, 4] * pixels, elements_each), row, ()),
        (~flat & ~turned, _FILE, "pixels", quotient_up(pixels, THREADS * _PIXELS_EACH), row, args),
        (turned, _TURNED_FILE, "turned", tiles, square, args),
    ):
        numbers = np.flatnonzero(chosen)
        for start in range(0, len(numbers), _MOST_IMAGES):
            part = numbers[start : start + _MOST_IMAGES]
            queue.launch(
                kernel(file, f"convert_{function}", native, target),
                (int(blocks[part].max()), len(part), 1),
                threads,
                queue.upload(descriptors[part]),
                *given,
            )


def _descriptors(table: np.ndarray, itemsize: int) -> np.ndarray:
    """The kernels' descriptors: strides that show the stored images upright."""
    source, target, rows, columns, channels, orientation, row_pixels = table.T
    turned = orientation >= 5
    height = np.where(turned, columns, rows)
    width = np.where(turned, rows, columns)
    row_step = np.where(turned, channels, row_pixels * channels)
    column_step = np.where(turned, row_pixels * channels, channels)
    last_first = np.isin(orientation, (3, 4, 7, 8))
    right_first = np.isin(orientation, (2, 3, 6, 7))
    begin = np.where(last_first, (height - 1) * row_step, 0)
    begin += np.where(right_first, (width - 1) * column_step, 0)
    descriptors = np.zeros(len(table), _DESCRIPTOR)
    descriptors["source"] = source + begin * itemsize
    descriptors["target"] = target
    descriptors["row_step"] = np.where(last_first, -row_step, row_step)
    descriptors["column_step"] = np.where(right_first, -column_step, column_step)
    descriptors["height"] = height
    descriptors["width"] = width
    descriptors["channels"] = channels
    return descriptors
