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
        found, offset, frames, channels, rate, bits, is_float = survey_wave(addresses[k], sizes[k])
        headers[k, FOUND] = found
        headers[k, OFFSET] = offset
        headers[k, FRAMES] = frames
        headers[k, CHANNELS] = channels
        headers[k, RATE] = rate
        headers[k, BITS] = bits
        headers[k, IS_FLOAT] = is_float


@njit(nogil=True)
def survey_wave(address: int, size: int) -> tuple[int, ...]:
    """Find out what a file of `size` bytes holds: a row of a table of headers."""
    nothing = (0, 0, 0, 0, 0, 0, 0)
    if size < 12:
        return nothing
    data = numba.carray(pointer(address), size, np.uint8)
    found, offset, content, missing, channels, rate, bits, is_float = _read(data, size)
    if not found or missing > 0:
        return nothing
    width = bits // 8
    if bits != 24 and (address + np.uint64(offset)) % np.uint64(width) != 0:
        return nothing
    return 1, offset, content // (channels * width), channels, rate, bits, int(is_float)


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
        address = addresses[k] + np.uint64(headers[k, OFFSET])
        mixes = mixed and channels > 1
        target = out[begins[k] : begins[k] + (frames if mixes else frames * channels)]
        decode_wave(
            address, frames, channels, headers[k, BITS], headers[k, IS_FLOAT] != 0, mixes, target
        )


@njit(nogil=True)
def decode_wave(
    address: int,
    frames: int,
    channels: int,
    bits: int,
    is_float: bool,
    mixes: bool,
    target: np.ndarray,
) -> None:
    """Decode the samples of a file, from the first one on at `address`."""
    source = pointer(address)
    count = frames * channels
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
    elif is_float:
        _decode(numba.carray(source, count, np.float32), channels, mixes, target)
    else:
        _decode(numba.carray(source, count, np.int32), channels, mixes, target)


@njit(nogil=True)
def _decode(source: np.ndarray, channels: int, mixes: bool, out: np.ndarray) -> None:
    if mixes:
        mix(source, channels, out)
    else:
        convert(source, out)
