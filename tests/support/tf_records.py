"""TFRecord files: messages in frames with checksums, and their indexes."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

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
