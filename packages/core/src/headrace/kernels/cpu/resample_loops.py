"""The compiled loops of `headrace.kernels.cpu.resample`, which says how they work together."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba.core import types

from headrace.kernels.compilation import njit
from headrace.kernels.cpu.copy_rows import copy_bytes
from headrace.kernels.cpu.locked_cache import locked_cache
from headrace.kernels.cpu.simd import (
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
)

_WIDE = 4
"""Vectors of source rows that are summed at a time."""
_AHEAD = 4 * _WIDE
"""Vectors between what is summed and what is brought into the cache for later."""
_LARGE = 1 << 16
"""Elements from which on an output goes past the caches."""
_CHUNK = 6144
"""Elements of a source row that step 1 leaves to step 2 at a time: 384 KiB of scratch memory."""
_SQUARE_BYTES = LANES * VECTOR_BYTES
SQUARES = _WIDE * LANES * LANES
"""Numbers of scratch memory that step 1 needs before its result."""


@njit(nogil=True)
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
                squares,
                v * _SQUARE_BYTES,
                VECTOR_BYTES,
                columns,
                to,
                VECTOR_BYTES,
                LANES,
                LANES,
                False,
            )
        begin += vectors * LANES


@njit(nogil=True)
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
    """Step 2: output pixels ``begin .. end`` from the columns that start with pixel `left`; of
    channels, only as many as the output has.
    """
    taps = weights.shape[1]
    pixel = channels * VECTOR_BYTES
    for x in range(begin, end):
        source = (first[x] - left) * pixel
        target = (x - begin) * out_channels * VECTOR_BYTES
        rest = min(channels, out_channels)
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


@njit(nogil=True)
def _span(first: np.ndarray, taps: int, channels: int) -> tuple[int, int]:
    """Number of output columns made at a time, and of the source elements they need."""
    width = first.size
    chunk, span = width, abs(first[width - 1] - first[0])
    needed = (span + taps) * channels
    if needed > _CHUNK and width > LANES:
        chunk = max(1, width * _CHUNK // (needed * LANES)) * LANES
        span = 0
        for begin in range(0, width, chunk):
            end = min(begin + chunk, width) - 1
            span = max(span, abs(first[end] - first[begin]))
    # Columns are transposed in squares, which may reach beyond the last one.
    return chunk, -(-(span + taps) * channels // LANES) * LANES


@njit(nogil=True)
def _picks(
    source: Any,
    row_weights: np.ndarray,
    column_weights: np.ndarray,
    rounds: bool,
    low: np.float32,
    high: np.float32,
    converts: bool,
    out: Any,
) -> bool:
    """Return True if output pixels are those of the source as they are, without arithmetic."""
    if row_weights.shape[1] != 1 or column_weights.shape[1] != 1 or converts:
        return False
    if source.itemsize != out.itemsize or source.shape[2] < out.shape[2]:
        return False
    if out.itemsize == 2 or (out.itemsize == 1 and rounds and (low != 0 or high != 255)):
        return False
    if out.itemsize == 4 and rounds:
        return False
    return _are_ones(row_weights) and _are_ones(column_weights)


@njit(nogil=True)
def _are_ones(weights: np.ndarray) -> bool:
    least, most = weights[0, 0], weights[0, 0]
    for k in range(len(weights)):
        least, most = min(least, weights[k, 0]), max(most, weights[k, 0])
    return least == 1 and most == 1


_PIXEL, _WORD = 3, 4
"""Bytes of a pixel of three, and of what is moved at once."""


@njit(nogil=True)
def _pick(
    source: Any,
    top: int,
    left: int,
    row_first: np.ndarray,
    column_first: np.ndarray,
    out: Any,
) -> None:
    """Fill `out` with the pixels of the source that `row_first` and `column_first` say."""
    height, width, channels = out.shape
    last = source.shape[0] - 1
    in_words = source.strides[1] == _PIXEL and out.strides[1] == _PIXEL and channels == _PIXEL
    in_words = in_words and source.strides[2] == 1 and out.strides[2] == 1
    for row in range(height):
        y = row_first[row] - top
        begin = 0
        if in_words and y < last:  # the byte after a pixel may be read, and is written once more
            given = np.uint64(address(source) + y * source.strides[0])
            taken = np.uint64(address(out) + row * out.strides[0])
            begin = width - 1
            for x in range(begin):
                at = given + np.uint64((column_first[x] - left) * _PIXEL)
                copy_bytes(taken + np.uint64(x * _PIXEL), at, _WORD)
        for x in range(begin, width):
            at_x = column_first[x] - left
            for c in range(channels):
                out[row, x, c] = source[np.uintp(y), np.uintp(at_x), np.uintp(c)]


@njit(nogil=True)
def resample(
    source: Any,
    top: int,
    left: int,
    row_first: np.ndarray,
    row_weights: np.ndarray,
    column_first: np.ndarray,
    column_weights: np.ndarray,
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
    """All steps; arguments are as `headrace.kernels.cpu.resample.resample_image` makes them."""
    converts = normalizes or rounds_out
    if _picks(source, row_weights, column_weights, rounds, low, high, converts, out):
        _pick(source, top, left, row_first, column_first, out)
        return
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
    chunk, span = _span(column_first, taps, channels)
    squares = scratch[:SQUARES]
    columns = scratch[SQUARES : SQUARES + LANES * span]
    result = scratch[SQUARES + LANES * span :]
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
                for c in range(min(channels, out_channels)):
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
                        transpose(
                            *(result, begin_at, pixel, out, to, row_stride, rows, pixels - x),
                            past_caches,
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
                        False,
                    )
    if past_caches:
        publish()


@njit(nogil=True)
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


def _array(dtype: Any, ndim: int, readonly: bool = False) -> Any:
    return types.Array(numba.from_dtype(np.dtype(dtype)), ndim, "A", readonly=readonly)


@locked_cache
def compiled_resample(source: np.dtype, out: np.dtype) -> Any:
    """`resample` for arrays of any strides; one signature for all of them, compiled once."""
    flat, table = types.float32[::1], types.float32[:, ::1]
    i, f, b = types.int64, types.float32, types.boolean
    signature = types.void(
        _array(source, 3, readonly=True),
        *(i, i),
        *(types.int64[::1], table, types.int64[::1], table),
        *(b, f, f),
        *(b, flat, flat),
        *(b, f, f),
        _array(out, 3),
        flat,
    )
    return njit(signature=signature, nogil=True)(resample.py_func)


@locked_cache
def compiled_blend(source: np.dtype) -> Any:
    """`_blend` for slices of any stride."""
    flat = types.float32[::1]
    signature = types.void(_array(source, 2, readonly=True), types.int64, flat, flat)
    return njit(signature=signature, nogil=True)(_blend.py_func)
