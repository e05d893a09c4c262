"""`readers.mxnet`: records of MXNet."""

from __future__ import annotations

import struct

import numpy as np

from headrace.errors import ArgumentValueError, BadSampleError
from headrace.kernels.cpu import recordio
from headrace.operators.readers.base import Reader, reader
from headrace.operators.readers.index import FileIndex, Index
from headrace.operators.readers.listing import container_size, read_index
from headrace.operators.support.argument_types import PathListArg
from headrace.operators.support.contexts import ChunkContext
from headrace.operators.support.operator import SampleContext
from headrace.operators.support.schema import REQUIRED, Arg, Spec
from headrace.tensors.rows import Rows
from headrace.types import DALIDataType

_PART = struct.Struct("<II")
_CUT = "The file of records of MXNet is cut, or its index is not its own."
_LABEL = struct.Struct("<IfQQ")
"""Header of a record: number of labels that follow, or 0 and a label; then two numbers of the
image.
"""


@reader(
    "readers.mxnet",
    old_names=("mxnet_reader",),
    class_name="MXNet",
    args=(
        Arg(
            "path",
            PathListArg,
            REQUIRED,
            "The file of records (.rec), or several that are parts of one.",
        ),
        Arg(
            "index_path",
            PathListArg,
            REQUIRED,
            "Its index (.idx), with the number of a record and the place of its first byte in each "
            "line; of several files one index, with places in all of them one after another.",
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
    chunks_light = True

    def list_entries(self) -> Index:
        args = self.args
        if len(args.index_path) != 1 or not args.path:
            raise ArgumentValueError(
                "`index_path` must be a single file, with places in the files of `path` as if they "
                f"were one, got {list(args.index_path)} for `path`={list(args.path)}."
            )
        places = read_index(args.index_path[0], "that of a record and the place of its first byte")[
            :, 1
        ]
        if not places.size:
            raise ArgumentValueError(f"`index_path`={args.index_path[0]!r} lists no record.")
        begins = np.unique(places)
        if len(args.path) == 1:
            container_size(args.path[0])
            sizes = np.append(np.diff(begins), -1)
            return FileIndex(
                args.path, files=np.zeros(len(sizes), int), offsets=begins, sizes=sizes
            )
        return self._over_files(begins)

    def _over_files(self, begins: np.ndarray) -> Index:
        """Records in files that are read as one: a record may begin in one and end in the next."""
        paths, index = self.args.path, self.args.index_path[0]
        ends = np.cumsum([container_size(path) for path in paths])
        if begins[-1] >= ends[-1]:
            raise ArgumentValueError(
                f"`index_path`={index!r} has a record at byte {begins[-1]}, and the files of "
                f"`path` have {ends[-1]} bytes."
            )
        stops = np.append(begins[1:], ends[-1])
        first = np.searchsorted(ends, begins, "right")
        pieces = int((np.searchsorted(ends, stops, "left") - first).max()) + 1
        files = np.minimum(first[:, np.newaxis] + np.arange(pieces), len(paths) - 1)
        starts = (ends - np.diff(ends, prepend=0))[files]
        offsets = np.maximum(begins[:, np.newaxis], starts)
        sizes = np.minimum(stops[:, np.newaxis], ends[files]) - offsets
        sizes[:, 1:][files[:, 1:] == files[:, :-1]] = 0
        offsets -= starts
        offsets[sizes <= 0] = 0
        return FileIndex(paths, files=files, offsets=offsets, sizes=np.maximum(sizes, 0))

    def infer(self, *data: Spec) -> tuple[Spec, Spec]:
        return Spec(DALIDataType.UINT8, 1), Spec(DALIDataType.FLOAT, 1)

    def cpu(self, c: SampleContext, *data: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        record = _content(data[0] if len(data) == 1 else np.concatenate(data))
        if record.size < _LABEL.size:
            raise BadSampleError(f"The record of MXNet has {record.size} bytes, less than a label.")
        count, label, _, _ = _LABEL.unpack(record[: _LABEL.size].tobytes())
        if not count:
            return record[_LABEL.size :], np.array([label], np.float32)
        end = _LABEL.size + 4 * count
        if record.size < end:
            raise BadSampleError(f"The record of MXNet announces {count} labels and is cut.")
        return record[end:], np.frombuffer(record[_LABEL.size : end].tobytes(), "<f4")

    def chunk_kind(self) -> int:
        return len(self.index.specs)

    def cpu_chunk(self, c: ChunkContext, *data: Rows) -> tuple[Rows, Rows] | None:
        records, found = data[0], np.empty((len(c.indices), 4), np.int64)
        if any(part.sizes.any() for part in data[1:]):  # some begin in one file and end in the next
            return None
        if not recordio.find_parts(records.addresses, records.sizes, found):
            return None
        labels = c.empty(found[:, 1:2].copy(), np.float32, 1)
        recordio.copy_labels(records.addresses, found, labels.addresses)
        return records.window(found[:, 2], found[:, 3]), labels


def _content(data: np.ndarray) -> np.ndarray:
    """The record that data begins with: in one part, or in several with the magic number between.

    A part is whole (0), the first (1), one in the middle (2) or the last (3).
    """
    parts: list[np.ndarray] = []
    at, kind = 0, 1
    while kind in (1, 2):
        if data.size < at + _PART.size:
            raise BadSampleError(_CUT)
        magic, head = _PART.unpack(data[at : at + _PART.size].tobytes())
        if magic != recordio.MAGIC:
            raise BadSampleError(
                "The record of MXNet has a wrong magic number: the file is damaged, or its index "
                "is not its own."
            )
        kind, size = head >> 29, head & 0x1FFFFFFF
        belong = (2, 3) if parts else (0, 1)
        if kind not in belong:
            raise BadSampleError(
                f"The record of MXNet has a part of kind {kind} where one of {belong} belongs: the "
                "file is damaged, or its index is not its own."
            )
        at += _PART.size
        if data.size < at + size:
            raise BadSampleError(_CUT)
        if parts:
            parts.append(data[:4])
        parts.append(data[at : at + size])
        at += -(-size // 4) * 4
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
