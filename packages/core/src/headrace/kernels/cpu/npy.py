"""Files of NumPy: what their headers say."""

from __future__ import annotations

import io
import math
import threading
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.lib import format as npy_format

from headrace.errors import BadSampleError
from headrace.types import DALIDataType, to_dali_type

PREFIX = 12
"""Bytes that tell how long the header is, in any version."""
_MAGIC = b"\x93NUMPY"
_READING = threading.Lock()
"""Held while NumPy reads a header, for which it builds a syntax tree. CPython 3.11 counts the depth
of trees for all threads together, and raises `SystemError` where two of them build one."""
_READ = {1: npy_format.read_array_header_1_0, 2: npy_format.read_array_header_2_0}


class NpyHeader(NamedTuple):
    """What an array in a file is."""

    dtype: np.dtype
    shape: tuple[int, ...]
    fortran: bool
    """Whether the first axis is the one along which elements lie side by side."""
    offset: int
    """Bytes before the elements."""

    @property
    def kind(self) -> DALIDataType:
        """The element type."""
        return to_dali_type(self.dtype)

    @property
    def end(self) -> int:
        """Bytes of the file, with its elements."""
        return self.offset + math.prod(self.shape) * self.dtype.itemsize

    def wrong_size(self, data: np.ndarray) -> BadSampleError:
        """The error for data that do not have as many bytes as the header announces."""
        return BadSampleError(
            f"Expected data numpy size {self.end - self.offset} bytes, as the header announces, "
            f"got {data.size - self.offset}: the file is cut, or has something behind its end."
        )

    def array(self, data: np.ndarray) -> np.ndarray:
        """The array, a view of the file's bytes; a copy where elements are not aligned.

        Raises
        ------
        BadSampleError
            If bytes are missing.
        """
        if data.size < self.end:
            raise self.wrong_size(data)
        elements = np.frombuffer(data[self.offset : self.end], self.dtype)
        if not elements.flags.aligned:
            elements = elements.copy()
        return elements.reshape(self.shape, order="F" if self.fortran else "C")


def header_size(prefix: bytes) -> int:
    """How many bytes there are before the elements, by the first `PREFIX` bytes of a file.

    Raises
    ------
    BadSampleError
        If they do not begin a file of NumPy.
    """
    if prefix[:6] != _MAGIC or len(prefix) < PREFIX:
        raise BadSampleError(
            "Got bad magic string for numpy header: the data is no file of NumPy (.npy), which "
            f"begins with {_MAGIC!r}, but begins with {prefix[:6]!r}."
        )
    version = prefix[6]
    if version not in (1, 2, 3):
        raise BadSampleError(f"The file of NumPy is of version {version}; 1 to 3 are known.")
    return (
        10 + int.from_bytes(prefix[8:10], "little")
        if version == 1
        else 12 + int.from_bytes(prefix[8:12], "little")
    )


@lru_cache(maxsize=4096)
def parse_header(header: bytes) -> NpyHeader:
    """What the `header_size` first bytes of a file say.

    Raises
    ------
    BadSampleError
        If they cannot be read, or the elements are of a type that no batch has.
    """
    file = io.BytesIO(header)
    file.seek(8)
    try:
        with _READING:
            shape, fortran, dtype = _READ[min(header[6], 2)](file, max_header_size=len(header))
    except (ValueError, SyntaxError, RecursionError) as error:
        raise BadSampleError(f"The header of the file of NumPy is damaged: {error}") from error
    if dtype.byteorder == ">":
        raise BadSampleError(
            f"The file of NumPy has numbers of type {dtype}: big-endian files are not supported. "
            "Save it as `array.astype(array.dtype.newbyteorder('='))`."
        )
    if dtype.kind not in "biuf" or dtype.itemsize > 8:
        raise BadSampleError(
            f"Unknown Numpy type string {dtype.str!r}: the file has elements of type {dtype}; "
            "integers, booleans and floating point numbers of up to 64 bits are known."
        )
    return NpyHeader(dtype, shape, fortran, len(header))


def header_of(data: np.ndarray) -> NpyHeader:
    """What the file with these bytes, uint8, is."""
    size = header_size(data[:PREFIX].tobytes())
    if data.size < size:
        raise BadSampleError("The header of the file of NumPy is cut.")
    return parse_header(data[:size].tobytes())
