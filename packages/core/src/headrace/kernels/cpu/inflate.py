"""Compressed blocks: LZ4's, by a loop, and those of deflate, by zlib."""

from __future__ import annotations

import zlib

import numpy as np

from headrace.kernels.compilation import njit

_TRUNCATED, _TOO_LONG, _DAMAGED = -1, -2, -3
_RAW, _WITH_HEADER = -15, 47
"""Windows of zlib: without a header, and with that of zlib or gzip."""


def why_not(status: int, room: int) -> str:
    """Message of a negative `status`, of a block that was to have `room` bytes; "" of others."""
    if status >= 0:
        return ""
    if status == _TOO_LONG:
        return f"it inflates to more than the {room} bytes that `shape` and `dtype` make"
    return "it ends too early" if status == _TRUNCATED else "it is damaged"


def inflate(algorithm: str, source: np.ndarray, out: np.ndarray) -> int:
    """Fill `out` with what a block of bytes inflates to, then zeros; the bytes of the former.

    A negative number says that it cannot be inflated: see `why_not`.
    """
    source = np.ascontiguousarray(source)
    if algorithm == "lz4":
        return int(_lz4(source, out))
    status, data = _deflated(source, out.size)
    if status >= 0:
        out[:status] = np.frombuffer(data, np.uint8)
        out[status:] = 0
    return status


def _deflated(source: np.ndarray, room: int) -> tuple[int, bytes]:
    first = source[:2].tolist()
    headed = first == [0x1F, 0x8B] or (
        len(first) == 2 and first[0] % 16 == 8 and (first[0] * 256 + first[1]) % 31 == 0
    )
    inflater = zlib.decompressobj(_WITH_HEADER if headed else _RAW)
    try:
        data = inflater.decompress(source.data, room + 1)
    except zlib.error:
        return _DAMAGED, b""
    if len(data) > room:
        return _TOO_LONG, b""
    return (len(data), data) if inflater.eof else (_TRUNCATED, b"")


@njit(nogil=True)
def _lz4(source: np.ndarray, out: np.ndarray) -> int:
    size, room = len(source), len(out)
    at = done = 0
    while at < size:
        token = int(source[at])
        at += 1
        length = token >> 4
        if length == 15:
            more = 255
            while more == 255:
                if at >= size:
                    return _TRUNCATED
                more = int(source[at])
                at += 1
                length += more
        if length > size - at:
            return _TRUNCATED
        if length > room - done:
            return _TOO_LONG
        for k in range(length):
            out[done + k] = source[at + k]
        at += length
        done += length
        if at == size:
            out[done:] = 0
            return done
        if size - at < 2:
            return _TRUNCATED
        back = int(source[at]) + 256 * int(source[at + 1])
        at += 2
        if back == 0 or back > done:
            return _DAMAGED
        length = token & 15
        if length == 15:
            more = 255
            while more == 255:
                if at >= size:
                    return _TRUNCATED
                more = int(source[at])
                at += 1
                length += more
        length += 4
        if length > room - done:
            return _TOO_LONG
        for k in range(done, done + length):
            out[k] = out[k - back]
        done += length
    return _TRUNCATED
