"""Compiled loops of `Warp` for images of any type and number of channels."""

from __future__ import annotations

import numpy as np

from headrace.kernels.compilation import njit
from headrace.kernels.cpu.saturate import saturate

RESTART = 256
"""Elements of a row after which coordinates start afresh."""

SIDE_BY_SIDE = 4
"""Rows whose coordinates are advanced together: one row alone would wait for its additions."""

_FITS_INTO_CACHE_BYTES = 1 << 20


@njit(nogil=True)
def bring_near(source: np.ndarray, out: np.ndarray) -> None:
    """Read an image once, in order.

    A turned image is read across its rows, which no processor foresees: what lies in memory costs
    twice what lies in the cache. In order, memory is read ten times as fast, by vectors faster
    than by one byte of each cache line. Prefetches, which do not wait for memory, have half of
    the gain.
    """
    given, written = source.reshape(-1).view(np.uint8), out.reshape(-1).view(np.uint8)
    if given.size <= _FITS_INTO_CACHE_BYTES:
        found = np.uint8(0)
        for byte in given:
            found |= byte
        written[0] = found


@njit(nogil=True)
def locate_rows(
    matrix: np.ndarray, row: int, first: int, count: int, start: np.ndarray, at: np.ndarray
) -> None:
    """Coordinates of `count` neighbouring elements in each of `SIDE_BY_SIDE` rows.

    `start`: float32 ``(2, SIDE_BY_SIDE)``, where x and y start: kept from call to call. `at`:
    float32 ``(2, SIDE_BY_SIDE, RESTART)``: x and y, filled.
    """
    half = np.float32(0.5)
    for axis in range(2):
        step, starts, rows = matrix[axis, 0], start[axis], at[axis]
        for r in range(SIDE_BY_SIDE):
            if first:
                starts[r] += np.float32(RESTART) * step
            else:
                origin = step * half + matrix[axis, 2]
                starts[r] = matrix[axis, 1] * (np.float32(row + r) + half) + origin
        a, b, c, d = starts[0], starts[1], starts[2], starts[3]
        for i in range(count):
            rows[0, i] = a
            rows[1, i] = b
            rows[2, i] = c
            rows[3, i] = d
            a += step
            b += step
            c += step
            d += step


def linear(
    source: np.ndarray, out: np.ndarray, matrix: np.ndarray, clamp: bool, fill: np.float32
) -> None:
    """Interpolate between 4 neighbours.

    `source`, `out`: contiguous ``(H, W, C)``.
    """
    bring_near(source, out)
    height, width, channels = source.shape
    out_height, out_width, _ = out.shape
    elements, to = source.reshape(-1), out.reshape(-1)
    half = np.float32(0.5)
    dx, dy = matrix[0, 0], matrix[1, 0]
    origin_x, origin_y = dx * half + matrix[0, 2], dy * half + matrix[1, 2]
    place = 0
    for row in range(out_height):
        start_x = matrix[0, 1] * (np.float32(row) + half) + origin_x
        start_y = matrix[1, 1] * (np.float32(row) + half) + origin_y
        for first in range(0, out_width, RESTART):
            if first:
                start_x += np.float32(RESTART) * dx
                start_y += np.float32(RESTART) * dy
            x, y = start_x, start_y
            for _ in range(first, min(first + RESTART, out_width)):
                blend_pixel(elements, to, place, x, y, width, height, channels, clamp, fill)
                place += channels
                x += dx
                y += dy


@njit(nogil=True, forceinline=True)
def blend_pixel(
    elements: np.ndarray,
    to: np.ndarray,
    place: int,
    x: np.float32,
    y: np.float32,
    width: int,
    height: int,
    channels: int,
    clamp: bool,
    fill: np.float32,
) -> None:
    """One pixel of `linear`, to element number `place` of `to` and those after it."""
    x, y = x - np.float32(0.5), y - np.float32(0.5)
    floor_x, floor_y = np.floor(x), np.floor(y)
    right, low = x - floor_x, y - floor_y
    left = np.float32(1) - right
    x0, y0 = int(floor_x), int(floor_y)
    x1, y1 = x0 + 1, y0 + 1
    if x0 >= 0 and y0 >= 0 and x1 < width and y1 < height:
        top = (y0 * width + x0) * channels
        bottom = top + width * channels
        for c in range(channels):
            a = (
                np.float32(elements[np.uintp(top + c)]) * left
                + np.float32(elements[np.uintp(top + channels + c)]) * right
            )
            b = (
                np.float32(elements[np.uintp(bottom + c)]) * left
                + np.float32(elements[np.uintp(bottom + channels + c)]) * right
            )
            to[np.uintp(place + c)] = saturate(a + (b - a) * low, to)
        return
    if not clamp and (x1 < 0 or y1 < 0 or x0 >= width or y0 >= height):
        for c in range(channels):
            to[np.uintp(place + c)] = saturate(fill, to)
        return
    has_left, has_right = clamp or x0 >= 0, clamp or x1 < width
    has_top, has_bottom = clamp or y0 >= 0, clamp or y1 < height
    x0, x1 = min(max(x0, 0), width - 1), min(max(x1, 0), width - 1)
    y0, y1 = min(max(y0, 0), height - 1), min(max(y1, 0), height - 1)
    for c in range(channels):
        top_left = np.float32(elements[np.uintp((y0 * width + x0) * channels + c)])
        top_right = np.float32(elements[np.uintp((y0 * width + x1) * channels + c)])
        bottom_left = np.float32(elements[np.uintp((y1 * width + x0) * channels + c)])
        bottom_right = np.float32(elements[np.uintp((y1 * width + x1) * channels + c)])
        a = (top_left if has_top and has_left else fill) * left + (
            top_right if has_top and has_right else fill
        ) * right
        b = (bottom_left if has_bottom and has_left else fill) * left + (
            bottom_right if has_bottom and has_right else fill
        ) * right
        to[np.uintp(place + c)] = saturate(a + (b - a) * low, to)


def nearest(
    source: np.ndarray, out: np.ndarray, matrix: np.ndarray, clamp: bool, fill: float
) -> None:
    """Take the element that each point falls into.

    `source`, `out`: contiguous ``(H, W, C)`` of one type.
    """
    bring_near(source, out)
    height, width, channels = source.shape
    out_height, out_width, _ = out.shape
    elements, to = source.reshape(-1), out.reshape(-1)
    start = np.empty((2, SIDE_BY_SIDE), np.float32)
    at = np.empty((2, SIDE_BY_SIDE, RESTART), np.float32)
    pixels = np.empty(RESTART, np.int64)
    for row in range(0, out_height, SIDE_BY_SIDE):
        for first in range(0, out_width, RESTART):
            count = min(RESTART, out_width - first)
            locate_rows(matrix, row, first, count, start, at)
            for r in range(min(SIDE_BY_SIDE, out_height - row)):
                _locate_nearest(at[0, r], at[1, r], pixels, count, width, height, clamp)
                begin = ((row + r) * out_width + first) * channels
                _take(elements, to, begin, pixels, count, channels, fill)


@njit(nogil=True)
def _locate_nearest(
    x: np.ndarray,
    y: np.ndarray,
    pixels: np.ndarray,
    count: int,
    width: int,
    height: int,
    clamp: bool,
) -> None:
    """Find the pixel that contains each point; -1 outside."""
    zero = np.float32(0)
    last_x, last_y = np.float32(width - 1), np.float32(height - 1)
    for i in range(count):
        column, line = np.floor(x[i]), np.floor(y[i])
        inside_column, inside_line = min(max(column, zero), last_x), min(max(line, zero), last_y)
        pixel = np.int64(inside_line) * width + np.int64(inside_column)
        inside = clamp or (column == inside_column and line == inside_line)
        pixels[i] = pixel if inside else -1


@njit(nogil=True)
def _take(
    elements: np.ndarray,
    to: np.ndarray,
    begin: int,
    pixels: np.ndarray,
    count: int,
    channels: int,
    fill: float,
) -> None:
    if channels == 1:
        for i in range(count):
            pixel = pixels[i]
            to[begin + i] = fill if pixel < 0 else elements[np.uintp(pixel)]
        return
    if channels == 3:
        for i in range(count):
            pixel = pixels[i]
            if pixel < 0:
                to[begin] = to[begin + 1] = to[begin + 2] = fill
            else:
                to[begin] = elements[np.uintp(pixel * 3)]
                to[begin + 1] = elements[np.uintp(pixel * 3 + 1)]
                to[begin + 2] = elements[np.uintp(pixel * 3 + 2)]
            begin += 3
        return
    for i in range(count):
        pixel = pixels[i]
        for c in range(channels):
            to[begin + c] = fill if pixel < 0 else elements[np.uintp(pixel * channels + c)]
        begin += channels
