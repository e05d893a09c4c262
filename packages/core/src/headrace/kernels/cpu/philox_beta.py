"""Numbers of a beta distribution out of the state of one Philox generator, compiled.

A beta variate is ``x / (x + y)`` of two gamma variates, which are drawn by the method of
G. Marsaglia and W. W. Tsang ("A simple method for generating gamma variables", ACM TOMS 26(3),
2000) out of normal variates of Marsaglia's polar method (SIAM Review 6(3), 1964). The polar method
gives two numbers at a time: the second is kept for the next element, separately for ``x`` and
``y``, so that a sample's elements are drawn in order.
"""

from __future__ import annotations

import math

import numpy as np

from headrace.kernels.compilation import njit
from headrace.kernels.cpu.philox_draws import (
    ELEMENT_STRIDE,
    SAMPLE_STRIDE,
    DrawState,
    double_unit,
    single_unit,
)

_WORDS_SINGLE = np.uint64(1)
_WORDS_DOUBLE = np.uint64(2)


@njit(nogil=True)
def _unit(
    single: bool, key: np.uint64, sequence: np.uint64, offset: np.uint64, place: np.ndarray
) -> float:
    """The next uniform number; `place` holds the number of the next word."""
    number = place[0]
    if single:
        place[0] = number + _WORDS_SINGLE
        return single_unit(key, sequence, offset, number)
    place[0] = number + _WORDS_DOUBLE
    return double_unit(key, sequence, offset, number)


@njit(nogil=True)
def _normal(
    single: bool,
    key: np.uint64,
    sequence: np.uint64,
    offset: np.uint64,
    place: np.ndarray,
    kept: np.ndarray,
) -> float:
    """The next normal number; `kept` holds one in reserve and whether there is one."""
    if kept[1] != 0.0:
        kept[1] = 0.0
        return kept[0]
    while True:
        x = 2.0 * _unit(single, key, sequence, offset, place) - 1.0
        y = 2.0 * _unit(single, key, sequence, offset, place) - 1.0
        square = x * x + y * y
        if 0.0 < square <= 1.0:
            break
    scale = math.sqrt(-2.0 * math.log(square) / square)
    kept[0] = x * scale
    kept[1] = 1.0
    return y * scale


@njit(nogil=True)
def _gamma(
    shape: float,
    single: bool,
    key: np.uint64,
    sequence: np.uint64,
    offset: np.uint64,
    place: np.ndarray,
    kept: np.ndarray,
) -> float:
    """The next gamma number of unit scale."""
    d = (shape + 1.0 if shape < 1.0 else shape) - 1.0 / 3.0
    c = 1.0 / math.sqrt(9.0 * d)
    while True:
        x = _normal(single, key, sequence, offset, place, kept)
        v = 1.0 + c * x
        while v <= 0.0:
            x = _normal(single, key, sequence, offset, place, kept)
            v = 1.0 + c * x
        v = v * v * v
        u = _unit(single, key, sequence, offset, place)
        if u <= 1.0 - 0.0331 * x * x * x * x:
            break
        if math.log(u) <= 0.5 * x * x + d * (1.0 - v + math.log(v)):
            break
    if shape >= 1.0:
        return d * v
    u = _unit(single, key, sequence, offset, place)
    while u == 0.0:
        u = _unit(single, key, sequence, offset, place)
    return u ** (1.0 / shape) * d * v


@njit(nogil=True)
def beta(out: np.ndarray, alpha: float, beta: float, single: bool, place: DrawState) -> None:
    """Fill float64 (samples, elements) with a beta distribution."""
    first_sample, key, sequence, offset, phase = place
    samples, count = out.shape
    word = np.empty(1, np.uint64)
    for s in range(samples):
        stream = sequence + (first_sample + np.uint64(s)) * SAMPLE_STRIDE
        kept_x = np.zeros(2)
        kept_y = np.zeros(2)
        for e in range(count):
            word[0] = phase + np.uint64(e) * ELEMENT_STRIDE
            while True:
                x = _gamma(alpha, single, key, stream, offset, word, kept_x)
                y = _gamma(beta, single, key, stream, offset, word, kept_y)
                if x + y > 0.0:  # both vanish for tiny parameters only
                    break
            out[s, e] = x / (x + y)
