"""Messages of protocol buffers: fields one after the other, a number with kind and its content."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from headrace.kernels.compilation import njit

VARINT, FIXED64, LENGTH, GROUP, GROUP_END, FIXED32 = range(6)
"""Kinds of fields: how long their content is."""

_LONGEST, _LONGEST_SIZE = 10, 5
"""Bytes of a number, and of one that is a size or the head of a field."""
_MOST_NUMBER = 2**29
_DEEPEST = 100
"""Groups within one another."""


@njit(nogil=True)
def read_varint(data: np.ndarray, at: int, stop: int, longest: int = _LONGEST) -> tuple[Any, Any]:
    """The integer of variable length at a place, int64, and the place after it, or -1."""
    value = np.uint64(0)
    for k in range(min(longest, stop - at)):
        byte = np.uint64(data[at + k])
        value |= (byte & np.uint64(127)) << np.uint64(7 * k)
        if byte < 128:
            return np.int64(value), at + k + 1
    return np.int64(0), -1


@njit(nogil=True)
def _read_head(data: np.ndarray, at: int, stop: int) -> tuple[Any, Any, Any]:
    """Number and kind of the field at a place, and the place after these; number 0: damaged."""
    head, at = read_varint(data, at, stop, _LONGEST_SIZE)
    number = head >> 3
    return (number if at >= 0 and number < _MOST_NUMBER else 0), head & 7, at


@njit(nogil=True)
def _span(data: np.ndarray, at: int, stop: int, kind: int) -> tuple[Any, Any]:
    """Begin and end of the content of a field, -1 if damaged; a group is none of these."""
    size = -1
    if kind == VARINT:
        return at, read_varint(data, at, stop)[1]
    if kind == LENGTH:
        size, at = read_varint(data, at, stop, _LONGEST_SIZE)
    elif kind == FIXED32:
        size = 4
    elif kind == FIXED64:
        size = 8
    return at, (at + size if at >= 0 and 0 <= size <= stop - at else -1)


@njit(nogil=True)
def _group_end(data: np.ndarray, at: int, stop: int, number: int) -> Any:
    """The place after the group of this number whose content begins at a place, or -1."""
    opened = np.empty(_DEEPEST, np.int64)
    opened[0], depth = number, 1
    while depth:
        number, kind, at = _read_head(data, at, stop)
        if number == 0:
            return -1
        if kind == GROUP:
            if depth == _DEEPEST:
                return -1
            opened[depth] = number
            depth += 1
        elif kind == GROUP_END:
            depth -= 1
            if opened[depth] != number:
                return -1
        else:
            at = _span(data, at, stop, kind)[1]
            if at < 0:
                return -1
    return at


@njit(nogil=True)
def read_field(data: np.ndarray, at: int, stop: int) -> tuple[Any, Any, Any, Any]:
    """The field at a place: number, kind, where its content begins, where it and the field end.

    The number is 0 if the message is damaged.
    """
    number, kind, at = _read_head(data, at, stop)
    if number and kind == GROUP:
        begin, end = at, _group_end(data, at, stop, number)
    elif number:
        begin, end = _span(data, at, stop, kind)
    else:
        begin, end = at, -1
    return (number if end >= 0 else 0), kind, begin, end


@njit(nogil=True)
def _table(data: np.ndarray, at: int, stop: int) -> tuple[Any, Any]:
    """True for a message that is whole; number, kind, begin and end of its fields.

    In place of a begin, fields of the kind `VARINT` have their value.
    """
    rows, count = np.empty((16, 4), np.int64), 0
    while at < stop:
        number, kind, begin, at = read_field(data, at, stop)
        if number == 0:
            return False, rows[:count]
        if count == len(rows):
            rows = np.concatenate((rows, np.empty_like(rows)))
        if kind == VARINT:
            begin = read_varint(data, begin, stop)[0]
        rows[count, 0], rows[count, 1], rows[count, 2], rows[count, 3] = number, kind, begin, at
        count += 1
    return True, rows[:count]


@njit(nogil=True)
def _unpack(data: np.ndarray, at: int, stop: int) -> tuple[Any, Any]:
    """True for a run of integers that is whole, and these, int64."""
    found, count = np.empty(stop - at, np.int64), 0
    while at < stop:
        found[count], at = read_varint(data, at, stop)
        if at < 0:
            return False, found[:0]
        count += 1
    return True, found[:count]


class Message(NamedTuple):
    """The fields of a message, in their order."""

    data: np.ndarray
    rows: list[list[int]]
    """Number, kind, where the content begins, or its value if it is a `VARINT`, and its end."""

    @classmethod
    def of(cls, data: np.ndarray) -> Message:
        """The fields of the message that uint8 `data` are."""
        whole, rows = _table(data, 0, data.size)
        if not whole:
            raise ValueError("the message is damaged")
        return cls(data, rows.tolist())

    def parts(self, number: int) -> list[np.ndarray]:
        """Contents of the fields of this number that have a length: messages, strings or bytes."""
        return [self.data[a:b] for n, kind, a, b in self.rows if n == number and kind == LENGTH]

    def integer(self, number: int) -> int | None:
        """The last integer of this number, int64."""
        return next((a for n, k, a, _ in self.rows[::-1] if n == number and k == VARINT), None)

    def integers(self, number: int) -> np.ndarray:
        """All integers of this number, int64: each a field of its own, or packed."""
        found: list[Any] = [np.zeros(0, np.int64)]
        for n, kind, begin, end in self.rows:
            if n == number and kind == LENGTH:
                whole, unpacked = _unpack(self.data, begin, end)
                if not whole:
                    raise ValueError("a list of integers is damaged")
                found.append(unpacked)
            elif n == number and kind == VARINT:
                found.append([begin])
        return np.concatenate(found, dtype=np.int64)

    def floats(self, number: int) -> np.ndarray:
        """All numbers of the type float32 of this number: each a field of its own, or packed."""
        kinds = (FIXED32, LENGTH)
        found = [self.data[a:b] for n, k, a, b in self.rows if n == number and k in kinds]
        if any(part.size % 4 for part in found):
            raise ValueError("a list of numbers is damaged")
        return np.concatenate([np.zeros(0, np.uint8), *found]).view("<f4")
