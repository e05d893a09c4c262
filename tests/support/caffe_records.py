"""Records of Caffe and Caffe2, byte by byte, and the LMDB data bases that hold them."""

from __future__ import annotations

import struct

import lmdb
import numpy as np

FLOAT, INT32, BYTE, STRING, INT64, DOUBLE = 1, 2, 3, 4, 10, 13


def varint(value):
    value &= 2**64 - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes((*out, value))


def field(number, value):
    """A field of a message: an integer, a float or bytes."""
    if isinstance(value, bytes):
        return varint(number << 3 | 2) + varint(len(value)) + value
    if isinstance(value, float):
        return varint(number << 3 | 5) + struct.pack("<f", value)
    return varint(number << 3) + varint(value)


def datum(data, label=None, *more, shape=(3, 4, 5)):
    extents = b"".join(field(number, extent) for number, extent in enumerate(shape, 1))
    labels = b"" if label is None else field(5, label)
    return extents + field(4, data) + labels + b"".join(more)


def tensor(kind, dims, *content):
    return b"".join(field(1, n) for n in dims) + field(2, kind) + b"".join(content)


def ints(*values, packed=True):
    content = [field(4, v) for v in values]
    if packed:
        content = [field(4, b"".join(map(varint, values)))]
    return tensor(INT32, [len(values)], *content)


def floats(*values):
    return tensor(FLOAT, [len(values)], field(3, np.array(values, "<f4").tobytes()))


def record(*tensors):
    return b"".join(field(1, each) for each in tensors)


def write(folder, records, keys="{:05}"):
    with lmdb.open(str(folder), map_size=1 << 28) as base, base.begin(write=True) as work:
        for k, each in enumerate(records):
            work.put(keys.format(k).encode(), each)
    return str(folder)
