"""Windows of random crops out of the state of a generator: DALI's, number by number.

The key of the operator's generator is mixed with a constant, which DALI's published source names,
and a sample takes one word of its sequence after the other, from the generator's offset and phase
on; the rest was found by comparison with DALI's windows.
Each attempt takes one for the area and one for the aspect ratio; row and column of the window that
fits take at least one each. All arithmetic is float32.
"""

from __future__ import annotations

import math

import numpy as np

from headrace.kernels.compilation import njit
from headrace.kernels.cpu.philox_draws import HALF, SAMPLE_STRIDE, words_around

_KEY = np.uint64(0x12345678ABCDEFE)
_ONE = np.uint64(1)
_THREE = np.uint64(3)
_LOW = np.uint64(0xFFFFFFFF)
_TO_UNIT = np.float32(2.0**-32)
_BELOW_ONE = np.nextafter(np.float32(1), np.float32(0))

_Words = tuple[np.uint64, np.uint64, np.uint64, np.uint64]
"""The block that the next word is among, unless a block begins with it."""
_Stream = tuple[np.uint64, np.uint64, np.uint64]
"""Key, sequence and offset of a sample's words."""


@njit(nogil=True, error_model="numpy")
def crop_windows(
    windows: np.ndarray,
    extents: np.ndarray,
    area: tuple[float, float],
    aspect_ratio: tuple[float, float],
    num_attempts: int,
    indices: np.ndarray,
    state: tuple[np.uint64, np.uint64, np.uint64, np.uint64],
) -> None:
    """Fill int64 (samples, 4) with row, column, height and width, in pixels.

    `extents`: int64 (samples, 2): heights and widths; one that is not positive counts as 1.
    `indices`: int64 (samples,): positions in the batch.
    `state`: key, sequence, offset and phase of the generator.
    """
    key, sequence, offset, phase = state
    areas = np.float32(area[0]), np.float32(area[1])
    ratios = np.float32(aspect_ratio[0]), np.float32(aspect_ratio[1])
    for i in range(len(windows)):
        height, width = max(extents[i, 0], 1), max(extents[i, 1], 1)
        stream = key ^ _KEY, sequence + np.uint64(indices[i]) * SAMPLE_STRIDE, offset
        rows, columns, words, number = _choose(
            height, width, areas, ratios, num_attempts, stream, phase
        )
        windows[i, 0], words, number = _integer_below(height - rows + 1, words, stream, number)
        windows[i, 1], words, number = _integer_below(width - columns + 1, words, stream, number)
        windows[i, 2], windows[i, 3] = rows, columns


@njit(nogil=True, error_model="numpy")
def _choose(
    height: int,
    width: int,
    area: tuple[np.float32, np.float32],
    ratio: tuple[np.float32, np.float32],
    num_attempts: int,
    stream: _Stream,
    number: np.uint64,
) -> tuple[int, int, _Words, np.uint64]:
    """Height and width of a window; the words at hand, and the number of the one that is next."""
    words = words_around(stream[0], stream[1], stream[2], number)
    whole = np.float32(height * width)
    widest = max(1, int(np.float32(height) * ratio[1]))
    tallest = max(1, int(np.float32(width) / ratio[0]))
    if np.float32(height * widest) < area[0] * whole:
        return height, widest, words, number
    if np.float32(width * tallest) < area[0] * whole:
        return tallest, width, words, number
    first = np.float32(math.log(np.float64(ratio[0])))
    last = np.float32(math.log(np.float64(ratio[1])))
    for _ in range(num_attempts):
        drawn, words, number = _next(words, stream, number)
        other, words, number = _next(words, stream, number)
        wanted = _real(area[0], area[1], drawn) * whole
        shape = np.float32(math.exp(np.float64(_real(first, last, other))))
        columns = max(1, int(np.float32(math.sqrt(wanted * shape)) + np.float32(0.5)))
        rows = max(1, int(np.float32(math.sqrt(wanted / shape)) + np.float32(0.5)))
        rounded = np.float32(columns) / np.float32(rows)
        if columns <= width and rows <= height and ratio[0] <= rounded and rounded <= ratio[1]:
            return rows, columns, words, number
    rows, columns = min(height, tallest), min(width, widest)
    shrink = math.sqrt(min(1.0, np.float64(area[1]) * height * width / (rows * columns)))
    return max(1, int(rows * shrink)), max(1, int(columns * shrink)), words, number


@njit(nogil=True)
def _real(low: np.float32, high: np.float32, word: np.uint64) -> np.float32:
    """A number from `low` on, below `high`."""
    unit = min(np.float32(np.float64(word)) * _TO_UNIT, _BELOW_ONE)
    return np.float32(np.float32(unit * np.float32(high - low)) + low)


@njit(nogil=True)
def _next(words: _Words, stream: _Stream, number: np.uint64) -> tuple[np.uint64, _Words, np.uint64]:
    """A word, the block that it is of, and the number of the word after it."""
    if number & _THREE == 0:
        words = words_around(stream[0], stream[1], stream[2], number)
    return words[np.int64(number & _THREE)], words, number + _ONE


@njit(nogil=True)
def _integer_below(
    bound: int, words: _Words, stream: _Stream, number: np.uint64
) -> tuple[np.int64, _Words, np.uint64]:
    """As `headrace.kernels.cpu.philox_draws.integer_below`, out of words that are there."""
    factor = np.uint64(bound)
    rejected = (_ONE << HALF) % factor
    while True:
        drawn, words, number = _next(words, stream, number)
        product = drawn * factor
        if (product & _LOW) >= rejected:
            return np.int64(product >> HALF), words, number
