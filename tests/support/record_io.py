"""RecordIO files of MXNet, and their indexes."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from pathlib import Path

import numpy as np

_NUMBER = 0xCED7230A
MAGIC = struct.pack("<I", _NUMBER)


def part(kind: int, data: bytes) -> bytes:
    """A part of a record: the whole (0), the first (1), one in the middle (2) or the last (3)."""
    return struct.pack("<II", _NUMBER, kind << 29 | len(data)) + data + b"\0" * (-len(data) % 4)


def record(content: bytes) -> bytes:
    """A record, in parts where the content has the magic number at a multiple of four bytes."""
    cuts = [at for at in range(0, len(content) - 3, 4) if content[at : at + 4] == MAGIC]
    begins, ends = [0, *(cut + 4 for cut in cuts)], [*cuts, len(content)]
    last = len(cuts)
    kinds = [0] if not cuts else [1, *[2] * (last - 1), 3]
    pieces = zip(kinds, begins, ends, strict=True)
    return b"".join(part(kind, content[begin:end]) for kind, begin, end in pieces)


def image(label: float | Sequence[float], data: bytes, number: int = 0) -> bytes:
    """What is in a record: one label or several, and an image."""
    if np.ndim(label) == 0:
        return struct.pack("<IfQQ", 0, label, number, 0) + data
    labels = np.array(label, "<f4").tobytes()
    return struct.pack("<IfQQ", len(labels) // 4, 0, number, 0) + labels + data


def write(path: Path, records: Sequence[bytes], index: Path | None = None) -> dict[str, str]:
    """Write a file of records and its index; what a reader is to be given."""
    index = index or path.with_suffix(".idx")
    lines, at = [], 0
    for number, each in enumerate(records):
        lines.append(f"{number}\t{at}\n")
        at += len(each)
    path.write_bytes(b"".join(records))
    index.write_text("".join(lines))
    return {"path": str(path), "index_path": str(index)}
