"""Separable resampling of images, rounded, normalised and laid out on the way: the GPU's side of
`penstock.kernels.cpu.resample`.

Three kernels, for the whole batch in one launch each: ``resample_taps`` works out source pixels and
weights, and then, depending on how many there are, ``resample_tiles`` sums vertically into shared
memory and from there horizontally, or ``resample_direct`` has every thread read what it needs.
Volumes are blended along their depth first, into float32 slices, by ``blend_slices``. Sums are made
in the CPU's order, so they differ by nothing but the signs of zeros.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from penstock.kernels.gpu.normalize_pixels import PIXELS, PLANES, SCATTERED, UNITS
from penstock.kernels.gpu.program import kernel
from penstock.kernels.gpu.records import launch_records, quotient_up

if TYPE_CHECKING:
    from penstock.kernels.gpu.resample_taps import Taps
    from penstock.tensors.gpu.queue import Queue

_TILE_ROWS = 32
_TILE_UNITS = {1: 128, 3: 32, 4: 32}
_MOST_TILED_CHANNELS = 16

LIMITS: dict[np.dtype, tuple[float, float]] = {
    np.dtype(np.uint8): (0.0, 255.0),
    np.dtype(np.uint16): (0.0, 65535.0),
    np.dtype(np.int16): (-32768.0, 32767.0),
}
"""Integers that pixels can be rounded to."""

_SAMPLE = np.dtype(
    [
        ("first_block", np.uint32),
        ("source", np.uint64),
        ("outer", np.int64),
        ("inner", np.int64),
        ("row", np.int64),
        ("out", np.uint64),
        ("out_outer", np.int64),
        ("out_inner", np.int64),
        ("out_row", np.int64),
        ("out_pixel", np.int64),
        ("out_channel", np.int64),
        ("table", np.uint64),
        ("row_first", np.uint64),
        ("row_weights", np.uint64),
        ("column_first", np.uint64),
        ("column_weights", np.uint64),
        ("row_taps", np.int32),
        ("column_taps", np.int32),
        ("inners", np.int32),
        ("height", np.int32),
        ("width", np.int32),
        ("channels", np.int32),
        ("out_channels", np.int32),
        ("tile_pixels", np.int32),
        ("planar", np.int32),
    ],
    align=True,
)

_BLENDED = np.dtype(
    [
        ("first_block", np.uint32),
        ("source", np.uint64),
        ("outer", np.int64),
        ("slice", np.int64),
        ("out", np.uint64),
        ("first", np.uint64),
        ("weights", np.uint64),
        ("elements", np.int64),
        ("taps", np.int32),
        ("depth", np.int32),
    ],
    align=True,
)


@dataclass(slots=True)
class Frames:
    """Images of a batch that are read: each sample has two axes of frames, outer and inner.

    All arrays are ``(samples,)``; strides are in bytes and may be negative. The elements of a row
    lie side by side.
    """

    dtype: np.dtype
    pointers: np.ndarray
    outer: np.ndarray
    inner: np.ndarray
    row: np.ndarray
    outers: np.ndarray
    """Extent of the outer axis."""
    inners: np.ndarray
    """Extent of the inner axis."""
    channels: np.ndarray


@dataclass(slots=True)
class Target:
    """Images of a batch that are written; strides are in elements.

    Attributes
    ----------
    channels
        Of the output: as many as the source has, or more with a `table`.
    table
        Addresses of means, factors and values outside, one after the other, of all channels;
        0 where pixels are not normalised.
    """

    dtype: np.dtype
    pointers: np.ndarray
    outer: np.ndarray
    inner: np.ndarray
    row: np.ndarray
    pixel: np.ndarray
    channel: np.ndarray
    channels: np.ndarray
    table: np.ndarray | int = 0


def resample_images(
    queue: Queue,
    source: Frames,
    taps: Taps,
    height: np.ndarray,
    width: np.ndarray,
    target: Target,
    rounds_to: np.dtype | None,
) -> None:
    """Queue the resampling of images into `target`.

    Parameters
    ----------
    queue
        Where to queue it.
    source
        uint8, int16, uint16 or float32 pixels.
    taps
        What output rows (last but one) and columns (last) are made of.
    height, width
        Extents of the output, ``(samples,)``.
    target
        Where it goes: float32, float16 or an integer type of up to 16 bits.
    rounds_to
        The integer type that pixels are rounded to first, halves to even.
    """
    channels = source.channels
    row_taps, column_taps = taps.taps[-2], taps.taps[-1]
    parts = _parts(channels)
    groups = channels // parts
    pixels = (target.channel == 1) & (target.pixel == target.channels)
    planes = (target.pixel == 1) & ~pixels
    most = int(max(row_taps.max(initial=0), column_taps.max(initial=0)))
    in_order = bool(pixels.all() or planes.all())
    few = most <= 2 and bool((pixels | (groups == 1)).all())
    direct = few or not in_order or int(channels.max(initial=0)) > _MOST_TILED_CHANNELS

    records = np.empty(len(channels), _SAMPLE)
    frames = source.outers * source.inners
    some = (height > 0) & (width > 0) & (channels > 0)
    if direct:
        mode = SCATTERED
        if (target.row == width * target.pixel).all():
            whole = (groups == 1) | (target.channels == channels)
            if (pixels & whole).all():
                mode = PIXELS
            elif (planes & (groups == 1)).all() and target.dtype.itemsize < 4:
                mode = PLANES
        records["tile_pixels"] = 0
        blocks = frames * quotient_up(height * width * groups, UNITS)
        name = kernel(
            "resample_direct.cu",
            "resample_direct",
            source.dtype,
            target.dtype,
            parts,
            mode,
            most if most <= 2 else 0,
        )
    else:
        tile_pixels = _TILE_UNITS[parts] // np.maximum(groups, 1)
        records["tile_pixels"] = tile_pixels
        blocks = frames * quotient_up(height, _TILE_ROWS) * quotient_up(width, tile_pixels)
        name = kernel("resample_tiles.cu", "resample_tiles", source.dtype, target.dtype, parts)
    records["source"] = source.pointers
    records["outer"] = source.outer
    records["inner"] = source.inner
    records["row"] = source.row
    records["out"] = target.pointers
    records["out_outer"] = target.outer
    records["out_inner"] = target.inner
    records["out_row"] = target.row
    records["out_pixel"] = target.pixel
    records["out_channel"] = target.channel
    records["table"] = target.table
    records["row_first"], records["column_first"] = taps.first[-2], taps.first[-1]
    records["row_weights"], records["column_weights"] = taps.weights[-2], taps.weights[-1]
    records["row_taps"] = row_taps
    records["column_taps"] = column_taps
    records["inners"] = source.inners
    records["height"] = height
    records["width"] = width
    records["channels"] = channels
    records["out_channels"] = target.channels
    records["planar"] = ~pixels
    low, high = (0.0, 0.0) if rounds_to is None else LIMITS[rounds_to]
    launch_records(
        queue,
        name,
        records,
        np.where(some, blocks, 0),
        np.int32(rounds_to is not None),
        np.float32(low),
        np.float32(high),
    )


def _parts(channels: np.ndarray) -> int:
    """How many channels a thread works on at a time: all of a pixel, or a single one."""
    return next((n for n in (3, 4) if (channels == n).all()), 1)


def blend_slices(
    queue: Queue,
    source: Frames,
    taps: Taps,
    depth: np.ndarray,
    elements: np.ndarray,
) -> np.ndarray:
    """Queue the resampling of volumes along their depth; the addresses of the float32 results.

    Parameters
    ----------
    queue
        Where to queue it.
    source
        Volumes: the inner axis is the depth, and slices are contiguous.
    taps
        What each slice of the output (first axis) is made of.
    depth
        How many slices the output has, ``(samples,)``.
    elements
        How many elements a slice has.

    Returns
    -------
    numpy.ndarray
        uint64 ``(samples,)``. The results are contiguous: outer axis, depth, slices.
    """
    slices = source.outers * depth
    sizes = slices * elements * 4
    ends = np.cumsum(sizes)
    out = (queue.scratch(int(ends[-1])) + ends - sizes).astype(np.uint64)
    records = np.empty(len(depth), _BLENDED)
    records["source"] = source.pointers
    records["outer"] = source.outer
    records["slice"] = source.inner
    records["out"] = out
    records["first"] = taps.first[0]
    records["weights"] = taps.weights[0]
    records["elements"] = elements
    records["taps"] = taps.taps[0]
    records["depth"] = depth
    name = kernel("resample_blend.cu", "blend_slices", source.dtype)
    launch_records(queue, name, records, slices * quotient_up(elements, UNITS))
    return out
