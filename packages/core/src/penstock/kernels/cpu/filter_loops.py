"""Compiled loops of separable filters with symmetric windows."""

from __future__ import annotations

import numba
import numpy as np

from penstock.kernels.cpu.saturate import saturate

_OPTIONS = {"nogil": True, "cache": True, "error_model": "numpy", "fastmath": {"contract"}}
# Products and sums may be fused; sums keep their order.


@numba.njit(**_OPTIONS)
def filter_planes(
    source: np.ndarray,
    stride: int,
    rows: np.ndarray,
    row_window: np.ndarray,
    columns: np.ndarray,
    column_window: np.ndarray,
    channels: int,
    out: np.ndarray,
) -> None:
    """Filter planes along columns and rows of pixels.

    Parameters
    ----------
    source
        Flat. Row ``r`` of all planes' rows begins at element ``r * stride``.
    rows, columns
        int64, for each window of an extent: which row (column) stands at positions from
        ``-radius`` to ``extent + radius - 1``.
    row_window, column_window
        float32: the centre weight, then those at distances 1 to radius, down (across).
    channels
        Elements of a pixel.
    out
        ``(planes, height, width * channels)``, contiguous.
    """
    planes, height, width = out.shape
    reach, radius = row_window.size - 1, column_window.size - 1
    margin = radius * channels
    padded = np.empty(width + 2 * margin, np.float32)
    total = np.empty(width, np.float32)
    for plane in range(planes):
        for y in range(height):
            line = padded[margin : margin + width]
            first = plane * height
            at = (first + rows[y + reach]) * stride
            _weigh(source[at : at + width], row_window[0], line)
            for k in range(1, reach + 1):
                above = (first + rows[y + reach - k]) * stride
                below = (first + rows[y + reach + k]) * stride
                _add_pair(
                    source[above : above + width],
                    source[below : below + width],
                    row_window[k],
                    line,
                )
            for i in range(radius):
                for c in range(channels):
                    padded[i * channels + c] = line[columns[i] * channels + c]
                    end = width // channels + radius + i
                    padded[end * channels + c] = line[columns[end] * channels + c]
            _weigh(line, column_window[0], total)
            for k in range(1, radius + 1):
                left, right = margin - k * channels, margin + k * channels
                _add_pair(
                    padded[left : left + width],
                    padded[right : right + width],
                    column_window[k],
                    total,
                )
            target = out[plane, y]
            for i in range(width):
                target[i] = saturate(total[i], out)


@numba.njit(**_OPTIONS)
def _weigh(source: np.ndarray, weight: np.float32, total: np.ndarray) -> None:
    for i in range(total.size):
        total[i] = weight * np.float32(source[i])


@numba.njit(**_OPTIONS)
def _add_pair(before: np.ndarray, after: np.ndarray, weight: np.float32, total: np.ndarray) -> None:
    for i in range(total.size):
        total[i] += weight * (np.float32(before[i]) + np.float32(after[i]))
