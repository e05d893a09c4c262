"""The orientation in a block of EXIF data, and how it turns an image."""

from __future__ import annotations

import struct

import numpy as np

UPRIGHT = 1
_ORIENTATION_TAG = 0x0112
_CODES = {1: "B", 3: "H", 4: "I"}


def orientation_of(exif: bytes | memoryview) -> int:
    """Orientation, 1 to 8, that a TIFF-structured EXIF block asks for; 0 where it says none.

    Takes what DALI takes: the value may be of any integer type, its count is ignored, values out
    of range count as upright, and a block that is cut off after the value is good enough.

    Source: CIPA DC-008 (Exif 2.32), section 4.5; the values are those of TIFF 6.0, tag 274.
    """
    if len(exif) < 14:
        return 0
    order = {b"II": "<", b"MM": ">"}.get(bytes(exif[:2]))
    if order is None:
        return 0
    magic, directory = struct.unpack_from(f"{order}HI", exif, 2)
    if magic != 42 or directory + 2 > len(exif):
        return 0
    (count,) = struct.unpack_from(f"{order}H", exif, directory)
    entry = struct.Struct(f"{order}HH4x2s")
    position = directory + 2
    for _ in range(count):
        if position + 10 > len(exif):
            break
        tag, kind, _ = entry.unpack_from(exif, position)
        if tag == _ORIENTATION_TAG:
            code = _CODES.get(kind)
            if code is None or position + 8 + struct.calcsize(code) > len(exif):
                return UPRIGHT
            (value,) = struct.unpack_from(order + code, exif, position + 8)
            return value if 1 <= value <= 8 else UPRIGHT
        position += 12
    return 0


def turned(orientation: int) -> bool:
    """True if `orientation` exchanges height and width."""
    return orientation >= 5


def mirrored(orientation: int) -> tuple[bool, bool]:
    """Flips of rows and of columns, after the exchange of the axes."""
    return orientation in (3, 4, 7, 8), orientation in (2, 3, 6, 7)


def upright(image: np.ndarray, orientation: int) -> np.ndarray:
    """A view of the HWC `image` as it is meant to be seen."""
    if turned(orientation):
        image = image.swapaxes(0, 1)
    rows, columns = mirrored(orientation)
    return image[:: -1 if rows else 1, :: -1 if columns else 1]


def stored_region(
    region: tuple[int, int, int, int], height: int, width: int, orientation: int
) -> tuple[int, int, int, int]:
    """Part of the stored image that `region` of the upright image comes from.

    Regions are first row and column, and one past the last; `height` and `width` are those of the
    upright image.
    """
    y0, x0, y1, x1 = region
    rows, columns = mirrored(orientation)
    if rows:
        y0, y1 = height - y1, height - y0
    if columns:
        x0, x1 = width - x1, width - x0
    return (x0, y0, x1, y1) if turned(orientation) else (y0, x0, y1, x1)
