"""Headers of a batch of JPEG files at once, compiled: those that are as most are.

Most files of a data set are JPEG without any peculiarity. Where there are hundreds at a time, what
the interpreter would do for each of them is worth avoiding: `read` takes 3 microseconds for a file
here, and far more where the processor's caches have been used for other things.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from functools import cache, lru_cache

import numba
import numpy as np

from headrace.kernels.compilation import njit
from headrace.kernels.cpu.array_facts import HEAD_BYTES, number_at
from headrace.kernels.cpu.decode.exif import UPRIGHT
from headrace.kernels.cpu.decode.header import MOST_PIXELS
from headrace.kernels.cpu.decode.image_header import U8, ImageHeader
from headrace.kernels.cpu.decode.jpeg_header import MOST_PIXELS_A_BYTE
from headrace.kernels.cpu.pointers import pointer
from headrace.tensors.addresses import addresses_of

SAMPLINGS = ("", "gray", "4:4:4", "4:2:2", "4:2:0", "4:4:0")
"""Values of `ImageHeader.sampling`, by the numbers that stand for them here."""
_R = ord("R")
_GRAY, _444, _422, _420, _440 = range(1, 6)
_E, _X, _I, _F = b"Exif"


@dataclass(frozen=True, slots=True)
class ScannedJpegs:
    """Headers of a batch of JPEG files.

    `addresses`, `sizes`: uint64 ``(samples,)``: where each file lies in memory, and its length; the
    latter is 0 where its bytes have gaps. `facts`: int64 ``(samples, 5)``: height, width, channels,
    sampling (see `SAMPLINGS`) and `kind_of` of each plain file, and 0 for any other. A plain file
    is a JPEG that has a `sampling`, no orientation and no `variant`, and ends with the marker of
    the end. `plain`: how many files are plain.
    """

    addresses: np.ndarray
    sizes: np.ndarray
    facts: np.ndarray
    plain: int

    def headers(self) -> list[ImageHeader | None]:
        """The header of each plain file: what `read_header` would say."""
        return [
            _header(height, width, channels, sampling) if sampling else None
            for height, width, channels, sampling, _ in self.facts.tolist()
        ]


def plain_header(data: np.ndarray) -> ImageHeader | None:
    """The header of a single file, uint8, contiguous and writable, if it is a plain one."""
    facts = np.zeros(5, np.int64)
    _scan_single(data, facts)
    height, width, channels, sampling, _ = facts.tolist()
    return _header(height, width, channels, sampling) if sampling else None


@lru_cache(maxsize=1024)
def _header(height: int, width: int, channels: int, sampling: int) -> ImageHeader:
    return ImageHeader("jpeg", height, width, channels, U8, UPRIGHT, "", "", SAMPLINGS[sampling])


def kind_of(height: int, width: int, sampling: int) -> int:
    """A number for images of about this size, less than `KINDS`: what a decoder takes of them."""
    return (height.bit_length() * 32 + width.bit_length()) * 8 + sampling


KINDS = 17 * 32 * 8
_SHORTEST = 32
"""No shorter file is looked at."""
_FEW = 128
"""So few files are looked at without letting other threads have the interpreter: it would take
longer to get it back.
"""


def scan_jpegs(rows: list[np.ndarray]) -> ScannedJpegs:
    """Look at the headers of files, each a uint8 array."""
    count = len(rows)
    if _arrays_are_known():
        places = np.empty((2, count), np.uint64)
        objects = np.fromiter(map(id, rows), np.uint64, count)
        _find(objects, HEAD_BYTES, places)
        addresses, sizes = places
    else:
        addresses = addresses_of(rows)
        sizes = np.array([row.size if row.strides == (1,) else 0 for row in rows], np.uint64)
    facts = np.zeros((count, 5), np.int64)
    plain = (_scan_few if count <= _FEW else _scan)(addresses, sizes, facts)
    return ScannedJpegs(addresses, sizes, facts, plain)


@cache
def _arrays_are_known() -> bool:
    """True if arrays are laid out in memory as NumPy's `PyArrayObject_fields`, in C.

    To ask 64 arrays where they are takes 50 microseconds of the interpreter's time; to look, two.
    """
    if sys.implementation.name != "cpython":
        return False
    some = np.arange(24, dtype=np.uint8)
    rows = [some, some[3:11], some[1::5], some[:0]]
    places = np.empty((2, len(rows)), np.uint64)
    _find(np.fromiter(map(id, rows), np.uint64, len(rows)), HEAD_BYTES, places)
    return places.tolist() == [[row.ctypes.data for row in rows], [24, 8, 0, 0]]


@njit()
def _find(objects: np.ndarray, head_bytes: int, places: np.ndarray) -> None:
    """Addresses and lengths of one-dimensional arrays of bytes, given as objects.

    After the head come the address of the elements, the number of dimensions (an ``int``), and the
    addresses of extents and strides.
    """
    for i in range(objects.size):
        fields = objects[i] + np.uint64(head_bytes)
        places[0, i] = number_at(fields)
        extent = number_at(number_at(fields + np.uint64(16)))
        step = number_at(number_at(fields + np.uint64(24)))
        places[1, i] = extent if step == 1 else np.uint64(0)


@njit(nogil=True)
def _scan(addresses: np.ndarray, sizes: np.ndarray, facts: np.ndarray) -> int:
    plain = 0
    for i in range(addresses.size):
        if sizes[i] >= _SHORTEST:
            scan_one(numba.carray(pointer(addresses[i]), (np.int64(sizes[i]),), np.uint8), facts[i])
            plain += facts[i, 3] != 0
    return plain


@njit(nogil=True)
def scan_one(data: np.ndarray, facts: np.ndarray) -> None:
    """Write down the facts, which are 0, if `data` is a plain file. Mirrors `jpeg_header.read`."""
    size = data.size
    if size < _SHORTEST:
        return
    if data[0] != 0xFF or data[1] != 0xD8 or data[2] != 0xFF:
        return
    if data[size - 2] != 0xFF or data[size - 1] != 0xD9:
        return
    position = 2
    frame = 0
    while True:
        if position + 16 > size or data[position] != 0xFF:
            return
        kind = data[position + 1]
        length = 256 * int(data[position + 2]) + data[position + 3]
        if kind == 0xDA:
            break
        if kind == 0xC0:
            if frame:
                return
            frame = position
        elif kind == 0xE1:
            if (
                data[position + 4] == _E
                and data[position + 5] == _X
                and data[position + 6] == _I
                and data[position + 7] == _F
            ):
                return  # there may be an orientation
        elif kind == 0xEE:
            if data[position + 15] == 0:
                return  # if it is Adobe's, the file may not be YCbCr
        elif kind < 0xC4 or (0xC4 < kind < 0xDB) or kind == 0xFF:
            return  # another kind of frame, or a segment of another form
        if length < 2:
            return
        position += 2 + length
    if not frame or data[frame + 4] != 8:
        return
    height = 256 * int(data[frame + 5]) + data[frame + 6]
    width = 256 * int(data[frame + 7]) + data[frame + 8]
    channels = int(data[frame + 9])
    if data[position + 4] != channels or frame + 10 + 3 * channels > size:
        return
    if not 0 < height * width <= min(MOST_PIXELS, MOST_PIXELS_A_BYTE * size):
        return
    sampling = 0
    first = int(data[frame + 11])
    if channels == 1 and first == 0x11:
        sampling = _GRAY
    elif channels == 3 and data[frame + 14] == 0x11 and data[frame + 17] == 0x11:
        if data[frame + 10] == _R:
            return  # it may be called so, and be RGB
        if first == 0x11:
            sampling = _444
        elif first == 0x21:
            sampling = _422
        elif first == 0x22:
            sampling = _420
        elif first == 0x12:
            sampling = _440
    if sampling:
        facts[0] = height
        facts[1] = width
        facts[2] = channels
        facts[3] = sampling
        facts[4] = (_bits(height) * 32 + _bits(width)) * 8 + sampling


@njit(nogil=True)
def _bits(number: int) -> int:
    count = 0
    while number:
        number >>= 1
        count += 1
    return count


# The same, but they keep the interpreter.
_scan_few, _scan_single = njit()(_scan.py_func), njit()(scan_one.py_func)
