"""Numbers of a beta distribution out of the state of one Philox generator, compiled.

A beta variate is ``x / (x + y)`` of two gamma variates, which are drawn by the method of
G. Marsaglia and W. W. Tsang ("A simple method for generating gamma variables", ACM TOMS 26(3),
2000) out of normal variates of Marsaglia's polar method (SIAM Review 6(3), 1964). The polar method
gives two numbers at a time: the second is kept for the next element, separately for ``x`` and
``y``, so that a sample's elements are drawn in order.

Most elements do with few blocks of words. Those are drawn ahead, by vector instructions, and the
rest is one function: arrays and states that go from function to function take as long as all else.
"""

from __future__ import annotations

import math

import numpy as np

from headrace.kernels.compilation import njit
from headrace.kernels.cpu.philox_draws import (
    ELEMENT_STRIDE,
    SAMPLE_STRIDE,
    DrawState,
    double_of,
    double_unit,
    fill_blocks,
    single_of,
    word,
)

_TILE = 256
_BLOCKS_SINGLE = 2
_BLOCKS_DOUBLE = 4
_TWO = np.uint64(2)


@njit(inline="always")
def _unit(
    single: bool,
    ahead: np.ndarray,
    column: int,
    at: int,
    start: tuple[np.uint64, np.uint64, np.uint64, np.uint64],
) -> tuple[float, int]:
    """The uniform number of one word, or of two, and the place of the word after them.

    `start`: key, sequence, offset, and the number of the word at place 0. Words that are known are
    in a column of `ahead`.
    """
    key, sequence, offset, first = start
    if single:
        if at < len(ahead):
            low = np.uint64(ahead[at, column])
        else:
            low = word(key, sequence, offset, first + np.uint64(at))
        unit = single_of(low)
        at += 1
    else:
        if at + 1 < len(ahead):
            low, high = np.uint64(ahead[at, column]), np.uint64(ahead[at + 1, column])
            unit = double_of(low, high)
        else:
            unit = double_unit(key, sequence, offset, first + np.uint64(at))
        at += 2
    return unit, at


@njit(nogil=True)
def _factors(shape: float) -> tuple[float, float]:
    """Factors of the method of gamma numbers."""
    d = (shape + 1.0 if shape < 1.0 else shape) - 1.0 / 3.0
    return d, 1.0 / math.sqrt(9.0 * d)


@njit(nogil=True, error_model="numpy")
def beta(out: np.ndarray, alpha: float, beta: float, single: bool, place: DrawState) -> None:
    """Fill float32 or float64 (samples, elements) with a beta distribution."""
    first_sample, key, sequence, offset, phase = place
    samples, count = out.shape
    blocks = _BLOCKS_SINGLE if single else _BLOCKS_DOUBLE
    ahead = np.empty((4 * blocks, min(count, _TILE)), np.uint32)
    factors_x, factors_y = _factors(alpha), _factors(beta)
    for s in range(samples):
        stream = sequence + (first_sample + np.uint64(s)) * SAMPLE_STRIDE
        kept_x = kept_y = np.nan  # normal numbers in reserve
        for e in range(count):
            number = phase + np.uint64(e) * ELEMENT_STRIDE
            column = e % _TILE
            if column == 0:
                fill_blocks(ahead, min(_TILE, count - e), key, stream, offset, number)
            first = number >> _TWO << _TWO
            at, start = np.int64(number - first), (key, stream, offset, first)
            x = y = 0.0
            base_x = unit_x = base_y = unit_y = 1.0
            for part in range(2):
                shape, kept = (beta, kept_y) if part else (alpha, kept_x)
                d, c = factors_y if part else factors_x
                while True:
                    if math.isnan(kept):
                        square = 0.0
                        while not 0.0 < square <= 1.0:
                            i, at = _unit(single, ahead, column, at, start)
                            j, at = _unit(single, ahead, column, at, start)
                            i, j = 2.0 * i - 1.0, 2.0 * j - 1.0
                            square = i * i + j * j
                        scale = math.sqrt(-2.0 * math.log(square) / square)
                        normal, kept = j * scale, i * scale
                    else:
                        normal, kept = kept, np.nan
                    v = 1.0 + c * normal
                    if v <= 0.0:
                        continue
                    v = v * v * v
                    u, at = _unit(single, ahead, column, at, start)
                    if u <= 1.0 - 0.0331 * normal * normal * normal * normal:
                        break
                    if math.log(u) <= 0.5 * normal * normal + d * (1.0 - v + math.log(v)):
                        break
                gamma = d * v
                u = 1.0
                if shape < 1.0:
                    u = 0.0
                    while u == 0.0:
                        u, at = _unit(single, ahead, column, at, start)
                    gamma = u ** (1.0 / shape) * d * v
                if part:
                    y, kept_y, base_y, unit_y = gamma, kept, d * v, u
                else:
                    x, kept_x, base_x, unit_x = gamma, kept, d * v, u
            if x + y > 0.0:
                out[s, e] = x / (x + y)
            else:  # with tiny parameters both vanish, but not their logarithms
                more = math.log(unit_y) / beta - math.log(unit_x) / alpha
                more += math.log(base_y) - math.log(base_x)
                out[s, e] = 1.0 / (1.0 + math.exp(more))
