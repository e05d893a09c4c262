"""The header of a JPEG file. Source: ITU-T T.81, annex B."""

from __future__ import annotations

import struct

from headrace.errors import BadSampleError
from headrace.kernels.cpu.decode.exif import UPRIGHT, orientation_of
from headrace.kernels.cpu.decode.image_header import U8, U16, ImageHeader

SIGNATURE = b"\xff\xd8\xff"

_FRAME_STARTS = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_LOSSLESS = frozenset((0xC3, 0xC7, 0xCB, 0xCF))
_WITHOUT_LENGTH = frozenset((0x01, *range(0xD0, 0xD9)))
_APP0, _APP1, _APP14, _END, _SCAN = 0xE0, 0xE1, 0xEE, 0xD9, 0xDA
_OF_INTEREST = _FRAME_STARTS | _WITHOUT_LENGTH | {_APP1, _APP14, _END, _SCAN, 0xFF}
_BASELINE = 0xC0
_ARITHMETIC = 0xC9
_EXIF = b"Exif\0\0"
_JFIF = b"JFIF\0"
_ADOBE = b"Adobe"
MOST_PIXELS_A_BYTE = 4 * 8 * 64  # with subsampled chroma, and generously
_SAMPLINGS = {
    b"\x11": "gray",
    b"\x11\x11\x11": "4:4:4",
    b"\x21\x11\x11": "4:2:2",
    b"\x22\x11\x11": "4:2:0",
    b"\x12\x11\x11": "4:4:0",
}
"""By the sampling factors of the components."""
_segment = struct.Struct(">BBH")
_frame = struct.Struct(">BHHB")


def read(data: memoryview) -> ImageHeader:
    """Header of the JPEG file in `data`."""
    size = len(data)
    position = 2
    orientation = 0
    adobe_color: int | None = None
    frame = None
    frame_at = 0
    scan_at = 0
    segment = _segment.unpack_from
    while position + 4 <= size:
        mark, kind, length = segment(data, position)
        if mark != 0xFF:
            raise BadSampleError(
                f"The JPEG data is damaged at byte {position} of {size}: no segment begins there."
            )
        if kind not in _OF_INTEREST:
            position += 2 + length
            continue
        if kind == 0xFF or kind in _WITHOUT_LENGTH:
            position += 1 if kind == 0xFF else 2
            continue
        if kind in (_END, _SCAN):
            scan_at = position if kind == _SCAN else 0
            break
        if kind in _FRAME_STARTS:
            if position + 10 > size:
                break
            frame = kind, *_frame.unpack_from(data, position + 4)
            frame_at = position
        elif kind == _APP14:
            if position + 16 <= size and data[position + 4 : position + 9] == _ADOBE:
                adobe_color = data[position + 15]
        elif bytes(data[position + 4 : position + 10]) == _EXIF:
            # The last block that has an orientation counts, also after the frame header.
            block = data[position + 10 : position + 2 + length]
            orientation = orientation_of(block) or orientation
        position += 2 + length
    if frame is None:
        raise BadSampleError(
            f"The JPEG data ({size} bytes) has no frame header: it is cut off or damaged."
        )
    kind, bits, height, width, channels = frame
    # A Huffman-coded block of 64 samples takes at least one bit.
    if kind < _ARITHMETIC and height * width > MOST_PIXELS_A_BYTE * size:
        raise BadSampleError(
            f"The JPEG header promises {height} x {width} pixels, more than {size} bytes can hold."
        )
    variant = ""
    if channels == 4:
        variant = "cmyk"
    elif kind in _LOSSLESS:
        variant = "lossless"
    elif channels == 3 and _is_rgb(data, frame_at, adobe_color):
        variant = "rgb"
    sampling = ""
    if kind == _BASELINE and bits == 8 and 0 < scan_at < size - 4 and data[scan_at + 4] == channels:
        factors = data[frame_at + 11 : frame_at + 10 + 3 * channels : 3]
        sampling = _SAMPLINGS.get(bytes(factors), "")
    return ImageHeader(
        "jpeg",
        height,
        width,
        channels,
        U8 if bits <= 8 else U16,
        orientation or UPRIGHT,
        variant,
        "" if bits == 8 else f"a JPEG of {bits} bits a sample",
        sampling,
    )


def _is_rgb(data: memoryview, frame_at: int, adobe_color: int | None) -> bool:
    """True if the three components are red, green and blue, by the rules of libjpeg.

    They are if Adobe's segment says so, or, where there is none, if that is what they are called;
    but never in a JFIF file.
    """
    if adobe_color != 0 and (
        adobe_color is not None or bytes(data[frame_at + 10 : frame_at + 19 : 3]) != b"RGB"
    ):
        return False
    position = 2
    while position < frame_at:
        _, kind, length = _segment.unpack_from(data, position)
        if kind == _APP0 and data[position + 4 : position + 9] == _JFIF:
            return False
        position += 2 + length if kind not in _WITHOUT_LENGTH and kind != 0xFF else 1
    return True
