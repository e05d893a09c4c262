"""Equalization of histograms."""

from __future__ import annotations

import numpy as np

from headrace.kernels.compilation import njit

_LEVELS = 256


@njit(nogil=True)
def _fill_table(histogram: np.ndarray, pixels: int, table: np.ndarray) -> None:
    """Compute the new value of each level, in float32 and halves to even, as OpenCV does."""
    lowest = 0
    while histogram[lowest] == 0:
        lowest += 1
    if histogram[lowest] == pixels:
        table[lowest] = lowest
        return
    scale = np.float32(_LEVELS - 1) / np.float32(pixels - histogram[lowest])
    table[lowest] = 0
    darker = 0
    for level in range(lowest + 1, _LEVELS):
        darker += histogram[level]
        table[level] = np.uint8(np.rint(np.float32(darker) * scale))


@njit(nogil=True)
def equalize(source: np.ndarray, out: np.ndarray, pixels: int, channels: int) -> None:
    """Fill `out` with the equalized channels of some images.

    `source`, `out`: uint8, contiguous and flat: images of `pixels` times `channels` levels.
    """
    size = pixels * channels
    # Neighbours often have the same level: their counts are not to wait for each other.
    copies = 4 if channels == 1 else 2 if channels == 3 else 1
    histograms = np.empty((channels * copies, _LEVELS), np.int64)
    tables = np.empty((channels, _LEVELS), np.uint8)
    for start in range(0, source.size, size):
        taken, given = source[start : start + size], out[start : start + size]
        histograms[:] = 0
        if channels == 3:
            red, green, blue = histograms[0], histograms[1], histograms[2]
            red_too, green_too, blue_too = histograms[3], histograms[4], histograms[5]
            for i in range(0, size - 5, 6):
                red[taken[np.uintp(i)]] += 1
                green[taken[np.uintp(i + 1)]] += 1
                blue[taken[np.uintp(i + 2)]] += 1
                red_too[taken[np.uintp(i + 3)]] += 1
                green_too[taken[np.uintp(i + 4)]] += 1
                blue_too[taken[np.uintp(i + 5)]] += 1
            if size % 6:
                red[taken[size - 3]] += 1
                green[taken[size - 2]] += 1
                blue[taken[size - 1]] += 1
        else:
            step = channels * copies
            for i in range(0, size - step + 1, step):
                for k in range(step):
                    histograms[np.uintp(k), taken[np.uintp(i + k)]] += 1
            for i in range(size - size % step, size):
                histograms[np.uintp(i % step), taken[np.uintp(i)]] += 1
        for channel in range(channels):
            for k in range(1, copies):
                histograms[channel] += histograms[channel + k * channels]
            _fill_table(histograms[channel], pixels, tables[channel])
        if channels == 3:
            red_to, green_to, blue_to = tables[0], tables[1], tables[2]
            for i in range(0, size, 3):
                given[np.uintp(i)] = red_to[taken[np.uintp(i)]]
                given[np.uintp(i + 1)] = green_to[taken[np.uintp(i + 1)]]
                given[np.uintp(i + 2)] = blue_to[taken[np.uintp(i + 2)]]
        else:
            for i in range(0, size, channels):
                for k in range(channels):
                    given[np.uintp(i + k)] = tables[np.uintp(k), taken[np.uintp(i + k)]]
