"""The header of a PBM, PGM or PPM file. Source: the Netpbm format pages (pbm, pgm, ppm)."""

from __future__ import annotations

import re

from headrace.errors import BadSampleError
from headrace.kernels.cpu.decode.image_header import U8, U16, ImageHeader

_GAP = rb"(?:\s|#[^\r\n]*[\r\n])+"
_SIZE = re.compile(rb"P([1-6])" + _GAP + rb"(\d+)" + _GAP + rb"(\d+)" + rb"(?=\s|#)")
_MAXIMUM = re.compile(_GAP + rb"(\d+)\s")
# Comments may be long, but no sane file has more of them than this.
_LONGEST = 65536


def is_pnm(start: bytes) -> bool:
    """True if data that begins with `start` is a Netpbm image of the kinds P1 to P6."""
    return len(start) > 2 and start[0] == 0x50 and 0x31 <= start[1] <= 0x36 and start[2:3].isspace()


def read(data: memoryview) -> ImageHeader:
    """Header of the Netpbm file in `data`."""
    text = bytes(data[:_LONGEST])
    found = _SIZE.match(text)
    if not found:
        raise BadSampleError("The PNM header is cut off or damaged: width and height are missing.")
    kind, width, height = (int(group) for group in found.groups())
    maximum = 1
    if kind not in (1, 4):
        last = _MAXIMUM.match(text, found.end())
        if not last:
            raise BadSampleError("The PNM header is cut off or damaged: the maximum is missing.")
        maximum = int(last[1])
        if not 1 <= maximum <= 65535:
            raise BadSampleError(f"The PNM header gives the maximum {maximum}, not in 1...65535.")
    # Deep samples that do not use all of their 16 bits become their upper byte, as in DALI.
    dtype = U16 if maximum == 65535 else U8
    return ImageHeader("pnm", height, width, 3 if kind in (3, 6) else 1, dtype)
