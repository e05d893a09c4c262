"""Many WAV files at once: two calls that let other threads have the interpreter.

A file of a few seconds is decoded in microseconds, and the interpreter takes longer to get there.
"""

from __future__ import annotations

import numba
import numpy as np

from headrace.kernels.compilation import njit
from headrace.kernels.cpu.audio.sample_loops import convert, convert_24_bit, mix
from headrace.kernels.cpu.audio.wave_header import _read
from headrace.kernels.cpu.pointers import pointer

FOUND, OFFSET, FRAMES, CHANNELS, RATE, BITS, IS_FLOAT = range(7)
"""Columns of a table of headers."""
COLUMNS = 7


@njit(nogil=True)
def survey_waves(addresses: np.ndarray, sizes: np.ndarray, headers: np.ndarray) -> None:
    """Find out what files hold.

    `addresses`, `sizes`: uint64 and int64 ``(files,)``: where each file is in memory, and its
    bytes. `headers`: int64 ``(files, COLUMNS)``, filled.
    """
    for k in range(len(addresses)):
        headers[k, FOUND] = 0
        if sizes[k] < 12:
            continue
        data = numba.carray(pointer(addresses[k]), sizes[k], np.uint8)
        found, offset, size, missing, channels, rate, bits, is_float = _read(data, sizes[k])
        if not found or missing > 0:
            continue
        width = bits // 8
        start = addresses[k] + np.uint64(offset)
        if bits != 24 and start % np.uint64(width) != 0:
            continue
        headers[k, FOUND] = 1
        headers[k, OFFSET] = offset
        headers[k, FRAMES] = size // (channels * width)
        headers[k, CHANNELS] = channels
        headers[k, RATE] = rate
        headers[k, BITS] = bits
        headers[k, IS_FLOAT] = is_float


@njit(nogil=True)
def decode_waves(
    addresses: np.ndarray,
    headers: np.ndarray,
    mixed: bool,
    out: np.ndarray,
    begins: np.ndarray,
) -> None:
    """Decode all files that `survey_waves` has found.

    `out`: 1-D, int16, int32 or float32. `begins`: int64 ``(files,)``: the element of `out` with
    which each file begins.
    """
    for k in range(len(addresses)):
        frames, channels = headers[k, FRAMES], headers[k, CHANNELS]
        if headers[k, FOUND] == 0 or frames == 0:
            continue
        source = pointer(addresses[k] + np.uint64(headers[k, OFFSET]))
        count, bits, mixes = frames * channels, headers[k, BITS], mixed and channels > 1
        target = out[begins[k] : begins[k] + (frames if mixes else count)]
        if bits == 16:
            _decode(numba.carray(source, count, np.int16), channels, mixes, target)
        elif bits == 8:
            _decode(numba.carray(source, count, np.uint8), channels, mixes, target)
        elif bits == 24:
            packed = numba.carray(source, 3 * count, np.uint8)
            if mixes:
                wide = np.empty(count, np.int32)
                convert_24_bit(packed, wide)
                mix(wide, channels, target)
            else:
                convert_24_bit(packed, target)
        elif bits == 64:
            _decode(numba.carray(source, count, np.float64), channels, mixes, target)
        elif headers[k, IS_FLOAT] != 0:
            _decode(numba.carray(source, count, np.float32), channels, mixes, target)
        else:
            _decode(numba.carray(source, count, np.int32), channels, mixes, target)


@njit(nogil=True)
def _decode(source: np.ndarray, channels: int, mixes: bool, out: np.ndarray) -> None:
    if mixes:
        mix(source, channels, out)
    else:
        convert(source, out)
