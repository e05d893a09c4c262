"""Pixels that are taken from elsewhere in their image."""

from __future__ import annotations

import numpy as np

from headrace.kernels.compilation import njit


@njit(nogil=True)
def displace(
    image: np.ndarray,
    x: np.ndarray,
    y: np.ndarray,
    linear: bool,
    fill: np.float32,
    out: np.ndarray,
) -> None:
    """Fill `out` with the pixels at other places of an image.

    `image`, `out`: ``(height, width, channels)``, uint8 or float32. `x`, `y`: float32 ``(height,
    width)``: where to take each pixel, in pixels from the upper left corner.
    """
    height, width, channels = image.shape
    for row in range(height):
        for column in range(width):
            u, v = x[row, column], y[row, column]
            if linear:
                u -= np.float32(0.5)
                v -= np.float32(0.5)
            left, top = np.floor(u), np.floor(v)
            p, q = u - left, v - top
            for c in range(channels):
                total = np.float32(0)
                for k in range(4 if linear else 1):
                    a, b = left + np.float32(k % 2), top + np.float32(k // 2)
                    value = fill
                    if 0 <= a < width and 0 <= b < height:
                        value = np.float32(image[np.int64(b), np.int64(a), c])
                    if linear:
                        value *= p if k % 2 else np.float32(1) - p
                        value *= q if k // 2 else np.float32(1) - q
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
