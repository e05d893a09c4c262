"""Pixels that are taken from elsewhere in their image."""

from __future__ import annotations

import numpy as np

from headrace.kernels.compilation import njit


@njit(nogil=True, error_model="numpy")
def sphere(
    image: np.ndarray, linear: bool, fill: float, places: np.ndarray, out: np.ndarray
) -> None:
    """Fill `out` with the pixels of an image as if on a sphere.

    `image`: ``(height, width, channels)``, uint8 or float32. `linear`: whether values are
    interpolated; then `out` is float32, else of the image's type. `fill`: a value of that type, for
    pixels from outside. `places`: float32 ``(2, width)``, scratch memory.
    """
    height, width = image.shape[:2]
    half = np.float32(0.5)
    radius = np.float32(max(width, height) // 2)
    middle_x, middle_y = np.float32(width / 2), np.float32(height / 2)
    x, y = places[0], places[1]
    for row in range(height):
        dy = np.float32(row) + half - middle_y
        for column in range(width):
            dx = np.float32(np.int32(column)) + half - middle_x
            scale = np.sqrt(dx * dx + dy * dy) / radius
            x[column] = middle_x + dx * scale
            y[column] = middle_y + dy * scale
        _take_row(image, x, y, linear, fill, row, out)


@njit(nogil=True)
def water(
    image: np.ndarray,
    along_x: np.ndarray,
    along_y: np.ndarray,
    linear: bool,
    fill: float,
    places: np.ndarray,
    out: np.ndarray,
) -> None:
    """The same with pixels that a wave has moved.

    `along_x`, float32 ``(height,)``: how far those of each row come from; `along_y`, ``(width,)``:
    how far those of each column.
    """
    height, width = image.shape[:2]
    x, y = places[0], places[1]
    for row in range(height):
        moved = along_x[row]
        for column in range(width):
            x[column] = np.float32(np.int32(column)) + moved
            y[column] = np.float32(row) + along_y[column]
        _take_row(image, x, y, linear, fill, row, out)


@njit(nogil=True)
def _take_row(
    image: np.ndarray,
    x: np.ndarray,
    y: np.ndarray,
    linear: bool,
    fill: float,
    row: int,
    out: np.ndarray,
) -> None:
    """Fill a row of `out` with the pixels at ``(x, y)``, from the upper left corner."""
    height, width, channels = image.shape
    one, half = np.float32(1), np.float32(0.5)
    if not linear:
        for column in range(width):
            u, v = x[column], y[column]
            if 0 <= u < width and 0 <= v < height:
                a, b = np.int64(u), np.int64(v)
                for c in range(channels):
                    out[row, column, c] = image[b, a, c]
            else:
                for c in range(channels):
                    out[row, column, c] = fill
        return
    for column in range(width):
        u, v = x[column] - half, y[column] - half
        left, top = np.floor(u), np.floor(v)
        p, q = u - left, v - top
        if 0 <= left < width - 1 and 0 <= top < height - 1:
            a, b = np.int64(left), np.int64(top)
            for c in range(channels):
                total = np.float32(0) + np.float32(image[b, a, c]) * (one - p) * (one - q)
                total += np.float32(image[b, a + 1, c]) * p * (one - q)
                total += np.float32(image[b + 1, a, c]) * (one - p) * q
                total += np.float32(image[b + 1, a + 1, c]) * p * q
                out[row, column, c] = total
            continue
        for c in range(channels):
            total = np.float32(0)
            for k in range(4):
                m, n = left + np.float32(k % 2), top + np.float32(k // 2)
                value = np.float32(fill)
                if 0 <= m < width and 0 <= n < height:
                    value = np.float32(image[np.int64(n), np.int64(m), c])
                value *= p if k % 2 else one - p
                value *= q if k // 2 else one - q
                total += value
            out[row, column, c] = total


@njit(nogil=True)
def jitter(image: np.ndarray, units: np.ndarray, places: int, out: np.ndarray) -> None:
    """Fill `out` with pixels from near by: `units`, from 0 to 1, draw columns, then rows."""
    height, width, channels = image.shape
    first, size = places // 2, height * width
    for row in range(height):
        for column in range(width):
            pixel = row * width + column
            x = column - first + int(units[pixel] * np.float32(places))
            y = row - first + int(units[size + pixel] * np.float32(places))
            x, y = min(max(x, 0), width - 1), min(max(y, 0), height - 1)
            for c in range(channels):
                out[row, column, c] = image[y, x, c]
