"""Memory addresses of arrays, many at once."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np

_byte_of = ctypes.c_char.from_buffer
_address_of = ctypes.addressof


def addresses_of(arrays: Sequence[np.ndarray]) -> np.ndarray:
    """The address of the first element of each array, uint64 ``(arrays,)``.

    What ``array.ctypes`` says takes a microsecond and a half each, and this a third of that.
    """
    first = arrays[0] if len(arrays) > 1 else None
    if first is arrays[-1] and all(array is first for array in arrays):  # the same for all samples
        return np.full(len(arrays), first.ctypes.data, np.uint64)
    try:
        found = [_address_of(_byte_of(array)) for array in arrays]  # type: ignore[arg-type]
    except (TypeError, ValueError, BufferError):  # read-only, with gaps, or without elements
        found = [array.__array_interface__["data"][0] for array in arrays]
    return np.array(found, np.uint64)


def neighbours(begin: int, pitch: int, count: int) -> np.ndarray:
    """So many addresses, each by `pitch` larger than the one before, int64."""
    if count == 1:
        return np.array([begin], np.int64)
    return np.arange(begin, begin + pitch * count, pitch) if pitch else np.full(count, begin)


def addresses_in(values: np.ndarray, indices: Sequence[int]) -> np.ndarray:
    """Addresses of elements of `values` along its outermost axis, int64."""
    begin, pitch = values.__array_interface__["data"][0], values.strides[0]
    first, count = indices[0], len(indices)
    if indices[-1] - first == count - 1:
        return neighbours(begin + first * pitch, pitch, count)
    found: np.ndarray = np.array(indices, np.int64) * pitch + begin
    return found
