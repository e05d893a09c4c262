"""`readers.mxnet`: records of MXNet."""

from __future__ import annotations

import struct

import numpy as np

from headrace.errors import ArgumentValueError, BadSampleError
from headrace.operators.readers.base import Reader, reader
from headrace.operators.readers.index import FileIndex, Index
from headrace.operators.readers.listing import read_lines
from headrace.operators.support.argument_types import PathListArg
from headrace.operators.support.operator import SampleContext
from headrace.operators.support.schema import REQUIRED, Arg, Spec
from headrace.types import DALIDataType

_MAGIC = b"\x0a\x23\xd7\xce"
_PART = struct.Struct("<4sI")
_LABEL = struct.Struct("<IfQQ")
"""How many labels follow, or 0 and a label; two numbers of the image."""


@reader(
    "readers.mxnet",
    old_names=("mxnet_reader",),
    class_name="MXNet",
    args=(
        Arg("path", PathListArg, REQUIRED, "The file of records (.rec)."),
        Arg(
            "index_path",
            PathListArg,
            REQUIRED,
            "Its index (.idx), with the number of a record and the place of its first byte in each "
            "line.",
        ),
    ),
    num_outputs=2,
    output_docs=("Content of the image file, 1-D, uint8.", "Labels, float32, 1-D: one or several."),
)
class MXNetReader(Reader):
    """Reads images and labels from the RecordIO files of MXNet, as its ``im2rec.py`` makes them.

    Examples
    --------
    >>> encoded, labels = fn.readers.mxnet(path="train.rec", index_path="train.idx")
    """

    permutes = False

    def list_entries(self) -> Index:
        args = self.args
        for name in ("path", "index_path"):
            if len(getattr(args, name)) != 1:
                raise ArgumentValueError(
                    f"`{name}` must be a single file, got {len(getattr(args, name))}."
                )
        found = []
        for line in read_lines("index_path", args.index_path[0]):
            words = line.split()
            if len(words) != 2 or not all(word.isdecimal() for word in words):
                if line.strip():
                    raise ArgumentValueError(
                        f"`index_path`={args.index_path[0]!r} has the line {line!r}; expected two "
                        "numbers, that of a record and the place of its first byte."
                    )
                continue
            found.append(int(words[1]))
        if not found:
            raise ArgumentValueError(f"`index_path`={args.index_path[0]!r} lists no record.")
        offsets = np.unique(np.array(found, np.int64))
        sizes = np.append(np.diff(offsets), -1)
        return FileIndex(args.path, files=np.zeros(len(sizes), int), offsets=offsets, sizes=sizes)

    def infer(self, *data: Spec) -> tuple[Spec, Spec]:
        return Spec(DALIDataType.UINT8, 1), Spec(DALIDataType.FLOAT, 1)

    def cpu(self, c: SampleContext, *data: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        record = _content(data[0])
        if record.size < _LABEL.size:
            raise BadSampleError(f"The record of MXNet has {record.size} bytes, less than a label.")
        count, label, _, _ = _LABEL.unpack(record[: _LABEL.size].tobytes())
        if not count:
            return record[_LABEL.size :], np.array([label], np.float32)
        end = _LABEL.size + 4 * count
        if record.size < end:
            raise BadSampleError(f"The record of MXNet announces {count} labels and is cut.")
        return record[end:], np.frombuffer(record[_LABEL.size : end].tobytes(), "<f4")


def _content(data: np.ndarray) -> np.ndarray:
    """What is in a record: in one part, or in several where it contains the magic number."""
    parts: list[np.ndarray] = []
    at = 0
    while True:
        if data.size < at + _PART.size:
            raise BadSampleError(
                "The file of records of MXNet is cut, or its index is not its own."
            )
        magic, head = _PART.unpack(data[at : at + _PART.size].tobytes())
        if magic != _MAGIC:
            raise BadSampleError(
                "The record of MXNet has a wrong magic number: the file is damaged, or its index "
                "is not its own."
            )
        at += _PART.size
        kind, size = head >> 29, head & 0x1FFFFFFF
        if data.size < at + size:
            raise BadSampleError(
                "The file of records of MXNet is cut, or its index is not its own."
            )
        if parts:
            parts.append(np.frombuffer(_MAGIC, np.uint8))
        parts.append(data[at : at + size])
        at += -(-size // 4) * 4
        if kind in (0, 3):  # the whole, or the last part
            return parts[0] if len(parts) == 1 else np.concatenate(parts)
