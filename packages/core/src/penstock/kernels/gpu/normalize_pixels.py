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
"""Pixels, or elements, that a block makes at a time."""
_MOST_32_BITS = (1 << 31) - 1
_MOST_TURNS = 4
_BLOCKS = 8
"""Blocks for each multiprocessor, before they are given more work instead."""
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
        ("turns", np.int32),
    ],
    align=True,
)


@dataclass(slots=True)
class Pixels:
    """Samples with up to two axes of frames, rows, columns and channels, seen through strides.

    Attributes
    ----------
    dtype
        Element type.
    pointers
        uint64 ``(samples,)``: addresses of the first elements.
    strides
        int64 ``(samples, ndim)``: between neighbours, in bytes where pixels are read and in
        elements where they are written. May be negative.
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
    inside: tuple[np.ndarray, np.ndarray],
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
        Of the windows, int64 ``(samples, ndim)``.
    inside
        Which coordinates of the windows the source has: where they begin and end, like `extents`.
    table
        Address, for each sample, of float32 numbers: the means of all channels of the target, then
        their factors, then their values where there is no source.
    """
    channels, out_channels = source.channels, target.channels
    height, width = extents[:, -3], extents[:, -2]
    row, pixel, channel = target.strides[:, -3:].T
    together = bool((((channel == 1) | (out_channels == 1)) & (pixel == out_channels)).all())
    parts = 1
    if bool((source.strides[:, -1] == source.dtype.itemsize).all()):
        parts = next((n for n in (3, 4) if (channels == n).all() and (out_channels <= 4).all()), 1)
    groups = planes = np.ones_like(channels)
    if parts == 1 and together:
        groups = out_channels
    elif parts == 1:
        planes = out_channels
    mode = SCATTERED
    if together:
        mode = PIXELS if bool((row == width * out_channels).all()) else SCATTERED
    elif bool(((pixel == 1) & (row == width)).all()):
        mode = PLANES
    leaves = (inside[0] > 0).any() or (inside[1] < extents).any()
    checked = bool(leaves or (channels != out_channels).any())
    most = int(extents.max(initial=0))
    far = 3 * most * max(_longest(source.strides), _longest(target.strides)) > _MOST_32_BITS

    records = np.zeros(len(channels), _SAMPLE)
    first = 5 - extents.shape[1]  # of the axes that there are
    records["source"] = source.pointers
    records["strides"][:, first:] = source.strides
    records["out"] = target.pointers
    records["out_strides"][:, first:] = target.strides
    records["table"] = table
    records["inside"][:, :first, 1] = 1
    records["inside"][:, first:, 0] = inside[0][:, :-1]
    records["inside"][:, first:, 1] = inside[1][:, :-1]
    records["inners"] = extents[:, -4] if first < 2 else 1
    records["height"] = height
    records["width"] = width
    records["channels"] = channels
    records["out_channels"] = out_channels
    records["planes"] = planes
    records["groups"] = groups
    frames = extents[:, :-3].prod(axis=1) * planes
    units = height * width * groups
    turns = _turns(queue, frames * quotient_up(units, UNITS))
    records["turns"] = turns
    launch_records(
        queue,
        kernel(
            "normalize_pixels.cu",
            "normalize_pixels",
            source.dtype,
            target.dtype,
            parts,
            mode,
            checked,
            np.dtype(np.int64 if far else np.int32),
        ),
        records,
        frames * quotient_up(units, UNITS * turns),
    )


def _turns(queue: Queue, blocks: np.ndarray) -> int:
    """How much work a block does, so that every multiprocessor still gets enough blocks."""
    found = int(blocks.sum()) // (_BLOCKS * queue.runtime.multiprocessors)
    return min(max(found, 1), _MOST_TURNS)


def _longest(strides: np.ndarray) -> int:
    """The longest step between neighbours in a frame."""
    return int(np.abs(strides[:, -3:]).max(initial=0))
