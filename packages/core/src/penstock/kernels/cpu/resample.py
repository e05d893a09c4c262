"""Separable resampling of images, rounded, normalised and laid out while it is in registers.

Output rows are made sixteen at a time, in three steps that all work on vectors of sixteen numbers
(`penstock.kernels.cpu.lanes`) and keep everything in between in the processor's caches:

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
from functools import cache
from typing import Any

import numba
import numpy as np
from numba.core import types

from penstock.kernels.cpu import half
from penstock.kernels.cpu.lanes import (
    CACHE_LINE,
    LANES,
    VECTOR_BYTES,
    address,
    load,
    load_first,
    load_number,
    multiply,
    multiply_add,
    prefetch,
    publish,
    round_away,
    round_even,
    spread,
    store,
    subtract,
    transpose,
    transpose_past_caches,
)
from penstock.kernels.cpu.normalize_pixels import LIMITS, STORED_AS
from penstock.kernels.cpu.resample_taps import Taps, axis_taps

__all__ = ["Scratch", "axis_taps", "blend_slices", "resample_image"]

_WIDE = 4
_AHEAD = 4 * _WIDE
_LARGE = 1 << 16
_SQUARE_BYTES = LANES * VECTOR_BYTES
_SQUARES = _WIDE * LANES * LANES
_CHUNK = 6144
"""Elements of a source row that step 1 leaves to step 2 at a time: 384 KiB of scratch memory."""

Scratch = Callable[[tuple[int, ...], Any], np.ndarray]
"""Gives uninitialised memory of a shape and type."""


@numba.njit(nogil=True, cache=True)
def _vertically(
    source: Any,
    column: int,
    elements: int,
    first: np.ndarray,
    weights: np.ndarray,
    row: int,
    rows: int,
    top: int,
    squares: np.ndarray,
    columns: np.ndarray,
) -> None:
    """Step 1: output rows ``row .. row + rows`` of `elements` elements from byte `column` on."""
    stride = source.strides[0]
    size = source.itemsize
    taps = weights.shape[1]
    next_vector = LANES * size
    begin = 0
    while begin < elements:
        left = elements - begin
        # Four vectors at a time share their weights, and their sums do not wait for one another.
        vectors = _WIDE if left >= _WIDE * LANES else 1
        for r in range(rows):
            place = (first[row + r] - top) * stride + column + begin * size
            at = r * VECTOR_BYTES
            weight = spread(weights[row + r, 0])
            if vectors == _WIDE:
                a = multiply(weight, load(source, place))
                b = multiply(weight, load(source, place + next_vector))
                c = multiply(weight, load(source, place + 2 * next_vector))
                d = multiply(weight, load(source, place + 3 * next_vector))
                for k in range(1, taps):
                    place += stride
                    weight = spread(weights[row + r, k])
                    # Too many rows are read at once for the processor to see where this goes.
                    prefetch(source, place + _AHEAD * next_vector)
                    a = multiply_add(weight, load(source, place), a)
                    b = multiply_add(weight, load(source, place + next_vector), b)
                    c = multiply_add(weight, load(source, place + 2 * next_vector), c)
                    d = multiply_add(weight, load(source, place + 3 * next_vector), d)
                store(squares, at, a)
                store(squares, at + _SQUARE_BYTES, b)
                store(squares, at + 2 * _SQUARE_BYTES, c)
                store(squares, at + 3 * _SQUARE_BYTES, d)
            elif left >= LANES:
                a = multiply(weight, load(source, place))
                for k in range(1, taps):
                    place += stride
                    a = multiply_add(spread(weights[row + r, k]), load(source, place), a)
                store(squares, at, a)
            else:
                a = multiply(weight, load_first(source, place, left))
                for k in range(1, taps):
                    place += stride
                    values = load_first(source, place, left)
                    a = multiply_add(spread(weights[row + r, k]), values, a)
                store(squares, at, a)
        for v in range(vectors):
            to = (begin + v * LANES) * VECTOR_BYTES
            transpose(
                squares, v * _SQUARE_BYTES, VECTOR_BYTES, columns, to, VECTOR_BYTES, LANES, LANES
            )
        begin += vectors * LANES


@numba.njit(nogil=True, cache=True)
def _horizontally(
    columns: np.ndarray,
    channels: int,
    left: int,
    first: np.ndarray,
    weights: np.ndarray,
    begin: int,
    end: int,
    result: np.ndarray,
    out_channels: int,
) -> None:
    """Step 2: output pixels ``begin .. end`` from the columns that start with pixel `left`."""
    taps = weights.shape[1]
    pixel = channels * VECTOR_BYTES
    for x in range(begin, end):
        source = (first[x] - left) * pixel
        target = (x - begin) * out_channels * VECTOR_BYTES
        rest = channels
        # Three at a time: colours share the weights, and their sums do not wait for one another.
        while rest >= 3:
            place = source
            weight = spread(weights[x, 0])
            a = multiply(weight, load(columns, place))
            b = multiply(weight, load(columns, place + VECTOR_BYTES))
            c = multiply(weight, load(columns, place + 2 * VECTOR_BYTES))
            for k in range(1, taps):
                place += pixel
                weight = spread(weights[x, k])
                a = multiply_add(weight, load(columns, place), a)
                b = multiply_add(weight, load(columns, place + VECTOR_BYTES), b)
                c = multiply_add(weight, load(columns, place + 2 * VECTOR_BYTES), c)
            store(result, target, a)
            store(result, target + VECTOR_BYTES, b)
            store(result, target + 2 * VECTOR_BYTES, c)
            source += 3 * VECTOR_BYTES
            target += 3 * VECTOR_BYTES
            rest -= 3
        while rest > 0:
            place = source
            a = multiply(spread(weights[x, 0]), load(columns, place))
            for k in range(1, taps):
                place += pixel
                a = multiply_add(spread(weights[x, k]), load(columns, place), a)
            store(result, target, a)
            source += VECTOR_BYTES
            target += VECTOR_BYTES
            rest -= 1


@numba.njit(nogil=True, cache=True)
def _resample(
    source: Any,
    top: int,
    left: int,
    row_first: np.ndarray,
    row_weights: np.ndarray,
    column_first: np.ndarray,
    column_weights: np.ndarray,
    chunk: int,
    span: int,
    rounds: bool,
    low: np.float32,
    high: np.float32,
    normalizes: bool,
    means: np.ndarray,
    factors: np.ndarray,
    rounds_out: bool,
    out_low: np.float32,
    out_high: np.float32,
    out: Any,
    scratch: np.ndarray,
) -> None:
    channels = source.shape[2]
    height, width, out_channels = out.shape
    size = source.itemsize
    row_stride, pixel_stride, channel_stride = out.strides
    planar = pixel_stride == out.itemsize and out_channels > 1
    # What is large leaves for other readers; it need not push everything else out of the caches.
    past_caches = planar and normalizes and out.itemsize == VECTOR_BYTES // LANES
    past_caches = past_caches and out.size >= _LARGE
    past_caches = past_caches and (address(out) | row_stride | channel_stride) % CACHE_LINE == 0
    taps = column_weights.shape[1]
    squares = scratch[:_SQUARES]
    columns = scratch[_SQUARES : _SQUARES + LANES * span]
    result = scratch[_SQUARES + LANES * span :]
    for c in range(channels, out_channels):
        # Channels that the source does not have: constant, and the same for all rows.
        value = spread((np.float32(0) - means[c]) * factors[c])
        for x in range(min(chunk, width)):
            store(result, (x * out_channels + c) * VECTOR_BYTES, value)
    pixel = out_channels * VECTOR_BYTES
    for row in range(0, height, LANES):
        rows = min(LANES, height - row)
        for begin in range(0, width, chunk):
            end = min(begin + chunk, width)
            lowest = min(column_first[begin], column_first[end - 1])
            highest = max(column_first[begin], column_first[end - 1]) + taps
            _vertically(
                source,
                (lowest - left) * channels * size,
                (highest - lowest) * channels,
                row_first,
                row_weights,
                row,
                rows,
                top,
                squares,
                columns,
            )
            _horizontally(
                columns,
                channels,
                lowest,
                column_first,
                column_weights,
                begin,
                end,
                result,
                out_channels,
            )
            pixels = end - begin
            if rounds or normalizes or rounds_out:
                for c in range(channels):
                    mean, factor = spread(means[c]), spread(factors[c])
                    place = c * VECTOR_BYTES
                    for _ in range(pixels):
                        value = load(result, place)
                        if rounds:
                            value = round_even(value, low, high)
                        if normalizes:
                            value = multiply(subtract(value, mean), factor)
                        if rounds_out:
                            value = round_away(value, out_low, out_high)
                        store(result, place, value)
                        place += pixel
            target = row * row_stride + begin * pixel_stride
            if planar:
                for c in range(out_channels):
                    for x in range(0, pixels, LANES):
                        begin_at = x * pixel + c * VECTOR_BYTES
                        to = target + c * channel_stride + x * pixel_stride
                        if past_caches:
                            transpose_past_caches(
                                result, begin_at, pixel, out, to, row_stride, rows, pixels - x
                            )
                        else:
                            transpose(
                                result, begin_at, pixel, out, to, row_stride, rows, pixels - x
                            )
            else:
                elements = pixels * out_channels
                for e in range(0, elements, LANES):
                    transpose(
                        result,
                        e * VECTOR_BYTES,
                        VECTOR_BYTES,
                        out,
                        target + e * out.itemsize,
                        row_stride,
                        rows,
                        elements - e,
                    )
    if past_caches:
        publish()


def _array(dtype: Any, ndim: int, readonly: bool = False) -> Any:
    return types.Array(numba.from_dtype(np.dtype(dtype)), ndim, "A", readonly=readonly)


@cache
def _compiled(source: np.dtype, out: np.dtype) -> Any:
    """`_resample` for arrays of any strides; one signature for all of them, compiled once."""
    flat, table = types.float32[::1], types.float32[:, ::1]
    i, f, b = types.int64, types.float32, types.boolean
    signature = types.void(
        _array(source, 3, readonly=True),
        *(i, i),
        *(types.int64[::1], table, types.int64[::1], table),
        *(i, i),
        *(b, f, f),
        *(b, flat, flat),
        *(b, f, f),
        _array(out, 3),
        flat,
    )
    return numba.njit([signature], nogil=True, cache=True)(_resample.py_func)


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

    Parameters
    ----------
    source
        (H, W, C) pixels, uint8, int16, uint16 or float32: the part of the image that begins with
        row `top` and column `left` and holds all that `rows` and `columns` need. Rows may have
        any stride.
    rows, columns
        What each output row and column is made of.
    out
        (H, W, C) array to fill, either contiguous or a transposed view of a contiguous (C, H, W).
        It may have more channels than `source` where there is a `normalization`, which gets zeros
        for them.
    scratch
        Where temporary memory comes from.
    rounds_to
        The integer type that pixels are rounded to, halves to even; the type of `out`
        unless they are normalised afterwards.
    normalization
        Mean and factor of each channel of `out`: as `normalize_pixels` does, including how
        integers are rounded after it.
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
    chunk, span = width, needed
    if needed * channels > _CHUNK and width > LANES:
        chunk = max(1, width * _CHUNK // (needed * channels * LANES)) * LANES
        span = _widest_span(columns, chunk)
    # Columns are transposed in squares, which may reach beyond the last one.
    span_elements = -(-span * channels // LANES) * LANES
    memory = _SQUARES + LANES * (span_elements + (-(-chunk // LANES) + 1) * LANES * out_channels)
    low, high = (0.0, 0.0) if rounds_to is None else LIMITS[rounds_to]
    means, factors = (_ZERO, _ZERO) if normalization is None else normalization
    limits = LIMITS.get(out.dtype) if normalization is not None else None
    out_low, out_high = limits or (0.0, 0.0)
    stored_as = STORED_AS.get(out.dtype)
    if stored_as is not None:
        out = out.view(stored_as)
    _compiled(source.dtype, out.dtype)(
        source,
        top,
        left,
        rows.first,
        rows.weights,
        columns.first,
        columns.weights,
        chunk,
        span_elements,
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


def _widest_span(columns: Taps, chunk: int) -> int:
    """Source columns that the most demanding `chunk` of output columns needs."""
    begins = columns.first[::chunk]
    ends = columns.first[
        np.minimum(np.arange(chunk, chunk * (begins.size + 1), chunk) - 1, columns.first.size - 1)
    ]
    return int(np.abs(ends - begins).max()) + columns.weights.shape[1]


@numba.njit(nogil=True, cache=True)
def _blend(source: Any, first: int, weights: np.ndarray, out: np.ndarray) -> None:
    size, stride = source.itemsize, source.strides[0]
    count = out.size
    for begin in range(0, count, LANES):
        place = first * stride + begin * size
        left = count - begin
        if left >= LANES:
            total = multiply(spread(weights[0]), load(source, place))
            for k in range(1, weights.size):
                place += stride
                total = multiply_add(spread(weights[k]), load(source, place), total)
            store(out, begin * VECTOR_BYTES // LANES, total)
        else:
            for e in range(left):
                at = place + e * size
                number = weights[0] * load_number(source, at)
                for k in range(1, weights.size):
                    at += stride
                    number += weights[k] * load_number(source, at)
                out[begin + e] = number


@cache
def _compiled_blend(source: np.dtype) -> Any:
    flat = types.float32[::1]
    signature = types.void(_array(source, 2, readonly=True), types.int64, flat, flat)
    return numba.njit([signature], nogil=True, cache=True)(_blend.py_func)


def blend_slices(source: np.ndarray, first: int, weights: np.ndarray, out: np.ndarray) -> None:
    """Weighted sum of consecutive slices: the resampling of a volume along its depth.

    Parameters
    ----------
    source
        (D, N) array, one slice a row; the elements of a slice side by side.
    first
        The first slice of the sum.
    weights
        Weights of this slice and the next ones, float32.
    out
        N float32 numbers to fill.
    """
    _compiled_blend(source.dtype)(source, first, weights, out)
