"""Squares of a grid, set to zero."""

from __future__ import annotations

import numpy as np

from headrace.kernels.compilation import njit


@njit(nogil=True)
def mask_grid(
    pixels: np.ndarray,
    cosine: np.float32,
    sine: np.float32,
    shift_x: np.float32,
    shift_y: np.float32,
    ratio: np.float32,
) -> None:
    """Set the pixels in squares of a grid to zero.

    `pixels`: uint8 ``(height, width, bytes of a pixel)``, C-contiguous.
    """
    height, width, size = pixels.shape
    for y in range(height):
        row = np.float32(y)
        for x in range(width):
            column = np.float32(x)
            u = column * cosine - row * sine - shift_x
            v = column * sine + row * cosine - shift_y
            if u - np.floor(u) < ratio and v - np.floor(v) < ratio:
                for k in range(size):
                    pixels[y, x, k] = 0
