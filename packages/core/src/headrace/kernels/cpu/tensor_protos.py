"""Messages of the type ``TensorProtos``, of Caffe2: several tensors one after another."""

from __future__ import annotations

import numba
import numpy as np

from headrace.kernels.compilation import njit
from headrace.kernels.cpu.pointers import pointer
from headrace.kernels.cpu.protobuf import FIXED32, LENGTH, VARINT, read_field, read_varint

PROTOS, TYPE, FLOATS, INTEGERS, STRINGS, LONG_INTEGERS = 1, 2, 3, 4, 6, 10
"""Numbers of the fields of the messages, and of each tensor."""
FLOAT, INT32, INT64 = 1, 2, 10
"""Types of elements that are numbers."""
KIND, COUNT, BEGIN, END, STRING_BEGIN, STRING_END = range(6)
"""Facts about a tensor: the type of its elements, or -1 without one; how many numbers it has;
where its message begins and ends; and its first string, which begins at -1 where there is none.
"""


@njit(nogil=True)
def _field_of(kind: int) -> int:
    """The field with the numbers of a type, or -1."""
    if kind == FLOAT:
        return FLOATS
    if kind == INT32:
        return INTEGERS
    return LONG_INTEGERS if kind == INT64 else -1


@njit(nogil=True)
def find_tensors(
    addresses: np.ndarray, sizes: np.ndarray, known: np.ndarray, found: np.ndarray
) -> bool:
    """Find the first tensors of messages at addresses; False if one is damaged.

    `known`: bool: the types that there are, others being no value of the field. `found`: int64
    ``(messages, tensors, 6)``: filled, see `KIND`.
    """
    for k in range(len(addresses)):
        data = numba.carray(pointer(addresses[k]), (sizes[k],), np.uint8)
        at, stop, count = np.int64(0), sizes[k], 0
        found[k, :, KIND] = -1
        while at < stop:
            number, kind, begin, at = read_field(data, at, stop)
            if number == 0:
                return False
            if kind == LENGTH and number == PROTOS:
                if count < found.shape[1]:
                    found[k, count, BEGIN], found[k, count, END] = begin, at
                if not _find_one(
                    data,
                    begin,
                    at,
                    known,
                    found[k, min(count, found.shape[1] - 1)],
                    count < found.shape[1],
                ):
                    return False
                count += 1
    return True


@njit(nogil=True)
def _find_one(
    data: np.ndarray, at: int, stop: int, known: np.ndarray, row: np.ndarray, wanted: bool
) -> bool:
    """Find what a tensor has, if it is wanted; False if it is damaged."""
    begin = at
    tensor_type, string, string_end = FLOAT, -1, -1
    while at < stop:
        number, kind, start, at = read_field(data, at, stop)
        if number == 0:
            return False
        if kind == VARINT and number == TYPE:
            value = read_varint(data, start, at)[0]
            if 0 <= value < len(known) and known[value]:
                tensor_type = value
        elif kind == LENGTH and number == STRINGS and string < 0:
            string, string_end = start, at
    if not wanted:
        return True
    row[KIND], row[STRING_BEGIN], row[STRING_END], row[COUNT] = tensor_type, string, string_end, 0
    field, at = _field_of(tensor_type), begin
    while at < stop and field > 0:
        number, kind, start, at = read_field(data, at, stop)
        if number != field:
            continue
        if tensor_type == FLOAT:
            if kind in (FIXED32, LENGTH):
                if (at - start) % 4:
                    return False
                row[COUNT] += (at - start) // 4
        elif kind == VARINT:
            row[COUNT] += 1
        elif kind == LENGTH:
            while start < at:
                _, start = read_varint(data, start, at)
                if start < 0:
                    return False
                row[COUNT] += 1
    return True


@njit(nogil=True)
def read_numbers(
    addresses: np.ndarray,
    sizes: np.ndarray,
    found: np.ndarray,
    begins: np.ndarray,
    integers: np.ndarray,
    floats: np.ndarray,
) -> None:
    """Read the numbers of a tensor of each message.

    `found`: as of `find_tensors`, of these tensors, int64 ``(messages, 6)``. They go to `integers`,
    or as their bits to `floats`, uint32, which is empty for integers; each from `begins` on.
    """
    for k in range(len(addresses)):
        data = numba.carray(pointer(addresses[k]), (sizes[k],), np.uint8)
        at, stop, field = found[k, BEGIN], found[k, END], _field_of(found[k, KIND])
        place = begins[k]
        while at < stop:
            number, kind, start, at = read_field(data, at, stop)
            if number != field:
                continue
            if len(floats):
                if kind in (FIXED32, LENGTH):
                    for first in range(start, at, 4):
                        bits = np.uint32(0)
                        for byte in range(4):
                            bits |= np.uint32(data[first + byte]) << np.uint32(8 * byte)
                        floats[place] = bits
                        place += 1
            elif kind in (VARINT, LENGTH):
                while start < at:
                    value, start = read_varint(data, start, at)
                    integers[place] = value
                    place += 1
