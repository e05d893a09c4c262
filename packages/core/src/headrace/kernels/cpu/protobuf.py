"""Messages of protocol buffers: fields one behind the other, a number with kind and its content."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

_VARINT, _FIXED64, _LENGTH, _FIXED32 = 0, 1, 2, 5

Bytes = bytes | memoryview


def fields(data: Bytes, *, numbers: bool = False) -> Iterator[tuple[int, Bytes]]:
    """Number and content of each field; single integers only where they are expected.

    Raises
    ------
    ValueError, IndexError
        If the message is damaged.
    """
    at, end = 0, len(data)
    while at < end:
        tag, at = varint(data, at)
        kind = tag & 7
        if kind == _LENGTH:
            size, at = varint(data, at)
        elif kind == _FIXED32:
            size = 4
        elif kind == _FIXED64:
            size = 8
        elif kind == _VARINT:
            _, stop = varint(data, at)
            size = stop - at
        else:
            raise ValueError("a field of an unknown kind")
        if at + size > end or (kind == _VARINT and not numbers):
            raise ValueError("a field is cut, or not where it belongs")
        yield tag >> 3, data[at : at + size]
        at += size


def integers(runs: Iterable[Bytes]) -> np.ndarray:
    """The integers, int64, that are in a field: each a run of its own, or all packed in one."""
    found: list[int] = []
    for run in runs:
        at = 0
        while at < len(run):
            value, at = varint(run, at)
            found.append(value)
    return np.array(found, np.uint64).astype(np.int64)


def varint(data: Bytes, at: int) -> tuple[int, int]:
    """The integer of variable length at a place, and the place behind it."""
    value = data[at]
    at += 1
    if value < 128:
        return value, at
    value &= 127
    shift = 7
    while True:
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value & 0xFFFFFFFFFFFFFFFF, at
        shift += 7
        if shift > 63:
            raise ValueError("a number of more than 64 bits")
