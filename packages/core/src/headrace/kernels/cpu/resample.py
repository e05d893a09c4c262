"""Separable resampling of images, rounded, normalised and laid out while it is in registers.

Output rows are made sixteen at a time, in three steps that all work on vectors of sixteen numbers
(`headrace.kernels.cpu.simd`) and keep everything in between in the processor's caches:

1. *Vertically*: each of the sixteen rows is a weighted sum of source rows, sixteen neighbouring
   elements at a time, and every square of 16 by 16 sums is transposed on the way to the scratch
   memory. From here on one vector holds one column's sixteen rows.
2. *Horizontally*: each output column is a weighted sum of those columns, whole vectors, so that it
   costs the same for any number of channels and needs no gathering of pixels.
3. *Out*: rounding to the output's integers, ``(value - mean) * factor``, and a transposition back
   to rows: of pixels (HWC) or of one channel after the other (CHW).

Sums are float32 (with fused multiply-add); only the pixels asked for and the source they need are
touched. An output pixel has the same bits whichever window of the output it is computed in.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from headrace.kernels.cpu import half
from headrace.kernels.cpu.normalize_pixels import LIMITS, STORED_AS
from headrace.kernels.cpu.resample_loops import SQUARES, compiled_blend, compiled_resample
from headrace.kernels.cpu.resample_taps import Taps, axis_taps, planned_taps
from headrace.kernels.cpu.simd import LANES

__all__ = ["Scratch", "axis_taps", "blend_slices", "planned_taps", "resample_image"]

Scratch = Callable[[tuple[int, ...], Any], np.ndarray]
"""Gives uninitialised memory of a shape and type."""

_ZERO = np.zeros(1, np.float32)


def resample_image(
    source: np.ndarray,
    top: int,
    left: int,
    rows: Taps,
    columns: Taps,
    out: np.ndarray,
    scratch: Scratch,
    *,
    rounds_to: np.dtype | None = None,
    normalization: tuple[np.ndarray, np.ndarray] | None = None,
) -> None:
    """Resample an image, or a window of one, into `out`.

    `source`: (H, W, C) pixels, uint8, int16, uint16 or float32: the part of the image that begins
    with row `top` and column `left` and holds all that `rows` and `columns` need. Of its channels,
    the output may have the first ones only.
    """
    height, width, out_channels = out.shape
    channels = source.shape[2]
    if not out.size or not channels:
        return
    size = source.itemsize
    side_by_side = source.strides[2] == size and source.strides[1] == channels * size
    if not side_by_side or (size > 1 and not source.flags.aligned):
        source = source[rows.low - top : rows.high - top, columns.low - left : columns.high - left]
        source = np.ascontiguousarray(source)
        top, left = rows.low, columns.low
    if out.dtype == np.float16 and not half.available():
        wide = np.empty((out_channels, height, width), np.float32).transpose(1, 2, 0)
        keep = {"rounds_to": rounds_to, "normalization": normalization}
        resample_image(source, top, left, rows, columns, wide, scratch, **keep)  # type: ignore[arg-type]
        out[...] = wide
        return
    needed = columns.high - columns.low
    widest = (-(-width // LANES) + 1) * LANES
    memory = SQUARES + LANES * (needed * channels + LANES + widest * out_channels)
    low, high = (0.0, 0.0) if rounds_to is None else LIMITS[rounds_to]
    means, factors = (_ZERO, _ZERO) if normalization is None else normalization
    limits = LIMITS.get(out.dtype) if normalization is not None else None
    out_low, out_high = limits or (0.0, 0.0)
    stored_as = STORED_AS.get(out.dtype)
    if stored_as is not None:
        out = out.view(stored_as)
    compiled_resample(source.dtype, out.dtype)(
        source,
        top,
        left,
        rows.first,
        rows.weights,
        columns.first,
        columns.weights,
        rounds_to is not None,
        low,
        high,
        normalization is not None,
        means,
        factors,
        limits is not None,
        out_low,
        out_high,
        out,
        scratch((memory,), np.float32),
    )


def blend_slices(source: np.ndarray, first: int, weights: np.ndarray, out: np.ndarray) -> None:
    """Weighted sum of consecutive slices: the resampling of a volume along its depth.

    `weights`: weights of this slice and the next ones, float32. `out`: ``(N,)`` float32, filled.
    """
    compiled_blend(source.dtype)(source, first, weights, out)
