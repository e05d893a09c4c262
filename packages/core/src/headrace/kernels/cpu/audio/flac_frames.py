"""The frames of FLAC files."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from headrace.kernels.compilation import njit
from headrace.kernels.cpu.audio.bits import leading_zeros, signed, unsigned, window
from headrace.kernels.cpu.audio.flac_residuals import FAILED, predicted


def _sums(count: int) -> np.ndarray:
    """Tables of CRC-16 (polynomial 0x8005) for `count` bytes at a time, ``(count, 256)``."""
    tables = np.zeros((count, 256), np.uint16)
    for byte in range(256):
        value = byte << 8
        for _ in range(8):
            value = (value << 1 ^ 0x8005 if value & 0x8000 else value << 1) & 0xFFFF
        tables[0, byte] = value
    for k in range(1, count):
        tables[k] = tables[k - 1] << 8 ^ tables[0][tables[k - 1] >> 8]
    return tables


_SUMS = _sums(8)
_FIXED = np.array([[0, 0, 0, 0], [1, 0, 0, 0], [2, -1, 0, 0], [3, -3, 1, 0], [4, -6, 4, -1]])
"""Weights of the fixed predictors of orders 0 to 4, of the newest sample first."""
_RATES = np.array(
    [0, 88200, 176400, 192000, 8000, 16000, 22050, 24000, 32000, 44100, 48000, 96000, 0, 0, 0, 0]
)
UNUSUAL, GOOD, CONTRADICTORY = range(3)


@numba.njit(nogil=True)
def _subframe(data: np.ndarray, size: int, bit: int, bits: int, samples: np.ndarray) -> Any:
    """One channel of a frame; the bit after it, or `FAILED`."""
    head = unsigned(data, bit, 8)
    bit += 8
    kind = head >> 1
    wasted = 0
    if head & 1:
        zeros = leading_zeros(window(data, bit))
        wasted = zeros + 1
        bit += wasted
    bits -= wasted
    if head >> 7 or bits < 1:
        return FAILED
    if kind == 0:
        samples[:] = signed(data, bit, bits)
        bit += bits
    elif kind == 1:
        if bit + bits * samples.size > 8 * size:
            return FAILED
        for i in range(samples.size):
            samples[i] = signed(data, bit, bits)
            bit += bits
    elif 8 <= kind <= 12 or kind >= 32:
        order = kind - 8 if kind < 32 else kind - 31
        if order > samples.size or bit + bits * order > 8 * size:
            return FAILED
        for i in range(order):
            samples[i] = signed(data, bit, bits)
            bit += bits
        weights = np.zeros(32, np.int64)
        shift = 0
        if kind < 32:
            weights[:4] = _FIXED[order]
        else:
            width = unsigned(data, bit, 4) + 1
            shift = signed(data, bit + 4, 5)
            bit += 9
            if width == 16 or shift < 0 or bit + width * order > 8 * size:
                return FAILED
            for k in range(order):
                weights[k] = signed(data, bit, width)
                bit += width
        bit = predicted(data, size, bit, samples, order, weights, shift)
    else:
        return FAILED
    if wasted and bit != FAILED:
        for i in range(samples.size):
            samples[i] = samples[i] << wasted
    return bit


@numba.njit(nogil=True)
def _check_sum(data: np.ndarray, begin: int, end: int) -> Any:
    """CRC-16 of these bytes."""
    total = np.uint32(0)
    at = begin
    while at + 8 <= end:
        total ^= np.uint32(data[at]) << np.uint32(8) | np.uint32(data[at + 1])
        total = np.uint32(
            _SUMS[7, total >> np.uint32(8)]
            ^ _SUMS[6, total & np.uint32(255)]
            ^ _SUMS[5, data[at + 2]]
            ^ _SUMS[4, data[at + 3]]
            ^ _SUMS[3, data[at + 4]]
            ^ _SUMS[2, data[at + 5]]
            ^ _SUMS[1, data[at + 6]]
            ^ _SUMS[0, data[at + 7]]
        )
        at += 8
    while at < end:
        high = (total >> np.uint32(8)) ^ np.uint32(data[at])
        total = ((total << np.uint32(8)) ^ np.uint32(_SUMS[0, high])) & np.uint32(0xFFFF)
        at += 1
    return total


@numba.njit(nogil=True)
def _decorrelate(block: np.ndarray, count: int, kind: int) -> None:
    """Left and right out of what stands for them."""
    for i in range(count):
        first, second = np.int64(block[0, i]), np.int64(block[1, i])
        if kind == 8:
            second = first - second
        elif kind == 9:
            first = first + second
        else:
            both = first << 1 | second & 1
            first, second = (both + second) >> 1, (both - second) >> 1
        block[0, i], block[1, i] = first, second


@njit(nogil=True)
def decode_frames(
    data: np.ndarray,
    begin: int,
    size: int,
    bits: int,
    rate: int,
    block: np.ndarray,
    out: np.ndarray,
) -> int:
    """Fill `out` with the samples of a file: `GOOD`; `UNUSUAL` where something is not as it should
    be; `CONTRADICTORY` where a frame with a right check sum is not what the file's header says.

    `data`: the file, uint8, with `PADDING_BYTES` after it. `begin`, `size`: where frames begin, and
    the bytes of the file. `block`: int32 ``(channels, samples)``, scratch memory for the longest
    frame.
    """
    channels, most = block.shape
    at, done, total = begin, 0, out.size // channels
    up = np.int64(32 - bits)
    while done < total:
        if at + 10 > size or unsigned(data, at * 8, 15) != 0x7FFC:
            return UNUSUAL
        coded = unsigned(data, at * 8 + 16, 16)
        length_code, rate_code = coded >> 12, coded >> 8 & 15
        assignment, bits_code = coded >> 4 & 15, coded >> 1 & 7
        bit = at * 8 + 32
        # The number of the frame, or of its first sample, as UTF-8 would have it.
        ones = leading_zeros(~window(data, bit))
        if ones == 1 or ones > 7:
            return UNUSUAL
        bit += 8 * max(ones, 1)
        if length_code == 0:
            return UNUSUAL
        if length_code == 1:
            count = 192
        elif length_code <= 5:
            count = 576 << (length_code - 2)
        elif length_code >= 8:
            count = 256 << (length_code - 8)
        else:
            width = 8 * (length_code - 5)
            count = unsigned(data, bit, width) + 1
            bit += width
        its_rate = rate if rate_code == 0 else _RATES[rate_code]
        if rate_code == 12:
            its_rate = 1000 * unsigned(data, bit, 8)
        elif rate_code > 12:
            its_rate = unsigned(data, bit, 16) * (1 if rate_code == 13 else 10)
        bit += 8 if rate_code == 12 else 16 if rate_code > 12 else 0
        bit += 8  # the header's own sum; the one of the whole frame is checked
        its_bits = bits
        if bits_code == 1:
            its_bits = 8
        elif bits_code == 4:
            its_bits = 16
        elif bits_code == 6:
            its_bits = 24
        elif bits_code:
            return UNUSUAL
        its_channels = 2 if assignment >= 8 else assignment + 1
        if its_bits != bits or its_channels != channels or assignment > 10 or rate_code == 15:
            return UNUSUAL
        if coded & 1 or count > most:
            return UNUSUAL
        for c in range(channels):
            is_side = assignment >= 8 and (c == 0) == (assignment == 9)
            bit = _subframe(data, size, bit, bits + is_side, block[c, :count])
            if bit == FAILED or bit > 8 * size:
                return UNUSUAL
        end = (bit + 7) >> 3
        if end + 2 > size or _check_sum(data, at, end) != unsigned(data, end * 8, 16):
            return UNUSUAL
        if its_rate != rate or count > total - done:
            return CONTRADICTORY
        if assignment >= 8:
            _decorrelate(block, count, assignment)
        for c in range(channels):
            for i in range(count):
                out[(done + i) * channels + c] = np.int64(block[c, i]) << up
        at, done = end + 2, done + count
    more = at + 10 <= size and unsigned(data, at * 8, 15) == 0x7FFC
    return CONTRADICTORY if more else GOOD
