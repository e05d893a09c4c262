"""The samples of a channel of a FLAC frame: predictions from those before, and coded residuals.

What is expensive is one loop: the code of a residual says how long it is, so that one begins where
the last one ended, and a sample is predicted from those before it. Both are chains of dependent
steps, but not of one another: processors do them at the same time. So that the samples before stay
in registers, they are a tuple, and each length of it is a loop of its own.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba.extending import overload
from numba.np.unsafe.ndarray import to_fixed_tuple

from headrace.kernels.cpu.audio.bits import PADDING_BYTES, leading_zeros, signed, unsigned, window

_MOST_CODED = 25
"""Zeros in front of a code that, with 30 bits after them, still lie within one window."""
FAILED = -1
"""In place of the bit after something that is not as it should be."""


def _weighted(w: Any, x: Any) -> Any:
    """The sum of products of two tuples. Compiled code only."""
    raise NotImplementedError("`_weighted` can only be called from compiled code")


@overload(_weighted)
def _weighted_sum(w: Any, x: Any) -> Any:
    # The newest sample comes last: what can be added up before it is known, is.
    def of_4(w: Any, x: Any) -> Any:
        return (w[3] * x[3] + w[2] * x[2]) + w[1] * x[1] + w[0] * x[0]

    def of_8(w: Any, x: Any) -> Any:
        old = (w[7] * x[7] + w[6] * x[6]) + (w[5] * x[5] + w[4] * x[4])
        return old + (w[3] * x[3] + w[2] * x[2]) + w[1] * x[1] + w[0] * x[0]

    def of_12(w: Any, x: Any) -> Any:
        old = (w[11] * x[11] + w[10] * x[10]) + (w[9] * x[9] + w[8] * x[8])
        old += (w[7] * x[7] + w[6] * x[6]) + (w[5] * x[5] + w[4] * x[4])
        return old + (w[3] * x[3] + w[2] * x[2]) + w[1] * x[1] + w[0] * x[0]

    return {4: of_4, 8: of_8, 12: of_12}[len(w)]


@numba.njit(nogil=True)
def _restore(
    data: np.ndarray,
    bit: int,
    samples: np.ndarray,
    begin: int,
    end: int,
    code_bits: int,
    weights: Any,
    before: Any,
    shift: int,
) -> Any:
    """Read the residuals of samples `begin` to `end` and add what the samples before predict.

    Stops where the file ends, with a bit after it.
    """
    last = 8 * (data.size - PADDING_BYTES)
    for i in range(begin, end):
        if bit > last:
            break
        ahead = window(data, bit)
        zeros = leading_zeros(ahead)
        if zeros > _MOST_CODED:
            zeros = 0
            while unsigned(data, bit + zeros, 1) == 0:
                zeros += 1
                if bit + zeros > last:
                    return bit + zeros
            low = unsigned(data, bit + zeros + 1, code_bits)
        else:
            rest = ahead << np.uint64(zeros + 1)
            low = np.int64((rest >> np.uint64(1)) >> np.uint64(63 - code_bits))
        bit += zeros + 1 + code_bits
        folded = zeros << code_bits | low
        residual = (folded >> 1) ^ -(folded & 1)
        value = residual + (_weighted(weights, before) >> shift)
        samples[i] = value
        before = (value,) + before[:-1]  # noqa: RUF005 - Numba knows no other way
    return bit


@numba.njit(nogil=True)
def _predict(
    samples: np.ndarray, begin: int, end: int, order: int, weights: np.ndarray, shift: int
) -> None:
    """Add to the residuals of samples `begin` to `end` what the samples before predict."""
    for i in range(begin, end):
        total = np.int64(0)
        for k in range(order):
            total += weights[k] * samples[i - 1 - k]
        samples[i] += total >> shift


@numba.njit(nogil=True)
def _before(samples: np.ndarray, end: int, order: int) -> Any:
    """The samples before number `end`, the newest first."""
    before = np.zeros(12, np.int64)
    for k in range(min(order, 12)):
        before[k] = samples[end - 1 - k]
    return before


@numba.njit(nogil=True)
def predicted(
    data: np.ndarray,
    size: int,
    bit: int,
    samples: np.ndarray,
    order: int,
    weights: np.ndarray,
    shift: int,
) -> Any:
    """All samples after the first `order`; the bit after them, or `FAILED`."""
    method = unsigned(data, bit, 2)
    if method > 1:
        return FAILED
    width = 4 + method
    parts = 1 << unsigned(data, bit + 2, 4)
    bit += 6
    count = samples.size // parts
    if count * parts != samples.size or count < order:
        return FAILED
    begin, end = order, count
    for _ in range(parts):
        code_bits = unsigned(data, bit, width)
        bit += width
        is_raw = code_bits == (1 << width) - 1
        if is_raw:
            code_bits = unsigned(data, bit, 5)
            bit += 5
        # A code has a bit more, at least; what is longer than the file is stopped by its end.
        if bit + (code_bits + (not is_raw)) * (end - begin) > 8 * size:
            return FAILED
        if is_raw:
            for i in range(begin, end):
                samples[i] = signed(data, bit, code_bits)
                bit += code_bits
            _predict(samples, begin, end, order, weights, shift)
        elif order > 12:
            none = to_fixed_tuple(np.zeros(4, np.int64), 4)
            bit = _restore(data, bit, samples, begin, end, code_bits, none, none, 0)
            _predict(samples, begin, end, order, weights, shift)
        elif order > 8:
            w, x = to_fixed_tuple(weights, 12), to_fixed_tuple(_before(samples, begin, order), 12)
            bit = _restore(data, bit, samples, begin, end, code_bits, w, x, shift)
        elif order > 4:
            w8, x8 = to_fixed_tuple(weights, 8), to_fixed_tuple(_before(samples, begin, order), 8)
            bit = _restore(data, bit, samples, begin, end, code_bits, w8, x8, shift)
        else:
            w4, x4 = to_fixed_tuple(weights, 4), to_fixed_tuple(_before(samples, begin, order), 4)
            bit = _restore(data, bit, samples, begin, end, code_bits, w4, x4, shift)
        if bit > 8 * size:
            return FAILED
        begin, end = end, end + count
    return bit
