"""TFRecord files: messages in frames with checksums, and their indexes."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.support import caffe_records as wire

_TABLE = []
for _byte in range(256):
    for _ in range(8):
        _byte = _byte >> 1 ^ (0x82F63B78 if _byte & 1 else 0)
    _TABLE.append(_byte)


def crc32c(data: bytes) -> int:
    """The checksum CRC-32C, byte by byte."""
    rest = 0xFFFFFFFF
    for byte in data:
        rest = _TABLE[(rest ^ byte) & 255] ^ rest >> 8
    return rest ^ 0xFFFFFFFF


def checksum(data: bytes) -> bytes:
    """As it stands in a record."""
    crc = crc32c(data)
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def frame(message: bytes) -> bytes:
    """A record."""
    length = struct.pack("<Q", len(message))
    return length + checksum(length) + message + checksum(message)


def example(features: Mapping[str, Sequence[int]]) -> bytes:
    """A record with integers, by the names of features."""
    entries = b""
    for name, values in features.items():
        numbers = wire.field(3, wire.field(1, b"".join(map(wire.varint, values))))
        entries += wire.field(1, wire.field(1, name.encode()) + wire.field(2, numbers))
    return frame(wire.field(1, entries))


def write(path: Path, records: Sequence[bytes], index: Path | None = None) -> dict[str, str]:
    """Write a file of records and its index; what a reader is to be given."""
    index = index or path.with_suffix(".idx")
    lines, at = [], 0
    for record in records:
        lines.append(f"{at} {len(record)}\n")
        at += len(record)
    path.write_bytes(b"".join(records))
    index.write_text("".join(lines))
    return {"path": str(path), "index_path": str(index)}
