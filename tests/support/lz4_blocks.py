"""Blocks of LZ4, made as its description says."""

from __future__ import annotations

import numpy as np


def _length(value: int) -> bytes:
    return b"" if value < 15 else b"\xff" * ((value - 15) // 255) + bytes([(value - 15) % 255])


def lz4_block(data: bytes) -> np.ndarray:
    """A block with each match of four bytes and more that a table of the last places finds."""
    out, seen, begin, at = bytearray(), {}, 0, 0
    while at < len(data) - 12:
        key = data[at : at + 4]
        match = seen.get(key, -1)
        seen[key] = at
        if match < 0 or at - match > 65535:
            at += 1
            continue
        length = 4
        while at + length < len(data) - 5 and data[match + length] == data[at + length]:
            length += 1
        literals = at - begin
        out.append(min(literals, 15) << 4 | min(length - 4, 15))
        out += _length(literals) + data[begin:at] + (at - match).to_bytes(2, "little")
        out += _length(length - 4)
        begin = at = at + length
    out.append(min(len(data) - begin, 15) << 4)
    out += _length(len(data) - begin) + data[begin:]
    return np.frombuffer(bytes(out), np.uint8)
