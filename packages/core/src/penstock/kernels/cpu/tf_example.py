"""Messages of TensorFlow's ``Example``: the features of a record.

A message of protocol buffers is fields one behind the other: a number with kind and name, and the
content. An ``Example`` is a map from names to lists of bytes, of float32 or of int64.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator

import numpy as np

from penstock.errors import BadSampleError

BYTES, FLOATS, INTEGERS = 1, 2, 3
"""Kinds of lists, by the numbers of their fields in a ``Feature``."""
_VARINT, _LENGTH, _FIXED32, _FIXED64 = 0, 2, 5, 1

Values = list[bytes] | np.ndarray


def parse_example(data: bytes, wanted: Collection[bytes]) -> dict[bytes, tuple[int, Values]]:
    """The features of these names that a record has: kind of list, and values.

    Raises
    ------
    BadSampleError
        If the message is damaged.
    """
    found = {}
    try:
        for _, features in _fields(data):
            for _, entry in _fields(features):
                parts = dict(_fields(entry))
                name = parts.get(1, b"")
                if name in wanted:
                    kind, content = next(iter(_fields(parts.get(2, b""))), (0, b""))
                    found[name] = kind, _values(kind, content)
    except (IndexError, ValueError, TypeError) as error:
        raise BadSampleError("The record is no `Example` of TensorFlow, or damaged.") from error
    return found


def _values(kind: int, content: bytes) -> Values:
    if kind == BYTES:
        return [value for _, value in _fields(content)]
    numbers: list[bytes] = [value for _, value in _fields(content, numbers=kind == INTEGERS)]
    if kind == FLOATS:
        return np.frombuffer(b"".join(numbers), "<f4")
    integers: list[int] = []
    for run in numbers:  # packed, or a single number
        at = 0
        while at < len(run):
            value, at = _varint(run, at)
            integers.append(value)
    return np.array(integers, np.uint64).astype(np.int64)


def _varint(data: bytes, at: int) -> tuple[int, int]:
    """The number of variable length at a place, and the place behind it."""
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


def _fields(data: bytes, *, numbers: bool = False) -> Iterator[tuple[int, bytes]]:
    """Name and content of each field; single numbers only where they are expected."""
    at, end = 0, len(data)
    while at < end:
        tag, at = _varint(data, at)
        kind = tag & 7
        if kind == _LENGTH:
            size, at = _varint(data, at)
        elif kind == _FIXED32:
            size = 4
        elif kind == _FIXED64:
            size = 8
        elif kind == _VARINT:
            _, stop = _varint(data, at)
            size = stop - at
        else:
            raise ValueError("a field of an unknown kind")
        if at + size > end or (kind == _VARINT and not numbers):
            raise ValueError("a field is cut, or not where it belongs")
        yield tag >> 3, data[at : at + size]
        at += size
