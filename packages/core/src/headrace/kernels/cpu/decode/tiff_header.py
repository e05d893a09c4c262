"""The header of a TIFF or BigTIFF file. Source: TIFF 6.0 (Adobe 1992), BigTIFF (libtiff 2008)."""

from __future__ import annotations

import struct

import numpy as np

from headrace.errors import BadSampleError
from headrace.kernels.cpu.decode.exif import UPRIGHT
from headrace.kernels.cpu.decode.image_header import F32, U8, U16, ImageHeader

SIGNATURES = (b"II*\0", b"MM\0*", b"II+\0", b"MM\0+")

_WIDTH, _HEIGHT, _BITS, _COMPRESSION, _COLOR = 256, 257, 258, 259, 262
_ORIENTATION, _CHANNELS, _PLANAR, _EXTRA_SAMPLES, _SAMPLE_FORMAT = 274, 277, 284, 338, 339
_WANTED = frozenset(
    (
        _WIDTH,
        _HEIGHT,
        _BITS,
        _COMPRESSION,
        _COLOR,
        _ORIENTATION,
        _CHANNELS,
        _PLANAR,
        _SAMPLE_FORMAT,
    )
)
_CODES = {1: "B", 3: "H", 4: "I", 16: "Q"}
_PALETTE = 3

# What libtiff is built with in the decoders: uncompressed, CCITT, LZW, JPEG, Deflate, PackBits, ...
# Others give an image of zeros there without an error.
_COMPRESSIONS = frozenset((1, 2, 3, 4, 5, 6, 7, 8, 32771, 32773, 32809, 32946, 34676, 34677, 50000))


def read(data: memoryview) -> ImageHeader:
    """Header of the first image of the TIFF file in `data`."""
    tags = _first_directory(data)
    if _WIDTH not in tags or _HEIGHT not in tags:
        raise BadSampleError("The first TIFF directory has no image width or height.")
    bits = tags.get(_BITS, (1,))[0]
    kind = tags.get(_SAMPLE_FORMAT, (1,))[0]
    palette = tags.get(_COLOR, (1,))[0] == _PALETTE
    channels = 3 if palette else tags.get(_CHANNELS, (1,))[0]
    orientation = tags.get(_ORIENTATION, (UPRIGHT,))[0]
    compression = tags.get(_COMPRESSION, (1,))[0]
    unsupported = ""
    dtype = _dtype(kind, bits, palette)
    if dtype is None:
        unsupported = f"a TIFF of {bits}-bit {_KINDS.get(kind, 'unknown')} samples"
    elif compression not in _COMPRESSIONS:
        unsupported = f"a TIFF with compression {compression}"
    elif tags.get(_PLANAR, (1,))[0] == 2 and channels > 1 and dtype != U8:
        # The decoders return such images, but with wrong pixels.
        unsupported = f"a TIFF of {bits}-bit samples in separate planes"
    return ImageHeader(
        "tiff",
        tags[_HEIGHT][0],
        tags[_WIDTH][0],
        channels,
        dtype,
        orientation if 1 <= orientation <= 8 else UPRIGHT,
        unsupported=unsupported,
    )


_KINDS = {1: "unsigned", 2: "signed", 3: "floating point"}


def _dtype(kind: int, bits: int, palette: bool) -> np.dtype | None:
    if palette:
        return U16  # the colours of a palette have 16 bits
    if kind == 3:
        return F32 if bits == 32 else None
    if kind == 1 and bits <= 16:
        return U8 if bits <= 8 else U16
    return None


def as_stored(data: np.ndarray) -> np.ndarray:
    """The TIFF file in `data`, its alpha declared to be multiplied into the colours already.

    libtiff multiplies 8-bit colours by an alpha that is declared otherwise (ExtraSamples 2). It
    does so here too where channels are stored in separate planes, as in DALI. `data` itself is
    returned where nothing is to change.
    """
    view = data.data
    places = {tag: (code, where) for tag, code, where in _entries(view)}
    if _EXTRA_SAMPLES not in places or _value(view, *places[_EXTRA_SAMPLES])[0] != 2:
        return data
    if _PLANAR in places and _value(view, *places[_PLANAR])[0] == 2:
        return data
    code, where = places[_EXTRA_SAMPLES]
    changed = data.copy()
    struct.pack_into(code, changed.data, where, 1)
    return changed


def _first_directory(data: memoryview) -> dict[int, tuple[int, ...]]:
    # Only the first value of a tag matters: it is the same for all channels.
    return {t: _value(data, c, w) for t, c, w in _entries(data) if t in _WANTED}


def _value(data: memoryview, code: str, where: int) -> tuple[int, ...]:
    try:
        return struct.unpack_from(code, data, where)
    except (struct.error, OverflowError):
        raise _cut_off(data) from None


def _entries(data: memoryview) -> list[tuple[int, str, int]]:
    """Tags of whole numbers in the first directory: tag, format and place of its first value."""
    order = "<" if data[0] == 0x49 else ">"
    is_big = 43 in (data[2], data[3])
    start, number, counted, size, room = (8, "Q", "Q", 20, 8) if is_big else (4, "I", "H", 12, 4)
    offset, entry = struct.Struct(order + number), struct.Struct(f"{order}HH{number}")
    found = []
    try:
        (position,) = offset.unpack_from(data, start)
        (count,) = struct.unpack_from(order + counted, data, position)
        position += struct.calcsize(order + counted)
        for _ in range(count):
            tag, kind, values = entry.unpack_from(data, position)
            code = _CODES.get(kind)
            if code is not None and values > 0:
                where = position + entry.size
                if struct.calcsize(code) * values > room:
                    (where,) = offset.unpack_from(data, where)
                found.append((tag, f"{order}{code}", where))
            position += size
        return found
    except (struct.error, OverflowError):
        raise _cut_off(data) from None


def _cut_off(data: memoryview) -> BadSampleError:
    return BadSampleError(
        f"The first TIFF directory lies beyond the end of the data ({len(data)} bytes): "
        "the file is cut off or damaged."
    )
