"""The header of a BMP file. Source: Microsoft, "Bitmap Structures" (BITMAPINFOHEADER and kin)."""

from __future__ import annotations

import struct

import numpy as np

from headrace.errors import BadSampleError
from headrace.kernels.cpu.decode.image_header import U8, ImageHeader

SIGNATURE = b"BM"

_CORE = 12
_info = struct.Struct("<iiHHIIiiI")
_palette_depths = (1, 4, 8)
_UNCOMPRESSED = (0, 3)


def read(data: memoryview) -> ImageHeader:
    """Header of the BMP file in `data`."""
    if len(data) < 26:
        raise BadSampleError(f"The BMP header is cut off after {len(data)} bytes.")
    pixels_start, header_size = struct.unpack_from("<II", data, 10)
    colors = compression = 0
    if header_size == _CORE:
        width, height, _, bits = struct.unpack_from("<HHHH", data, 18)
        color_size = 3
    elif header_size >= 40 and len(data) >= 54:
        width, height, _, bits, compression, _, _, _, colors = _info.unpack_from(data, 18)
        color_size = 4
    else:
        raise BadSampleError(f"The BMP header is cut off or of an unknown kind ({header_size}).")
    if bits not in (1, 4, 8, 16, 24, 32):
        raise BadSampleError(f"The BMP header asks for {bits} bits a pixel, which does not exist.")
    row = (abs(width) * bits + 31) // 32 * 4
    # The padding of the last row may be missing.
    needed = pixels_start + row * abs(height) - (row - (abs(width) * bits + 7) // 8)
    if compression in _UNCOMPRESSED and len(data) < needed:
        raise BadSampleError(
            f"The BMP data ends early: {len(data)} bytes, where the header promises {needed}."
        )
    channels = 4 if bits == 32 else 3
    if bits in _palette_depths:
        start = 14 + header_size
        count = min(colors or 1 << bits, 1 << bits)
        palette = data[start : start + color_size * count]
        if len(palette) < color_size * count:
            raise BadSampleError(f"The BMP data ends early, in its palette: {len(data)} bytes.")
        channels = 1 if _is_gray(palette, color_size) else 3
    return ImageHeader("bmp", abs(height), abs(width), channels, U8)


def _is_gray(palette: memoryview, color_size: int) -> bool:
    count = len(palette) // color_size
    colors = np.frombuffer(palette, np.uint8, count * color_size).reshape(count, color_size)
    return bool((colors[:, 0] == colors[:, 1]).all() and (colors[:, 1] == colors[:, 2]).all())
