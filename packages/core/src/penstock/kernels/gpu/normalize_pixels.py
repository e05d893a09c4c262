"""``(pixel - mean) * factor`` on the way from one layout and element type to another.

The GPU's side of `penstock.kernels.cpu.normalize_pixels`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from penstock.kernels.gpu.program import kernel
from penstock.kernels.gpu.records import launch_records, quotient_up

if TYPE_CHECKING:
    from penstock.tensors.gpu.queue import Queue

UNITS = 1024
"""Pixels, or elements, that a block makes."""
SCATTERED, PIXELS, PLANES = 0, 1, 2
"""How an output is written: element by element; or as runs of memory, channels together or in
planes.
"""

_SAMPLE = np.dtype(
    [
        ("first_block", np.uint32),
        ("source", np.uint64),
        ("strides", np.int64, (5,)),
        ("out", np.uint64),
        ("out_strides", np.int64, (5,)),
        ("table", np.uint64),
        ("inside", np.int32, (4, 2)),
        ("inners", np.int32),
        ("height", np.int32),
        ("width", np.int32),
        ("channels", np.int32),
        ("out_channels", np.int32),
        ("planes", np.int32),
        ("groups", np.int32),
        ("mode", np.int32),
    ],
    align=True,
)


@dataclass(slots=True)
class Pixels:
    """Samples with five axes: two of frames, rows, columns, channels; seen through strides.

    Attributes
    ----------
    dtype
        Element type.
    pointers
        uint64 ``(samples,)``: addresses of the first elements.
    strides
        int64 ``(samples, 5)``: between neighbours, in bytes where pixels are read and in elements
        where they are written. May be negative.
    channels
        int64 ``(samples,)``.
    """

    dtype: np.dtype
    pointers: np.ndarray
    strides: np.ndarray
    channels: np.ndarray


def normalize_pixels(
    queue: Queue,
    source: Pixels,
    target: Pixels,
    extents: np.ndarray,
    inside: np.ndarray,
    table: np.ndarray,
) -> None:
    """Queue the normalisation of windows of a batch.

    Parameters
    ----------
    queue
        Where to queue it.
    source
        uint8, int16, uint16, int32, float16 or float32. Its first elements are those of the
        windows, which need not exist.
    target
        float32, float16, uint8 or int8. Integers are rounded, halves away from zero, and clamped.
        It may have more channels than the source.
    extents
        Of the windows: the axes but channels; int64 ``(samples, 4)``.
    inside
        Which coordinates of the windows the source has: begin and end, ``(samples, 4, 2)``.
    table
        Address, for each sample, of float32 numbers: the means of all channels of the target, then
        their factors, then their values where there is no source.
    """
    channels, out_channels = source.channels, target.channels
    height, width = extents[:, 2], extents[:, 3]
    row, pixel, channel = target.strides[:, 2:].T
    together = bool((((channel == 1) | (out_channels == 1)) & (pixel == out_channels)).all())
    parts = next((n for n in (3, 4) if (channels == n).all() and (out_channels <= 4).all()), 1)
    groups = planes = np.ones_like(channels)
    if parts == 1 and together:
        groups = out_channels
    elif parts == 1:
        planes = out_channels
    if together:
        mode = np.where(row == width * out_channels, PIXELS, SCATTERED)
    elif target.dtype.itemsize == 4:
        mode = np.full_like(channels, SCATTERED)  # neighbours fill whole sectors as they are
    else:
        mode = np.where((pixel == 1) & (row == width), PLANES, SCATTERED)

    records = np.empty(len(channels), _SAMPLE)
    records["source"] = source.pointers
    records["strides"] = source.strides
    records["out"] = target.pointers
    records["out_strides"] = target.strides
    records["table"] = table
    records["inside"] = inside
    records["inners"] = extents[:, 1]
    records["height"] = height
    records["width"] = width
    records["channels"] = channels
    records["out_channels"] = out_channels
    records["planes"] = planes
    records["groups"] = groups
    records["mode"] = mode
    frames = extents[:, 0] * extents[:, 1] * planes
    launch_records(
        queue,
        kernel("normalize_pixels.cu", "normalize_pixels", source.dtype, target.dtype, parts),
        records,
        frames * quotient_up(height * width * groups, UNITS),
    )
