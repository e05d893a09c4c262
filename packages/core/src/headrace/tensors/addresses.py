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
