"""FLAC: the files that speech comes in, decoded by a compiled loop.

Files as the usual programs write them. Whatever is unusual or wrong, a check sum included, is left
to libsndfile, which decodes it or says what it is.

References
----------
"Free Lossless Audio Codec (FLAC)", RFC 9639, 2024.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from headrace.errors import BadSampleError
from headrace.kernels.cpu.audio.bits import PADDING_BYTES
from headrace.kernels.cpu.audio.flac_frames import CONTRADICTORY, GOOD, decode_frames

Allocate = Callable[[tuple[int, ...], np.dtype], np.ndarray]

_BITS = (8, 16, 24)
_INT = np.dtype(np.int32)


class FlacHeader(NamedTuple):
    """Stream information of a FLAC file, from its first block.

    `frames`: samples of each channel. `channels`: their number. `rate`: samples a second, in Hz.
    `bits`: of a sample. `most_in_block`: samples of each channel in the longest frame of the
    format. `begin`: the byte where the first such frame begins.
    """

    frames: int
    channels: int
    rate: int
    bits: int
    most_in_block: int
    begin: int


def read_flac_header(data: np.ndarray) -> FlacHeader | None:
    """Read the header of a FLAC file; `None` for files that are left to libsndfile.

    `data`: the file: uint8, 1-D, contiguous.
    """
    if data.size < 42 or bytes(data[:4]) != b"fLaC" or data[4] & 0x7F:
        return None
    at, last = 4, False
    while not last:
        if at + 4 > data.size:
            return None
        head = int.from_bytes(data[at : at + 4].tobytes(), "big")
        last, at = bool(head >> 31), at + 4 + (head & 0xFFFFFF)
    block = data[8:26].tobytes()
    most = int.from_bytes(block[2:4], "big")
    numbers = int.from_bytes(block[10:18], "big")
    rate, channels = numbers >> 44, (numbers >> 41 & 7) + 1
    bits, frames = (numbers >> 36 & 31) + 1, numbers & 0xFFFFFFFFF
    # A frame has 10 bytes at least.
    room = (data.size - at) // 10 * most
    if bits not in _BITS or not rate or not frames or most < 16 or frames > room:
        return None
    return FlacHeader(frames, channels, rate, bits, most, at)


def decode_flac(data: np.ndarray, header: FlacHeader, temp: Allocate) -> np.ndarray | None:
    """All samples, in the upper bits of int32, flat, the channels of a frame side by side.

    `None` where something is not as it should be. Memory comes from `temp`.
    """
    padded = temp((data.size + PADDING_BYTES,), np.dtype(np.uint8))
    padded[: data.size] = data
    padded[data.size :] = 0
    out = temp((header.frames * header.channels,), _INT)
    block = temp((header.channels, header.most_in_block), _INT)
    found = decode_frames(padded, header.begin, data.size, header.bits, header.rate, block, out)
    if found == CONTRADICTORY:
        raise BadSampleError(
            f"The FLAC file is damaged: its header announces {header.frames} samples at "
            f"{header.rate} Hz, and its frames have others."
        )
    return out if found == GOOD else None
