"""Turn decoded pixels in device memory upright, and into the wanted colours and element type.

Mirrors `penstock.kernels.cpu.decode.convert` and `rotate`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from penstock.kernels.cpu.decode.convert import ycbcr_matrix
from penstock.kernels.cpu.decode.exif import UPRIGHT
from penstock.kernels.gpu.program import kernel
from penstock.kernels.gpu.records import THREADS
from penstock.kernels.gpu.shared import constant, record
from penstock.tensors.gpu.queue import Queue

_FILE = "decode_convert.cu"
_TURNED_FILE = "decode_convert_turned.cu"
_PIXELS_EACH = constant(__name__, "PIXELS_EACH", 8)
_BYTES_EACH = constant(__name__, "BYTES_EACH", 16)
"""What a thread converts at once, in the larger type."""
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


class Decoded(NamedTuple):
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
    """How many pixels lie between the begins of two rows: at least `columns`."""


def convert(
    queue: Queue, images: list[Decoded], native: np.dtype, target: np.dtype, *, ycbcr: bool
) -> None:
    """Queue the conversion of `images`, whose elements are of type `native`.

    Parameters
    ----------
    target
        Element type of the outputs; full range becomes full range.
    ycbcr
        Whether RGB becomes YCbCr.
    """
    table = np.array(images, np.int64).reshape(len(images), 7)
    orientation = table[:, 5]
    descriptors = _descriptors(table, native.itemsize)
    matrix = np.uint64(0)
    if ycbcr:
        matrix = queue.upload(ycbcr_matrix(native, target))
    turned = orientation >= 5
    flat = (orientation == UPRIGHT) & (table[:, 3] == table[:, 6]) & (not ycbcr)
    for chosen, launch in (
        (flat, _launch_elements),
        (~flat & ~turned, _launch_pixels),
        (turned, _launch_turned),
    ):
        found = descriptors[chosen]
        for start in range(0, len(found), _MOST_IMAGES):
            launch(queue, found[start : start + _MOST_IMAGES], native, target, matrix)


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


def _launch_elements(
    queue: Queue, images: np.ndarray, native: np.dtype, target: np.dtype, matrix: np.uint64
) -> None:
    elements = int((_pixels(images) * images["channels"]).max())
    a_thread = _BYTES_EACH // max(native.itemsize, target.itemsize)
    queue.launch(
        kernel(_FILE, "convert_elements", native, target),
        (-(-elements // (THREADS * a_thread)), len(images), 1),
        (THREADS, 1, 1),
        queue.upload(images),
    )


def _launch_pixels(
    queue: Queue, images: np.ndarray, native: np.dtype, target: np.dtype, matrix: np.uint64
) -> None:
    queue.launch(
        kernel(_FILE, "convert_pixels", native, target),
        (-(-int(_pixels(images).max()) // (THREADS * _PIXELS_EACH)), len(images), 1),
        (THREADS, 1, 1),
        queue.upload(images),
        matrix,
    )


def _launch_turned(
    queue: Queue, images: np.ndarray, native: np.dtype, target: np.dtype, matrix: np.uint64
) -> None:
    tiles = -(-images["height"] // _TILE) * -(-images["width"] // _TILE)
    queue.launch(
        kernel(_TURNED_FILE, "convert_turned", native, target),
        (int(tiles.max()), len(images), 1),
        (_TILE, _TILE_ROWS, 1),
        queue.upload(images),
        matrix,
    )


def _pixels(images: np.ndarray) -> np.ndarray:
    pixels: np.ndarray = images["height"].astype(np.int64) * images["width"]
    return pixels
