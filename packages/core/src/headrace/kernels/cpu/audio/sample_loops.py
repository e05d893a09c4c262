"""Compiled loops over the samples of audio files."""

from __future__ import annotations

import numpy as np

from headrace.kernels.compilation import njit
from headrace.kernels.cpu.audio.conversions import as_sample, as_stored, normalized


@njit(nogil=True)
def convert(source: np.ndarray, out: np.ndarray) -> None:
    """Fill `out` with the samples `source` of a file, as they are stored."""
    for i in range(out.size):
        out[i] = as_stored(source[i], out)


@njit(nogil=True)
def mix(source: np.ndarray, channels: int, out: np.ndarray) -> None:
    """Fill `out` with the mean of the channels, computed in float32.

    `source`: 1-D, the channels of a frame side by side.
    """
    weight = np.float32(1.0 / channels)
    if channels == 2:  # the usual one, without a loop inside
        for i in range(out.size):
            left, right = normalized(source[2 * i]), normalized(source[2 * i + 1])
            out[i] = as_sample(left * weight + right * weight, out)
        return
    for i in range(out.size):
        total = normalized(source[i * channels]) * weight
        for c in range(1, channels):
            total += normalized(source[i * channels + c]) * weight
        out[i] = as_sample(total, out)


@njit(nogil=True)
def convert_24_bit(source: np.ndarray, out: np.ndarray) -> None:
    """`convert` for integers of 24 bits, little-endian; int32 has them in its upper bits."""
    for i in range(out.size):
        low, middle, high = source[3 * i], source[3 * i + 1], np.int8(source[3 * i + 2])
        value = (np.int32(high) << 24) | (np.int32(middle) << 16) | (np.int32(low) << 8)
        out[i] = as_stored(np.int32(value), out)
