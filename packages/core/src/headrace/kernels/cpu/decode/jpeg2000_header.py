"""The header of a JPEG 2000 file or code stream. Source: ITU-T T.800, annexes A and I."""

from __future__ import annotations

import struct

from headrace.errors import BadSampleError
from headrace.kernels.cpu.decode.image_header import U8, U16, ImageHeader

FILE_SIGNATURE = b"\0\0\0\x0cjP  \r\n\x87\n"
STREAM_SIGNATURE = b"\xff\x4f\xff\x51"
SPECIAL = "special"

_size = struct.Struct(">HHIIII")
_SRGB, _GRAY = 16, 17


def read_file(data: memoryview) -> ImageHeader:
    """Header of the boxed (JP2) file in `data`."""
    position = 0
    variant = ""
    while position + 8 <= len(data):
        length, name = struct.unpack_from(">I4s", data, position)
        start = position + 8
        if length == 1 and position + 16 <= len(data):
            (length,) = struct.unpack_from(">Q", data, position + 8)
            start += 8
        if name == b"jp2c":
            header = read_stream(data[start:])
            return header._replace(variant=variant or header.variant)
        if length < 8:
            break
        if name == b"jp2h" and not _is_plain(bytes(data[start : position + length])):
            variant = SPECIAL
        position += length
    raise BadSampleError("The JPEG 2000 file has no code stream: it is cut off or damaged.")


def _is_plain(boxes: bytes) -> bool:
    """True if the header boxes describe plain gray or sRGB pixels."""
    color = boxes.find(b"colr")
    if (
        b"pclr" in boxes
        or b"cdef" in boxes
        or color < 0
        or len(boxes) < color + 11
        or boxes[color + 4] != 1
    ):
        return False
    return int.from_bytes(boxes[color + 7 : color + 11], "big") in (_SRGB, _GRAY)


def read_stream(data: memoryview) -> ImageHeader:
    """Header of the bare code stream in `data`."""
    if len(data) < 43 or data[:4] != STREAM_SIGNATURE:
        raise BadSampleError("The JPEG 2000 code stream is cut off or damaged in its header.")
    _, _, right, bottom, left, top = _size.unpack_from(data, 4)
    (channels,) = struct.unpack_from(">H", data, 40)
    depth = data[42]
    bits = (depth & 0x7F) + 1
    every = data[42 : 42 + 3 * channels]
    is_plain = bits in (8, 16) and every == bytes((depth, 1, 1)) * channels
    unsupported = ""
    if depth & 0x80:
        unsupported = "a JPEG 2000 image of signed samples"
    elif bits > 16:
        unsupported = f"a JPEG 2000 image of {bits} bits a sample"
    return ImageHeader(
        "jpeg2000",
        bottom - top,
        right - left,
        channels,
        U8 if bits <= 8 else U16,
        variant="" if is_plain else SPECIAL,
        unsupported=unsupported,
    )
