"""``(pixel - mean) * factor`` on the way from one layout and element type to another."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba.core import types

from headrace.kernels.compilation import njit
from headrace.kernels.cpu import half
from headrace.kernels.cpu.locked_cache import locked_cache
from headrace.kernels.cpu.simd import (
    LANES,
    VECTOR_BYTES,
    load,
    load_channel,
    load_number,
    load_pixels,
    multiply,
    prefetch,
    round_away,
    spread,
    store,
    subtract,
)

LIMITS: dict[np.dtype[Any], tuple[float, float]] = {
    np.dtype(np.uint8): (0.0, 255.0),
    np.dtype(np.int8): (-128.0, 127.0),
    np.dtype(np.uint16): (0.0, 65535.0),
    np.dtype(np.int16): (-32768.0, 32767.0),
}
"""Smallest and largest number of the integer types that vectors are stored as."""

STORED_AS: dict[np.dtype[Any], np.dtype[Any]] = {
    np.dtype(np.int8): np.dtype(np.uint8),
    np.dtype(np.uint16): np.dtype(np.int16),
    np.dtype(np.float16): np.dtype(np.uint16),
}
"""Types that kernels see as another one of the same size; see `headrace.kernels.cpu.simd`."""


_ROWS_AHEAD = 2


@njit(nogil=True)
def _finished(
    value: Any, mean: Any, factor: Any, rounds: bool, low: np.float32, high: np.float32
) -> Any:
    value = multiply(subtract(value, mean), factor)
    return round_away(value, low, high) if rounds else value


@njit(nogil=True)
def _planes_of_row(
    source: Any,
    place: int,
    mean: np.ndarray,
    factor: np.ndarray,
    rounds: bool,
    low: np.float32,
    high: np.float32,
    out: Any,
    target: int,
) -> None:
    """One row of at least 16 pixels to one plane a channel."""
    width, channels = source.shape[1], source.shape[2]
    step = source.strides[1]
    plane = out.strides[2]
    backwards = step < 0
    ahead = _ROWS_AHEAD * source.strides[0]
    for x in range(0, width, LANES):
        # The last pixels are done together with some before them, again.
        x = min(x, width - LANES)
        at = place + (x + LANES - 1 if backwards else x) * step
        to = target + x * out.itemsize
        prefetch(source, at + ahead)
        if channels == 1:
            if backwards:
                a = load_channel(source, at, 1, 0, True)
            else:
                a = load_channel(source, at, 1, 0, False)
            a = _finished(a, spread(mean[0]), spread(factor[0]), rounds, low, high)
            store(out, to, a)
        elif channels == 3:
            if backwards:
                a = load_channel(source, at, 3, 0, True)
                b = load_channel(source, at, 3, 1, True)
                c = load_channel(source, at, 3, 2, True)
            else:
                a = load_channel(source, at, 3, 0, False)
                b = load_channel(source, at, 3, 1, False)
                c = load_channel(source, at, 3, 2, False)
            a = _finished(a, spread(mean[0]), spread(factor[0]), rounds, low, high)
            b = _finished(b, spread(mean[1]), spread(factor[1]), rounds, low, high)
            c = _finished(c, spread(mean[2]), spread(factor[2]), rounds, low, high)
            store(out, to, a)
            store(out, to + plane, b)
            store(out, to + 2 * plane, c)


@njit(nogil=True)
def _pixels_of_row(
    source: Any,
    place: int,
    means: np.ndarray,
    factors: np.ndarray,
    rounds: bool,
    low: np.float32,
    high: np.float32,
    out: Any,
    target: int,
) -> int:
    """One row to pixels; the number of pixels that were done, a multiple of 16."""
    width, channels = source.shape[1], source.shape[2]
    out_channels = out.shape[2]
    step, size = source.strides[1], out.itemsize
    backwards = step < 0
    ahead = _ROWS_AHEAD * source.strides[0]
    whole = width // LANES * LANES
    if out_channels == channels and not backwards:
        part = 0
        for begin in range(0, whole * channels, LANES):
            at = place + begin * source.itemsize
            prefetch(source, at + ahead)
            value = load(source, at)
            mean, factor = load(means, part * VECTOR_BYTES), load(factors, part * VECTOR_BYTES)
            value = _finished(value, mean, factor, rounds, low, high)
            store(out, target + begin * size, value)
            part += 1
            if part == channels:
                part = 0
        return whole
    if channels != 3 or out_channels > 4:
        return 0
    part_bytes = LANES * size
    for x in range(0, whole, LANES):
        at = place + (x + LANES - 1 if backwards else x) * step
        to = target + x * out_channels * size
        prefetch(source, at + ahead)
        if out_channels == 3:
            a = load_pixels(source, at, 3, 3, 0, True)
            b = load_pixels(source, at, 3, 3, 1, True)
            c = load_pixels(source, at, 3, 3, 2, True)
            d = c
        elif backwards:
            a = load_pixels(source, at, 3, 4, 0, True)
            b = load_pixels(source, at, 3, 4, 1, True)
            c = load_pixels(source, at, 3, 4, 2, True)
            d = load_pixels(source, at, 3, 4, 3, True)
        else:
            a = load_pixels(source, at, 3, 4, 0, False)
            b = load_pixels(source, at, 3, 4, 1, False)
            c = load_pixels(source, at, 3, 4, 2, False)
            d = load_pixels(source, at, 3, 4, 3, False)
        a = _finished(a, load(means, 0), load(factors, 0), rounds, low, high)
        mean, factor = load(means, VECTOR_BYTES), load(factors, VECTOR_BYTES)
        b = _finished(b, mean, factor, rounds, low, high)
        mean, factor = load(means, 2 * VECTOR_BYTES), load(factors, 2 * VECTOR_BYTES)
        c = _finished(c, mean, factor, rounds, low, high)
        store(out, to, a)
        store(out, to + part_bytes, b)
        store(out, to + 2 * part_bytes, c)
        if out_channels == 4:
            mean, factor = load(means, 3 * VECTOR_BYTES), load(factors, 3 * VECTOR_BYTES)
            store(out, to + 3 * part_bytes, _finished(d, mean, factor, rounds, low, high))
    return whole


@njit(nogil=True)
def _normalize(
    source: Any,
    means: np.ndarray,
    factors: np.ndarray,
    rounds: bool,
    low: np.float32,
    high: np.float32,
    out: Any,
) -> None:
    height, width, channels = source.shape
    out_channels = out.shape[2]
    row, pixel, channel = source.strides
    out_row, out_pixel, out_channel = out.strides
    size = out.itemsize
    together = abs(pixel) == channels * source.itemsize and (
        channels == 1 or channel == source.itemsize
    )
    planar = together and width >= LANES and out_pixel == size and out_channels == channels
    planar = planar and (channels == 1 or channels == 3)
    pixels = together and out_pixel == out_channels * size and out_channel == size
    for y in range(height):
        place, target = y * row, y * out_row
        done = 0
        if planar:
            _planes_of_row(source, place, means, factors, rounds, low, high, out, target)
            done = width
        elif pixels:
            done = _pixels_of_row(source, place, means, factors, rounds, low, high, out, target)
        for x in range(done, width):
            for c in range(out_channels):
                value = np.float32(0)
                if c < channels:
                    value = load_number(source, place + x * pixel + c * channel)
                value = (value - means[c]) * factors[c]
                if rounds:
                    value = round_away(value, low, high)
                store(out, target + x * out_pixel + c * out_channel, value)


@locked_cache
def _compiled(source: np.dtype, out: np.dtype) -> Any:
    """`_normalize` for arrays of any strides; one signature for all of them, compiled once."""
    flat, f = types.float32[::1], types.float32
    signature = types.void(
        types.Array(numba.from_dtype(source), 3, "A", readonly=True),
        *(flat, flat, types.boolean, f, f),
        types.Array(numba.from_dtype(out), 3, "A"),
    )
    return njit(signature=signature, nogil=True)(_normalize.py_func)


def pattern(per_channel: np.ndarray) -> np.ndarray:
    """Sixteen pixels' worth of a value per channel, as `normalize_pixels` takes it."""
    return np.tile(np.asarray(per_channel, np.float32), LANES)


def normalize_pixels(
    source: np.ndarray, means: np.ndarray, factors: np.ndarray, out: np.ndarray
) -> None:
    """Write ``(source - mean) * factor`` to `out`.

    Fast where the pixels of a row of `source` lie side by side, in either direction, and those of
    `out` do too or make up planes; right for any strides.
    """
    if not source.size:
        return
    if source.dtype == np.float16:
        source = source.astype(np.float32)
    elif source.itemsize > 1 and not source.flags.aligned:
        source = source.copy()
    limits = LIMITS.get(out.dtype)
    low, high = limits or (0.0, 0.0)
    if out.dtype == np.float16 and not half.available():
        wide = np.empty(out.shape, np.float32)
        normalize_pixels(source, means, factors, wide)
        out[...] = wide
        return
    stored_as = STORED_AS.get(out.dtype)
    if stored_as is not None:
        out = out.view(stored_as)
    _compiled(source.dtype, out.dtype)(source, means, factors, limits is not None, low, high, out)
