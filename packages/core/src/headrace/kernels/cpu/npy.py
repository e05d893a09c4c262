"""Files of NumPy: what their headers say."""

from __future__ import annotations

import math
import re
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from headrace.errors import BadSampleError
from headrace.types import DALIDataType, to_dali_type

PREFIX = 12
"""Bytes that tell how long the header is, in any version."""
_MAGIC = b"\x93NUMPY"
_ENTRY = re.compile(
    r"""\s*(['"])(descr|fortran_order|shape)\1\s*:\s*
    (?:(['"])(?P<descr>[^'"\\]*)\3|(?P<fortran_order>True|False)
    |\((?P<shape>\s*|(?:\s*-?\d{1,19}L?\s*,)+(?:\s*-?\d{1,19}L?)?\s*)\)|(?P<fields>\[.*\]))
    \s*(?:,|$)""",
    re.VERBOSE | re.ASCII,
)
"""One of the three items of the dictionary that a header is; Python 2 put an L after integers."""
_TYPE = re.compile(r"[<>=|]?[biuf]\d\d?")
_MOST_BYTES = 1 << 62


class NpyHeader(NamedTuple):
    """Type, shape and order of an array in a file."""

    dtype: np.dtype
    """Type of the elements, in the order of bytes of this machine."""
    stored: np.dtype
    """The same, in the order of the file."""
    shape: tuple[int, ...]
    fortran: bool
    """True if the first axis is the one along which elements lie side by side."""
    offset: int
    """Bytes before the elements."""
    end: int
    """Bytes of the file, with its elements."""

    @property
    def is_plain(self) -> bool:
        """True if elements lie in the file as they do in an array."""
        return self.stored == self.dtype and not self.fortran

    @property
    def kind(self) -> DALIDataType:
        """The element type."""
        return to_dali_type(self.dtype)

    def wrong_size(self, data: np.ndarray) -> BadSampleError:
        """The error for data that do not have as many bytes as the header announces."""
        return BadSampleError(
            f"Expected data numpy size {self.end - self.offset} bytes, as the header announces, "
            f"got {data.size - self.offset}: the file is cut, or has something after its end."
        )

    def array(self, data: np.ndarray) -> np.ndarray:
        """The array, a view of the file's bytes; a copy where they do not lie as elements do."""
        elements = np.frombuffer(data[self.offset : self.end], self.stored)
        if not elements.flags.aligned or self.stored != self.dtype:
            elements = elements.astype(self.dtype)
        return elements.reshape(self.shape, order="F" if self.fortran else "C")


@lru_cache(maxsize=64)
def header_size(prefix: bytes) -> int:
    """Number of bytes before the elements, from the first `PREFIX` bytes of a file."""
    if prefix[:6] != _MAGIC or len(prefix) < PREFIX:
        raise BadSampleError(
            "Got bad magic string for numpy header: the data is no file of NumPy (.npy), which "
            f"begins with {_MAGIC!r}, but begins with {prefix[:6]!r}."
        )
    version = prefix[6]
    if version not in (1, 2, 3) or prefix[7]:
        raise BadSampleError(
            f"The file of NumPy is of version {version}.{prefix[7]}; 1.0, 2.0 and 3.0 are known."
        )
    return (
        10 + int.from_bytes(prefix[8:10], "little")
        if version == 1
        else 12 + int.from_bytes(prefix[8:12], "little")
    )


@lru_cache(maxsize=4096)
def parse_header(header: bytes) -> NpyHeader:
    """Parse the `header_size` first bytes of a file."""
    text = header[10 if header[6] == 1 else 12 :].decode("latin-1").strip(" \t\r\n\f")
    found: dict[str, str] = {}
    at, end = 1, len(text) - 1
    while text[at:end].strip(" \t\r\n\f"):
        item = _ENTRY.match(text, at, end)
        value = item and item[item[2] if item["fields"] is None else "fields"]
        if item is None or value is None or item[2] in found:
            raise _damaged(text[at:end])
        found[item[2]] = value
        at = item.end()
    if text[:1] + text[-1:] != "{}" or len(found) < 3:
        raise _damaged(text)
    descr, words = found["descr"], found["shape"].replace("L", "").split(",")
    shape = tuple(int(word) for word in words if word.strip())
    try:
        stored = np.dtype(descr) if _TYPE.fullmatch(descr) else None
    except TypeError:
        stored = None
    if stored is None or stored.itemsize > 8:
        what = "of several fields" if descr[:1] == "[" else f"of type {descr}"
        raise BadSampleError(
            f"Unknown Numpy type string {descr!r}: the file has elements {what}; "
            "integers, booleans and floating point numbers of up to 64 bits are known."
        )
    if min(shape, default=0) < 0:
        raise BadSampleError(f"The header of the file of NumPy has the negative extents {shape}.")
    if max(math.prod(max(n, 1) for n in shape) * stored.itemsize, *shape, 0) > _MOST_BYTES:
        raise BadSampleError(f"The file of NumPy announces {shape} elements, more than any has.")
    fortran = found["fortran_order"] == "True"
    dtype, end = stored.newbyteorder("="), len(header) + math.prod(shape) * stored.itemsize
    return NpyHeader(dtype, stored, shape, fortran, len(header), end)


def _damaged(text: str) -> BadSampleError:
    return BadSampleError(
        f"The header of the file of NumPy is damaged: {text[:200]!r} is not a dictionary of "
        "`descr`, `fortran_order` and `shape`."
    )


def header_of(data: np.ndarray) -> NpyHeader:
    """Read the header from the bytes of a file, uint8."""
    size = header_size(data[:PREFIX].tobytes())
    if data.size < size:
        raise BadSampleError("The header of the file of NumPy is cut.")
    header = parse_header(data[:size].tobytes())
    if data.size < header.end:
        raise header.wrong_size(data)
    return header
