"""Images in FITS files: headers of cards, and big-endian numbers that may be scaled.

A file is units, each of a header and data, in blocks of 2880 bytes.
"""

from __future__ import annotations

import io
import math
import re
from typing import Any, NamedTuple

import numpy as np

from headrace._optional import import_optional
from headrace.errors import BadSampleError

_BLOCK_BYTES = 2880
_CARD_BYTES = 80
_TYPES = {8: "u1", 16: ">i2", 32: ">i4", 64: ">i8", -32: ">f4", -64: ">f8"}
"""By BITPIX."""
_OTHER_SIGN = {8: -128, 16: 1 << 15, 32: 1 << 31, 64: 1 << 63}
"""By BITPIX, the BZERO that makes unsigned numbers of signed ones, or int8 of uint8."""
_CARD = re.compile(r"([A-Z0-9_-]{1,8}) *= +('(?:[^']|'')*'|[^ /]+)")


class _Unit(NamedTuple):
    """A header, and where its data lie."""

    cards: dict[str, str]
    begin: int
    end: int

    def integer(self, name: str, default: int | None = None) -> int:
        value = self.cards.get(name)
        if value is None and default is not None:
            return default
        try:
            return int(value or "")
        except ValueError as error:
            raise BadSampleError(f"The FITS file is damaged: {name} is {value}.") from error

    def extents(self) -> list[int]:
        """The axes, the one along which numbers lie side by side last."""
        return [self.integer(f"NAXIS{k}") for k in range(self.integer("NAXIS"), 0, -1)]


def read_images(data: np.ndarray, units: tuple[int, ...]) -> list[np.ndarray]:
    """The images in some units of a file, whose first one has number 1."""
    headers = _headers(data, max(units))
    return [_image(data, number, headers[number - 1]) for number in units]


def _headers(data: np.ndarray, count: int) -> list[_Unit]:
    found: list[_Unit] = []
    at = 0
    while len(found) < count:
        if at >= data.size:
            raise BadSampleError(
                f"tried to move past end of file: the FITS file has {len(found)} HDUs, and number "
                f"{count} is to be read (`hdu_indices` count from 1)."
            )
        unit = _header(data, at)
        found.append(unit)
        at = unit.begin + -(-(unit.end - unit.begin) // _BLOCK_BYTES) * _BLOCK_BYTES
    return found


def _header(data: np.ndarray, at: int) -> _Unit:
    cards: dict[str, str] = {}
    first = at
    while True:
        block = data[at : at + _BLOCK_BYTES].tobytes().decode("latin-1")
        if at == first and not block.startswith(("SIMPLE  =", "XTENSION=")):
            raise BadSampleError(
                "1st key not SIMPLE or XTENSION: the data is no FITS file, or damaged."
            )
        if len(block) < _BLOCK_BYTES:
            raise BadSampleError("The FITS file is cut within a header.")
        at += _BLOCK_BYTES
        for begin in range(0, _BLOCK_BYTES, _CARD_BYTES):
            card = block[begin : begin + _CARD_BYTES]
            if card.rstrip() == "END":
                unit = _Unit(cards, at, at)
                extents = unit.extents()
                elements = math.prod(extents) if extents else 0
                size = abs(unit.integer("BITPIX")) // 8 * unit.integer("GCOUNT", 1)
                return unit._replace(end=at + size * (unit.integer("PCOUNT", 0) + elements))
            match = _CARD.match(card)
            if match:
                cards[match[1]] = match[2].strip("'").rstrip()


def _image(data: np.ndarray, number: int, unit: _Unit) -> np.ndarray:
    cards = unit.cards
    if cards.get("ZIMAGE") == "T":
        return _decompressed(data, number)
    if cards.get("XTENSION", "IMAGE") != "IMAGE":
        raise BadSampleError(
            f"Only IMAGE_HDUs are supported! Number {number} is a {cards['XTENSION']}."
        )
    extents, bits = unit.extents(), unit.integer("BITPIX")
    if not extents:
        raise BadSampleError(
            "NAXIS (image dimensions) value for each HDU has to be greater than 0! That of number "
            f"{number} is 0."
        )
    if bits not in _TYPES:
        raise BadSampleError(f"The FITS file is damaged: BITPIX is {bits}.")
    if unit.end > data.size:
        raise BadSampleError(f"The FITS file is cut within the data of HDU number {number}.")
    dtype = np.dtype(_TYPES[bits])
    stop = unit.begin + math.prod(extents) * dtype.itemsize
    numbers = np.frombuffer(data[unit.begin : stop], dtype).reshape(extents)
    try:
        scale, zero = float(cards.get("BSCALE", 1)), float(cards.get("BZERO", 0))
    except ValueError as error:
        raise BadSampleError("The FITS file is damaged: BSCALE or BZERO is no number.") from error
    values = numbers.astype(dtype.newbyteorder("="))
    if (scale, zero) == (1, 0):
        return values
    if scale == 1 and zero == _OTHER_SIGN.get(bits):
        kind = np.dtype(f"u{dtype.itemsize}")
        unsigned = values.view(kind) ^ np.array(abs(int(zero)), kind)
        return unsigned.view("i1") if bits == 8 else unsigned
    wide: Any = np.float64 if bits in (32, 64, -64) else np.float32
    scaled: np.ndarray = values.astype(wide) * wide(scale) + wide(zero)
    return scaled


def _decompressed(data: np.ndarray, number: int) -> np.ndarray:
    fits: Any = import_optional(
        "astropy.io.fits",
        purpose="Reading compressed images in FITS files",
        install="headrace[fits]",
    )
    try:
        with fits.open(io.BytesIO(data.tobytes()), ignore_blank=True) as units:
            image = units[number - 1].data
            return np.asarray(image, image.dtype.newbyteorder("="))
    except (OSError, ValueError, IndexError, KeyError, TypeError) as error:
        raise BadSampleError(
            f"The compressed image in HDU number {number} of the FITS file is damaged: {error}."
        ) from error
