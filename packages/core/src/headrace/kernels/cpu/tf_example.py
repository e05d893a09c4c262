"""Records of TensorFlow: messages in frames with checksums, and what is in an ``Example``.

An ``Example`` is a map from names to lists of bytes, of float32 or of int64. Its parts may come in
several pieces, which are put together: of a name that comes twice the last counts, and of lists of
several types; lists of one type are joined.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

from headrace.kernels.compilation import njit
from headrace.kernels.cpu.crc32c import crc32c, eight_bytes
from headrace.kernels.cpu.pointers import pointer
from headrace.kernels.cpu.protobuf import FIXED32, LENGTH, VARINT, read_field, read_varint

BYTES, FLOATS, INTEGERS = 1, 2, 3
"""Kinds of lists, by the numbers of their fields in a ``Feature``; 0 is none."""
KIND, COUNT, BEGIN, END, ENTRY, ENTRY_END = range(6)
"""Columns of a feature: kind and length of its list, begin and end of the first of its bytes in the
record, and of its entry of the map, for `read_numbers`."""

HEAD_BYTES, TAIL_BYTES = 12, 4
"""Before a message its length and a checksum of that; after it one of the message."""
WHOLE, OTHER_LENGTH, WRONG_LENGTH_SUM, WRONG_SUM, DAMAGED, SEQUENCE = range(6)
"""States of a record."""


@njit(nogil=True)
def _four_bytes(data: np.ndarray, at: int) -> Any:
    found = np.uint64(0)
    for k in range(4):
        found |= np.uint64(data[at + k]) << np.uint64(8 * k)
    return found


@njit(nogil=True)
def _checksum(data: np.ndarray, start: int, stop: int) -> Any:
    """The checksum of bytes as records have it: turned by 15 bits, with a number added."""
    crc = crc32c(data, start, stop)
    turned = (crc >> np.uint64(15)) | (crc << np.uint64(17))
    return (turned + np.uint64(0xA282EAD8)) & np.uint64(0xFFFFFFFF)


@njit(nogil=True)
def check_length(head: np.ndarray) -> Any:
    """The length of a message by the head of its record; -1 if that has a wrong checksum.

    A checksum of 0 is none: some programs write them so.
    """
    said = _four_bytes(head, 8)
    length = np.int64(eight_bytes(head, 0))
    return length if length >= 0 and said in (np.uint64(0), _checksum(head, 0, 8)) else -1


@njit(nogil=True)
def _check_frame(record: np.ndarray) -> int:
    """Length and checksums of a record; where both of these are 0, it has none."""
    size = record.size - HEAD_BYTES - TAIL_BYTES
    if size < 0 or eight_bytes(record, 0) != np.uint64(size):
        return OTHER_LENGTH
    of_length = _four_bytes(record, 8)
    of_message = _four_bytes(record, HEAD_BYTES + size)
    if of_length == 0 and of_message == 0:
        return WHOLE
    if of_length != _checksum(record, 0, 8):
        return WRONG_LENGTH_SUM
    return WHOLE if of_message == _checksum(record, HEAD_BYTES, HEAD_BYTES + size) else WRONG_SUM


@njit(nogil=True)
def find_features(
    record: np.ndarray, names: np.ndarray, ends: np.ndarray, found: np.ndarray
) -> int:
    """Check a record, and find the features of these names in its message.

    `record`: uint8: the message in its frame. `names`, `ends`: uint8, int64: the names, one after
    the other, and where each ends. `found`: int64 ``(names, 6)``: what is found of each; of the
    kind 0 where the record lacks it.
    """
    found[:] = 0
    wrong = _check_frame(record)
    if wrong != WHOLE:
        return wrong
    at, stop, in_lists = HEAD_BYTES, record.size - TAIL_BYTES, False
    while at < stop:
        number, kind, begin, at = read_field(record, at, stop)
        if number == 0:
            return DAMAGED
        if kind == LENGTH and number == 1:
            if not _find_in_map(record, begin, at, names, ends, found):
                return DAMAGED
        elif kind == LENGTH and number == 2:
            in_lists = True
    return SEQUENCE if in_lists and _are_lists(record, names, ends, found) else WHOLE


@njit(nogil=True)
def _find_in_map(
    data: np.ndarray,
    at: int,
    stop: int,
    names: np.ndarray,
    ends: np.ndarray,
    found: np.ndarray,
) -> bool:
    """Find features in a piece of the map; False if it is damaged."""
    other, integers, floats = np.zeros(6, np.int64), np.empty(0, np.int64), np.empty(0, np.uint32)
    while at < stop:
        number, kind, begin, at = read_field(data, at, stop)
        if number == 0:
            return False
        if number == 1 and kind == LENGTH:
            feature = _key_number(data, begin, at, names, ends)
            row = other if feature < 0 else found[feature]
            row[:] = 0
            row[ENTRY], row[ENTRY_END] = begin, at
            if not _read_entry(data, row, integers, floats):
                return False
    return True


@njit(nogil=True)
def _are_lists(record: np.ndarray, names: np.ndarray, ends: np.ndarray, found: np.ndarray) -> bool:
    """Look for a feature that was not found among the keys in field 2, the lists of a sequence."""
    at, stop = HEAD_BYTES, record.size - TAIL_BYTES
    while at < stop:
        number, kind, inner, at = read_field(record, at, stop)
        while number == 2 and kind == LENGTH and inner < at:
            one, of_kind, begin, inner = read_field(record, inner, at)
            if one == 0:
                break  # it is something else
            if one == 1 and of_kind == LENGTH:
                feature = _key_number(record, begin, inner, names, ends)
                if feature >= 0 and found[feature, ENTRY_END] == 0:
                    found[feature, ENTRY_END] = -1
                    return True
    return False


@njit(nogil=True)
def _key_number(data: np.ndarray, at: int, stop: int, names: np.ndarray, ends: np.ndarray) -> int:
    """Number of the name that is the key of an entry of a map; -1 if none is."""
    begin, end = at, at
    while at < stop:
        number, kind, inner, at = read_field(data, at, stop)
        if number == 0:
            break
        if number == 1 and kind == LENGTH:
            begin, end = inner, at
    first = 0
    for k in range(len(ends)):
        if ends[k] - first == end - begin:
            same = True
            for j in range(end - begin):
                if data[begin + j] != names[first + j]:
                    same = False
                    break
            if same:
                return k
        first = ends[k]
    return -1


@njit(nogil=True)
def _read_entry(
    data: np.ndarray, row: np.ndarray, integers: np.ndarray, floats: np.ndarray
) -> bool:
    """Read the feature in an entry of the map, and its numbers as far as there is room for them."""
    at, stop = row[ENTRY], row[ENTRY_END]
    row[KIND] = row[COUNT] = 0
    while at < stop:
        number, kind, begin, at = read_field(data, at, stop)
        if number == 0:
            return False
        inner = begin
        while number == 2 and kind == LENGTH and inner < at:
            which, of_kind, begin, inner = read_field(data, inner, at)
            if which == 0:
                return False
            if of_kind == LENGTH and BYTES <= which <= INTEGERS:
                if row[KIND] != which:
                    row[KIND], row[COUNT] = which, 0
                if not _read_list(data, begin, inner, row, integers, floats):
                    return False
    return True


@njit(nogil=True)
def _read_list(
    data: np.ndarray,
    at: int,
    stop: int,
    row: np.ndarray,
    integers: np.ndarray,
    floats: np.ndarray,
) -> bool:
    """Read a piece of a list, after what is in the row already; False if it is damaged."""
    of, count = row[KIND], row[COUNT]
    while at < stop:
        number, kind, begin, at = read_field(data, at, stop)
        if number == 0:
            return False
        if number != 1:
            continue
        if of == BYTES:
            if kind == LENGTH:
                if count == 0:
                    row[BEGIN], row[END] = begin, at
                count += 1
        elif of == FLOATS:
            if kind in (LENGTH, FIXED32):
                if (at - begin) % 4:
                    return False
                several = (at - begin) // 4
                for k in range(min(several, floats.size - count)):
                    floats[count + k] = _four_bytes(data, begin + 4 * k)
                count += several
        elif kind in (LENGTH, VARINT):
            while begin < at:
                value, begin = read_varint(data, begin, at)
                if begin < 0:
                    return False
                if count < integers.size:
                    integers[count] = value
                count += 1
    row[COUNT] = count
    return True


def read_numbers(record: np.ndarray, row: np.ndarray) -> np.ndarray:
    """The list that was found of a feature, int64 or float32, by its row."""
    count, is_float = row[COUNT], row[KIND] == FLOATS
    integers = np.empty(0 if is_float else count, np.int64)
    floats = np.empty(count if is_float else 0, np.uint32)
    _read_entry(record, row, integers, floats)
    return floats.view(np.float32) if is_float else integers


@njit(nogil=True)
def find_in_all(
    addresses: np.ndarray,
    sizes: np.ndarray,
    names: np.ndarray,
    ends: np.ndarray,
    found: np.ndarray,
) -> bool:
    """Do `find_features` for records at addresses; False if one of them is not whole.

    `found`: int64 ``(records, names, 6)``.
    """
    for k in range(len(addresses)):
        record = numba.carray(pointer(addresses[k]), (sizes[k],), np.uint8)
        if find_features(record, names, ends, found[k]) != WHOLE:
            return False
    return True


@njit(nogil=True)
def read_all_numbers(
    addresses: np.ndarray,
    sizes: np.ndarray,
    rows: np.ndarray,
    begins: np.ndarray,
    integers: np.ndarray,
    floats: np.ndarray,
) -> None:
    """Read the lists of a feature of records at addresses, by their rows, int64 ``(records, 6)``.

    The list of record `k` is written to elements from ``begins[k]`` on of the array of its type;
    the other one is empty.
    """
    for k in range(len(addresses)):
        count, begin = rows[k, COUNT], begins[k]
        if count:
            record = numba.carray(pointer(addresses[k]), (sizes[k],), np.uint8)
            _read_entry(
                record, rows[k], integers[begin : begin + count], floats[begin : begin + count]
            )
