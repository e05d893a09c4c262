"""The header of a WebP file. Source: RFC 9649 (WebP image format)."""

from __future__ import annotations

import struct

from headrace.errors import BadSampleError
from headrace.kernels.cpu.decode.exif import UPRIGHT, orientation_of
from headrace.kernels.cpu.decode.image_header import U8, ImageHeader

_chunk = struct.Struct("<4sI")


def is_webp(start: bytes) -> bool:
    """True if data that begins with `start` is a WebP file."""
    return start[:4] == b"RIFF" and start[8:12] == b"WEBP"


def read(data: memoryview) -> ImageHeader:
    """Header of the WebP file in `data`."""
    if len(data) < 30:
        raise BadSampleError(f"The WebP header is cut off after {len(data)} bytes.")
    kind = bytes(data[12:16])
    if kind == b"VP8 ":
        if bytes(data[23:26]) != b"\x9d\x01\x2a":
            raise BadSampleError("The WebP data has no VP8 key frame at its start.")
        width, height = struct.unpack_from("<HH", data, 26)
        return ImageHeader("webp", height & 0x3FFF, width & 0x3FFF, 3, U8)
    if kind == b"VP8L":
        width, height, alpha = _lossless(data, 20)
        return ImageHeader("webp", height, width, 4 if alpha else 3, U8)
    if kind == b"VP8X":
        flags = data[20]
        width = 1 + int.from_bytes(data[24:27], "little")
        height = 1 + int.from_bytes(data[27:30], "little")
        orientation = _orientation(data) if flags & 0x08 else UPRIGHT
        return ImageHeader("webp", height, width, 4 if flags & 0x10 else 3, U8, orientation)
    raise BadSampleError(f"The WebP data begins with the unknown chunk {kind!r}.")


def _lossless(data: memoryview, start: int) -> tuple[int, int, bool]:
    if data[start] != 0x2F:
        raise BadSampleError("The WebP data has no lossless image at its start.")
    bits = int.from_bytes(data[start + 1 : start + 5], "little")
    return 1 + (bits & 0x3FFF), 1 + (bits >> 14 & 0x3FFF), bool(bits >> 28 & 1)


def _orientation(data: memoryview) -> int:
    position = 12
    while position + 8 <= len(data):
        name, length = _chunk.unpack_from(data, position)
        if name == b"EXIF":
            return orientation_of(data[position + 8 : position + 8 + length]) or UPRIGHT
        position += 8 + length + length % 2
    return UPRIGHT
