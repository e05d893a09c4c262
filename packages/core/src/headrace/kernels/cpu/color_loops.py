"""Compiled loops of linear functions of pixels."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba.core import types
from numba.extending import overload

from headrace.kernels.compilation import njit
from headrace.kernels.cpu.half import narrow
from headrace.kernels.cpu.locked_cache import locked_cache
from headrace.kernels.cpu.pointers import elements
from headrace.kernels.cpu.saturate import saturate
from headrace.kernels.cpu.simd import (
    LANES,
    add,
    load,
    load_channel,
    load_number,
    multiply,
    prefetch,
    round_away,
    spread,
    store,
    store_pixels,
    subtract,
)

_BYTES_AHEAD = 1024


def _element(value: Any, like: Any) -> Any:
    """`value` in the element type of `like`, where uint16 is the bits of a float16."""
    raise NotImplementedError("for compiled code only")


@overload(_element)
def _element_overload(value: Any, like: Any) -> Any:
    return _narrowed if like.dtype == types.uint16 else _saturated


def _narrowed(value: Any, like: Any) -> Any:
    return narrow(value)


def _saturated(value: Any, like: Any) -> Any:
    return saturate(value, like)


@njit(nogil=True)
def _sum(a: Any, b: Any, c: Any, numbers: np.ndarray, row: int) -> Any:
    """One channel of sixteen pixels."""
    total = add(multiply(a, spread(numbers[3 * row])), multiply(b, spread(numbers[3 * row + 1])))
    total = add(total, multiply(c, spread(numbers[3 * row + 2])))
    return add(total, spread(numbers[9 + row]))


@njit(nogil=True)
def _row(
    source: Any,
    place: int,
    numbers: np.ndarray,
    shifted: bool,
    reverses: bool,
    rounds: bool,
    low: np.float32,
    high: np.float32,
    out: Any,
    target: int,
) -> None:
    """One row of at least 16 pixels that lie side by side."""
    width, channels, step = source.shape[1], source.shape[2], source.strides[1]
    made = out.shape[2]
    pixel = made * out.itemsize
    for x in range(0, width, LANES):
        # The last pixels are done together with some before them, again.
        x = min(x, width - LANES)
        to = target + x * pixel
        backwards = step < 0
        at = place + (x + LANES - 1 if backwards else x) * step
        if channels == 1:
            a = load_channel(source, at, 1, 0, True) if backwards else load(source, at)
            b = c = a
        elif backwards:
            a = load_channel(source, at, 3, 0, True)
            b = load_channel(source, at, 3, 1, True)
            c = load_channel(source, at, 3, 2, True)
        else:
            prefetch(source, at + _BYTES_AHEAD)
            a = load_channel(source, at, 3, 0, False)
            b = load_channel(source, at, 3, 1, False)
            c = load_channel(source, at, 3, 2, False)
        if reverses:
            a, c = c, a
        if shifted:
            a, b = subtract(a, spread(numbers[12])), subtract(b, spread(numbers[13]))
            c = subtract(c, spread(numbers[14]))
        p = _sum(a, b, c, numbers, 0)
        if rounds:
            p = round_away(p, low, high)
        if made == 1:
            store(out, to, p)
            continue
        q, r = _sum(a, b, c, numbers, 1), _sum(a, b, c, numbers, 2)
        if rounds:
            q, r = round_away(q, low, high), round_away(r, low, high)
        store_pixels(out, to, p, q, r)


@njit(nogil=True)
def _single(
    source: Any, place: int, numbers: np.ndarray, reverses: bool, out: Any, y: int, x: int
) -> None:
    """One pixel."""
    channel = source.strides[2] if source.shape[2] > 1 else 0
    if reverses:
        place, channel = place + 2 * channel, -channel
    a = load_number(source, place) - numbers[12]
    b = load_number(source, place + channel) - numbers[13]
    c = load_number(source, place + 2 * channel) - numbers[14]
    for k in range(out.shape[2]):
        total = (a * numbers[3 * k] + b * numbers[3 * k + 1]) + c * numbers[3 * k + 2]
        out[y, x, k] = _element(total + numbers[9 + k], out)


@njit(nogil=True)
def _transform(
    source: Any,
    numbers: np.ndarray,
    shifted: bool,
    reverses: bool,
    low: np.float32,
    high: np.float32,
    out: Any,
) -> None:
    height, width, channels = source.shape
    row, pixel, channel = source.strides
    together = abs(pixel) == channels * source.itemsize
    together = together and (channels == 1 or channel == source.itemsize)
    out_row = width * out.shape[2] * out.itemsize
    for y in range(height):
        if together and width >= LANES:
            place, target = y * row, y * out_row
            rounds = high > low
            _row(source, place, numbers, shifted, reverses, rounds, low, high, out, target)
            continue
        for x in range(width):
            _single(source, y * row + x * pixel, numbers, reverses, out, y, x)


def _transform_rows(
    sources: np.ndarray,
    sizes: np.ndarray,
    like: np.ndarray,
    numbers: np.ndarray,
    low: np.float32,
    high: np.float32,
    targets: np.ndarray,
    out: np.ndarray,
) -> None:
    for k in range(len(sources)):
        shape = (1, sizes[k] // 3, 3)
        source = numba.carray(elements(sources[k], like), shape)
        made = numba.carray(elements(targets[k], out), shape)
        _transform(source, numbers[k], False, False, low, high, made)


@locked_cache
def transform_rows(source: np.dtype, out: np.dtype) -> Any:
    """The loop over several contiguous samples of three channels, for these element types.

    It takes ``(sources, sizes, like, numbers, low, high, targets, out)``: addresses, and how many
    elements each sample has; empty arrays of both types; of each sample the numbers that
    `transform` takes, of which nothing is subtracted first.
    """
    f, addresses = types.float32, types.uint64[::1]
    signature = types.void(
        *(addresses, types.int64[::1], numba.from_dtype(source)[::1], f[:, ::1], f, f),
        *(addresses, numba.from_dtype(out)[::1]),
    )
    return njit(signature=signature, nogil=True)(_transform_rows)


@locked_cache
def transform(source: np.dtype, out: np.dtype) -> Any:
    """The loop for these element types.

    It takes ``(source, numbers, shifted, reverses, low, high, out)``: `source` is ``(H, W, 1 or
    3)`` of any strides, `out` contiguous with 3 channels or 1; `shifted` says that something is
    subtracted first, `reverses` that channels come in the opposite order; `low` and `high` are the
    limits of the type of `out`, equal where it has none. A uint16 `out` is the bits of float16.
    """
    f = types.float32
    signature = types.void(
        types.Array(numba.from_dtype(source), 3, "A", readonly=True),
        types.Array(f, 1, "C", readonly=True),
        *(types.boolean, types.boolean, f, f),
        types.Array(numba.from_dtype(out), 3, "C"),
    )
    return njit(signature=signature, nogil=True)(_transform.py_func)
