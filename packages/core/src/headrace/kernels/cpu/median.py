"""Medians in windows: by OpenCV where it has them, else by a loop."""

from __future__ import annotations

import numpy as np

from headrace.kernels.compilation import njit
from headrace.kernels.cpu.opencv import cv2
from headrace.kernels.cpu.planes import planes_of


def median_blur(
    image: np.ndarray, out: np.ndarray, window: tuple[int, int], *, planar: bool
) -> None:
    """Fill `out` with the median of the window, ``(height, width)``, around each pixel."""
    height, width = window
    square = height == width and image.dtype != np.int32
    for part, target in planes_of(image, out, planar=planar):
        if height == width == 1:
            np.copyto(target, part.reshape(target.shape))
        elif square and (height <= 5 or (image.dtype == np.uint8 and part.ndim == 2)):
            np.copyto(target, cv2().medianBlur(part, height).reshape(target.shape))
        elif square and image.dtype == np.uint8:
            for k in range(part.shape[2]):
                target[..., k] = cv2().medianBlur(np.ascontiguousarray(part[..., k]), height)
        else:
            shape = (*part.shape, 1)[:3]
            _fill(part.reshape(shape), height, width, target.reshape(shape))


@njit(nogil=True)
def _fill(image: np.ndarray, high: int, wide: int, out: np.ndarray) -> None:
    height, width, channels = image.shape
    found = np.empty(high * wide, image.dtype)
    for row in range(height):
        for column in range(width):
            for c in range(channels):
                count = 0
                for j in range(row - high // 2, row + high // 2 + 1):
                    y = min(max(j, 0), height - 1)
                    for i in range(column - wide // 2, column + wide // 2 + 1):
                        found[count] = image[y, min(max(i, 0), width - 1), c]
                        count += 1
                out[row, column, c] = _middle(found)


@njit(nogil=True)
def _middle(values: np.ndarray) -> object:
    """The median; elements are moved."""
    low, high, wanted = 0, len(values) - 1, len(values) // 2
    while low < high:
        pivot = values[(low + high) // 2]
        i, j = low, high
        while i <= j:
            while values[i] < pivot:
                i += 1
            while pivot < values[j]:
                j -= 1
            if i <= j:
                values[i], values[j] = values[j], values[i]
                i += 1
                j -= 1
        if wanted <= j:
            high = j
        elif wanted >= i:
            low = i
        else:
            break
    return values[wanted]
