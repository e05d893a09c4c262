"""The commands `tfrecord2idx`, `rec2idx` and `wds2idx`: they write index files for readers."""

from __future__ import annotations

import argparse
import struct
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

import numpy as np

from headrace.errors import ArgumentValueError, HeadraceError
from headrace.kernels.cpu.tf_example import HEAD_BYTES, TAIL_BYTES, check_length
from headrace.operators.readers.tar_shards import samples_of
from headrace.progress import counted

_PART = struct.Struct("<II")
_MAGIC = 0xCED7230A
_LENGTH_BITS = 29


def tfrecord() -> None:
    """Write the index of a TFRecord file, for ``fn.readers.tfrecord``."""
    args = _arguments("tfrecord2idx", tfrecord.__doc__, "a TFRecord file")
    _write(args, (f"{at} {size}" for at, size in tfrecord_places(args.data)))


def recordio() -> None:
    """Write the index of a RecordIO file, for ``fn.readers.mxnet``."""
    args = _arguments("rec2idx", recordio.__doc__, "a RecordIO file")
    _write(args, (f"{k}\t{at}" for k, at in enumerate(recordio_places(args.data))))


def webdataset() -> None:
    """Write the index of a tar archive, for ``fn.readers.webdataset``."""
    args = _arguments("wds2idx", webdataset.__doc__, "a tar archive", index="?")
    args.index = args.index or str(Path(args.data).with_suffix(".idx"))
    _write(args, _webdataset_lines(args.data))


def tfrecord_places(path: str) -> Iterator[tuple[int, int]]:
    """Place and size in bytes of each record of a TFRecord file."""
    size = Path(path).stat().st_size
    with open(path, "rb") as file:
        at = 0
        while at < size:
            length = int(check_length(np.frombuffer(_read(file, at, HEAD_BYTES), np.uint8)))
            if length < 0:
                raise ArgumentValueError(f"the length of the record at byte {at} is damaged.")
            whole = HEAD_BYTES + length + TAIL_BYTES
            if at + whole > size:
                raise ArgumentValueError(f"the record at byte {at} goes beyond the file's end.")
            yield at, whole
            at += whole


def recordio_places(path: str) -> Iterator[int]:
    """Place in bytes of each record of a RecordIO file; one may have several parts."""
    size = Path(path).stat().st_size
    with open(path, "rb") as file:
        at = kind = 0
        while at < size:
            magic, head = _PART.unpack(_read(file, at, _PART.size))
            if magic != _MAGIC:
                raise ArgumentValueError(f"there is no magic number of RecordIO at byte {at}.")
            belong = (2, 3) if kind in (1, 2) else (0, 1)
            kind, length = head >> _LENGTH_BITS, head & ((1 << _LENGTH_BITS) - 1)
            if kind not in belong:
                raise ArgumentValueError(
                    f"there is a part of kind {kind} at byte {at}, where one of {belong} belongs."
                )
            if at + _PART.size + length > size:
                raise ArgumentValueError(f"the record at byte {at} goes beyond the file's end.")
            if kind in (0, 1):  # whole, or the first of several
                yield at
            at += _PART.size + -(-length // 4) * 4
    if kind in (1, 2):
        raise ArgumentValueError("the file ends within a record of several parts.")


def _webdataset_lines(path: str) -> Iterator[str]:
    named = ([c for c in sample if c.extension] for sample in samples_of(path))
    samples = [sample for sample in named if sample]
    yield f"v1.2 {len(samples)}"
    for sample in samples:
        yield " ".join(f"{c.extension} {c.offset} {c.size} {c.name}" for c in sample)


def _read(file: BinaryIO, at: int, count: int) -> bytes:
    file.seek(at)
    found = file.read(count)
    if len(found) < count:
        raise ArgumentValueError(f"the file ends within the record at byte {at}.")
    return found


def _arguments(
    command: str, doc: str | None, data: str, index: str | None = None
) -> argparse.Namespace:
    parser = argparse.ArgumentParser(command, description=doc)
    parser.add_argument("data", metavar="archive", help=f"{data} to read")
    parser.add_argument("index", nargs=index, help="the index file to write")
    return parser.parse_args()


def _write(args: argparse.Namespace, lines: Iterator[str]) -> None:
    try:
        counting = counted(lines, f"indexing {args.data}", "records")
        text = "".join(f"{line}\n" for line in counting)
        Path(args.index).write_text(text, encoding="utf-8")
    except (OSError, HeadraceError) as error:
        sys.stderr.write(f"{args.data} cannot be indexed: {error}\n")
        raise SystemExit(1) from None
