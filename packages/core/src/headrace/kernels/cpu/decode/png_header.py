"""The header of a PNG file. Source: PNG specification, third edition (W3C 2025)."""

from __future__ import annotations

import struct
from functools import lru_cache

from headrace.errors import BadSampleError
from headrace.kernels.cpu.decode.exif import UPRIGHT, orientation_of
from headrace.kernels.cpu.decode.image_header import U8, U16, ImageHeader

SIGNATURE = b"\x89PNG\r\n\x1a\n"

# Channels of each colour type; a palette (3) holds RGB colours.
_CHANNELS = {0: 1, 2: 3, 3: 3, 4: 2, 6: 4}
_SAMPLES = {**_CHANNELS, 3: 1}
_BEST_DEFLATE_RATIO = 1032
_chunk = struct.Struct(">I4s")
_image = struct.Struct(">IIBB")


def read(data: memoryview) -> ImageHeader:
    """Header of the PNG file in `data`."""
    if len(data) < 33 or bytes(data[12:16]) != b"IHDR":
        raise BadSampleError("The PNG data does not begin with a complete IHDR chunk.")
    width, height, bits, color = _image.unpack_from(data, 16)
    if color not in _CHANNELS or bits not in (1, 2, 4, 8, 16):
        raise BadSampleError(
            f"The PNG header asks for colour type {color} with {bits} bits, which does not exist."
        )
    if height * width * bits * _SAMPLES[color] > 8 * _BEST_DEFLATE_RATIO * len(data):
        raise BadSampleError(
            f"The PNG header promises {height} x {width} pixels, more than {len(data)} bytes can "
            "hold: the file is cut off or damaged."
        )
    return _header(height, width, _CHANNELS[color], bits == 16, _orientation(data))


@lru_cache(maxsize=1024)
def _header(height: int, width: int, channels: int, is_wide: bool, orientation: int) -> ImageHeader:
    """The same object for files that are alike, as those of a data set are."""
    return ImageHeader("png", height, width, channels, U16 if is_wide else U8, orientation)


def _orientation(data: memoryview) -> int:
    """The orientation in the first eXIf chunk; every chunk must be there up to its end."""
    position = 33
    size = len(data)
    orientation = 0
    while position + 12 <= size:
        length, name = _chunk.unpack_from(data, position)
        if name == b"IEND":
            return orientation or UPRIGHT
        if name == b"eXIf" and not orientation:
            orientation = orientation_of(data[position + 8 : position + 8 + length])
        position += 12 + length
    raise BadSampleError(f"The PNG data ends early, after {size} bytes: it has no IEND chunk.")
