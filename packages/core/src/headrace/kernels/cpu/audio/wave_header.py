"""The header of WAV files: what is in them and where.

Only files whose samples can be taken as they lie are described: PCM and IEEE floating point numbers
in "RIFF" files, plain or "extensible". Everything else is libsndfile's business, and so is every
header that leaves a question open.

References
----------
Microsoft and IBM, "Multimedia Programming Interface and Data Specifications 1.0", 1991;
Microsoft, "Multiple Channel Audio Data and WAVE Files", 2001.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from headrace.kernels.compilation import njit

_RIFF, _WAVE = (int.from_bytes(name, "little") for name in (b"RIFF", b"WAVE"))
_FMT, _DATA = (int.from_bytes(name, "little") for name in (b"fmt ", b"data"))
_PCM, _IEEE_FLOAT, _EXTENSIBLE = 1, 3, 0xFFFE
_STREAMED = 0x7FFFFF00
"""Sizes from here on are written by programs that cannot go back and fill in the right one."""
_MOST_CHANNELS = 1024


class WaveHeader(NamedTuple):
    """Format of a WAV file, and extent of its samples.

    `offset`, `size`: of the samples, in bytes: those that are there. `missing`: bytes that the
    header promises beyond them. `channels`: their number. `rate`: samples a second, in Hz. `bits`:
    of a sample: 8, 16, 24, 32, or 64. `is_float`: whether samples are floating point numbers.
    Integers of 8 bits are unsigned.
    """

    offset: int
    size: int
    missing: int
    channels: int
    rate: int
    bits: int
    is_float: bool

    @property
    def frames(self) -> int:
        """Samples of each channel."""
        return self.size // (self.channels * (self.bits // 8))


def read_wave_header(data: np.ndarray, size: int | None = None) -> WaveHeader | None:
    """Read the header of a WAV file; `None` for files that are left to libsndfile.

    `data`: the file, or its beginning: uint8, 1-D, contiguous. `size`: bytes of the whole file,
    where `data` is not all of it.
    """
    found, *rest = _read(data, data.size if size is None else size)
    return WaveHeader(*rest) if found else None


@njit(nogil=True)
def _number(data: np.ndarray, at: int, count: int) -> Any:
    value = np.int64(0)
    for k in range(count):
        value |= np.int64(data[at + k]) << (8 * k)
    return value


@njit(nogil=True)
def _read(data: np.ndarray, file_size: int) -> tuple[bool, int, int, int, int, int, int, bool]:
    nothing = (False, 0, 0, 0, 0, 0, 0, False)
    length = data.size
    if length < 12 or _number(data, 0, 4) != _RIFF or _number(data, 8, 4) != _WAVE:
        return nothing
    at, known = 12, False
    kind = channels = rate = block = bits = 0
    while at + 8 <= length:
        name, size = _number(data, at, 4), _number(data, at + 4, 4)
        at += 8
        if name == _FMT:
            if known or size < 16 or at + size > length:
                return nothing
            kind, channels = _number(data, at, 2), _number(data, at + 2, 2)
            rate, block = _number(data, at + 4, 4), _number(data, at + 12, 2)
            bits, known = _number(data, at + 14, 2), True
            if kind == _EXTENSIBLE:
                if size < 40 or _number(data, at + 18, 2) not in (0, bits):
                    return nothing
                # The first two bytes of the identifier are the plain number, the rest is fixed.
                kind = _number(data, at + 24, 2)
                if (
                    _number(data, at + 26, 6) != 0x0010_0000_0000
                    or _number(data, at + 32, 4) != 0xAA000080
                    or _number(data, at + 36, 4) != 0x719B3800
                ):
                    return nothing
            is_float = kind == _IEEE_FLOAT and bits in (32, 64)
            if not is_float and not (kind == _PCM and bits in (8, 16, 24, 32)):
                return nothing
            if not 0 < channels <= _MOST_CHANNELS or rate == 0 or rate > 0x7FFFFFFF:
                return nothing
            if block != channels * (bits // 8):
                return nothing
        elif name == _DATA:
            if not known:
                return nothing
            there = file_size - at
            promised = there if size >= _STREAMED else size
            missing = max(promised - there, 0)
            have = min(promised, there)
            have -= have % block
            return (True, at, have, missing, channels, rate, bits, kind == _IEEE_FLOAT)
        at += size + (size & 1)
    return nothing
