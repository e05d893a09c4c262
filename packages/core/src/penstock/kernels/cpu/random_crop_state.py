"""Windows of random crops out of the state of a generator: DALI's, number by number.

The key of the operator's generator is mixed with a constant, which DALI's published source names,
and a sample takes one word after the other; the rest was found by comparison with DALI's windows.
Each attempt takes one for the area and one for the aspect ratio; row and column of the window that
fits take at least one each. All arithmetic is float32.
"""

from __future__ import annotations

import math

import numpy as np

from penstock.kernels.compilation import njit
from penstock.kernels.cpu.philox_draws import SAMPLE_STRIDE, integer_below, single_unit

_KEY = np.uint64(0x12345678ABCDEFE)
_ONE = np.uint64(1)
_BELOW_ONE = np.nextafter(np.float32(1), np.float32(0))


@njit(nogil=True, error_model="numpy")
def crop_windows(
    windows: np.ndarray,
    extents: np.ndarray,
    area: np.ndarray,
    aspect_ratio: np.ndarray,
    num_attempts: int,
    indices: np.ndarray,
    key: np.uint64,
    sequence: np.uint64,
) -> None:
    """Fill int64 (samples, 4) with row, column, height and width, in pixels.

    Parameters
    ----------
    extents
        int64 (samples, 2): heights and widths, positive.
    area, aspect_ratio
        float32 (2,): smallest and largest; see `penstock.kernels.cpu.random_crop.crop_window`.
    indices
        int64 (samples,): positions in the batch.
    key, sequence
        Of the generator's state in this iteration.
    """
    for i in range(len(windows)):
        stream = sequence + np.uint64(indices[i]) * SAMPLE_STRIDE
        rows, columns, number = _choose(
            extents[i, 0], extents[i, 1], area, aspect_ratio, num_attempts, key ^ _KEY, stream
        )
        windows[i, 0], number = integer_below(
            np.uint64(extents[i, 0] - rows + 1), key ^ _KEY, stream, np.uint64(0), number
        )
        windows[i, 1], number = integer_below(
            np.uint64(extents[i, 1] - columns + 1), key ^ _KEY, stream, np.uint64(0), number
        )
        windows[i, 2], windows[i, 3] = rows, columns


@njit(nogil=True, error_model="numpy")
def _choose(
    height: int,
    width: int,
    area: np.ndarray,
    ratio: np.ndarray,
    num_attempts: int,
    key: np.uint64,
    stream: np.uint64,
) -> tuple[int, int, np.uint64]:
    """Height and width of a window, and the number of the word that comes next."""
    number = np.uint64(0)
    whole = np.float32(height * width)
    widest = max(1, int(np.float32(height) * ratio[1]))
    tallest = max(1, int(np.float32(width) / ratio[0]))
    if np.float32(height * widest) < area[0] * whole:
        return height, widest, number
    if np.float32(width * tallest) < area[0] * whole:
        return tallest, width, number
    first = np.float32(math.log(np.float64(ratio[0])))
    last = np.float32(math.log(np.float64(ratio[1])))
    for _ in range(num_attempts):
        wanted = _real(area[0], area[1], key, stream, number) * whole
        drawn = _real(first, last, key, stream, number + _ONE)
        number += np.uint64(2)
        shape = np.float32(math.exp(np.float64(drawn)))
        columns = max(1, int(np.float32(math.sqrt(wanted * shape)) + np.float32(0.5)))
        rows = max(1, int(np.float32(math.sqrt(wanted / shape)) + np.float32(0.5)))
        rounded = np.float32(columns) / np.float32(rows)
        if columns <= width and rows <= height and ratio[0] <= rounded and rounded <= ratio[1]:
            return rows, columns, number
    rows, columns = min(height, tallest), min(width, widest)
    shrink = math.sqrt(min(1.0, np.float64(area[1]) * height * width / (rows * columns)))
    return max(1, int(rows * shrink)), max(1, int(columns * shrink)), number


@njit(nogil=True)
def _real(
    low: np.float32, high: np.float32, key: np.uint64, stream: np.uint64, number: np.uint64
) -> np.float32:
    unit = min(np.float32(single_unit(key, stream, np.uint64(0), number)), _BELOW_ONE)
    return np.float32(np.float32(unit * np.float32(high - low)) + low)
