"""`readers.tfrecord`: records of TensorFlow."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from headrace.errors import ArgumentTypeError, ArgumentValueError, BadSampleError, ShapeError
from headrace.kernels.cpu import tf_example
from headrace.kernels.cpu.tf_example import BYTES, FLOATS, INTEGERS
from headrace.operators.readers.base import Reader, reader
from headrace.operators.readers.index import FileIndex, Index
from headrace.operators.readers.listing import container_size, read_index
from headrace.operators.support.argument_types import ArgType, BoolArg, PathListArg
from headrace.operators.support.contexts import ChunkContext
from headrace.operators.support.operator import SampleContext
from headrace.operators.support.schema import REQUIRED, Arg, Spec
from headrace.tensors.rows import Rows
from headrace.types import DALIDataType

_KINDS: dict[int, tuple[int, DALIDataType, np.dtype]] = {
    0: (INTEGERS, DALIDataType.INT64, np.dtype(np.int64)),
    1: (BYTES, DALIDataType.UINT8, np.dtype(np.uint8)),
    2: (FLOATS, DALIDataType.FLOAT, np.dtype(np.float32)),
}
"""By the type of a `headrace.tfrecord.Feature`: list in a record, and elements."""
_NO_INTEGERS, _NO_FLOATS = np.empty(0, np.int64), np.empty(0, np.uint32)
_WRONG = {
    tf_example.OTHER_LENGTH: (
        "is damaged, or its index is not its own: the length it announces is not the one that the "
        "index lists"
    ),
    tf_example.WRONG_LENGTH_SUM: "is damaged: its length has a wrong checksum",
    tf_example.WRONG_SUM: "is damaged: its message has a wrong checksum",
    tf_example.DAMAGED: "is no `Example` of TensorFlow, or damaged",
}


def _features(given: Any) -> dict[str, Any]:
    parts = ("shape", "dtype", "default_value", "has_shape")
    if not isinstance(given, Mapping):
        raise ArgumentTypeError(
            f"expected a dict of `tfrecord.FixedLenFeature` and `VarLenFeature`, got {given!r}"
        )
    for name, feature in given.items():
        if not all(hasattr(feature, part) for part in parts):
            raise ArgumentTypeError(
                f'Expected `headrace.tfrecord.Feature` for the "{name}", but got {type(feature)}. '
                "Use `headrace.tfrecord.FixedLenFeature` or `headrace.tfrecord.VarLenFeature` to "
                "define the features to extract"
            )
    if not given:
        raise ArgumentValueError("the dict is empty; name at least one feature to read")
    return dict(given)


@reader(
    "readers.tfrecord",
    old_names=("tfrecord_reader",),
    class_name="TFRecord",
    args=(
        Arg("path", PathListArg, REQUIRED, "The files of records."),
        Arg(
            "index_path",
            PathListArg,
            REQUIRED,
            "For each of them an index, with place and size in bytes of a record in each line, as "
            "the command ``tfrecord2idx`` makes it.",
        ),
        Arg(
            "features",
            ArgType("dict of features", "Mapping[str, Any]", _features),
            REQUIRED,
            "The features to read: by name, a `headrace.tfrecord.FixedLenFeature` or "
            "`VarLenFeature`.",
        ),
        Arg("use_o_direct", BoolArg, False, "Bypass the cache of the system.", hint=True),
    ),
    num_outputs=lambda args: len(args["features"] or ()),
    output_names=lambda args: list(args["features"]),
    output_docs=("By name: each feature.",),
    positional=("path", "index_path", "features"),
)
class TFRecordReader(Reader):
    """Reads features from TFRecord files with ``Example`` messages of TensorFlow.

    The outputs are a dict, by the names in `features`. A feature of type ``string`` is the bytes of
    its first value, uint8; others are int64 and float32. What a record lacks has the default value
    of the feature, and no element where its length varies. Of a ``SequenceExample`` the context is
    read. A record with a wrong checksum is a bad sample; where both of its checksums are 0, it has
    none.

    Examples
    --------
    >>> inputs = fn.readers.tfrecord(
    ...     path="train.tfrecord",
    ...     index_path="train.idx",
    ...     features={
    ...         "image/encoded": tfrec.FixedLenFeature((), tfrec.string, ""),
    ...         "image/class/label": tfrec.FixedLenFeature([1], tfrec.int64, -1),
    ...     },
    ... )
    >>> images = fn.decoders.image(inputs["image/encoded"])
    """

    permutes = False
    chunks_light = True

    _wanted: list[tuple[str, int, np.dtype, Any]]
    _names: np.ndarray
    _ends: np.ndarray

    def list_entries(self) -> Index:
        args = self.args
        if not args.path or len(args.path) != len(args.index_path):
            raise ArgumentValueError(
                f"There are {len(args.index_path)} `index_path` for {len(args.path)} `path`; the "
                "number of index files needs to match the number of data files."
            )
        container_size(args.path[0])
        found = [read_index(path, "place and size of a record") for path in args.index_path]
        offsets, sizes = np.concatenate(found).T
        if not sizes.size:
            raise ArgumentValueError(
                f"No records: `index_path`={list(args.index_path)} lists none."
            )
        files = np.repeat(np.arange(len(found)), [len(places) for places in found])
        return FileIndex(args.path, files=files, offsets=offsets, sizes=sizes)

    def infer(self, *data: Spec) -> tuple[Spec, ...]:
        specs = []
        self._wanted = []
        for name, feature in self.args.features.items():
            kind, dtype, numpy_type = _KINDS[feature.dtype]
            if kind == BYTES and not (feature.has_shape and math.prod(feature.shape) == 1):
                raise ShapeError(
                    f"`features`: {name!r} is of type string with several elements; tensors of "
                    "strings are not supported. Use `FixedLenFeature((), string, ...)`."
                )
            rank = 1 if kind == BYTES else len(feature.shape) + (not feature.has_shape)
            specs.append(Spec(dtype, rank))
            self._wanted.append((name, kind, numpy_type, feature))
        names = [name.encode() for name in self.args.features]
        self._names = np.frombuffer(b"".join(names), np.uint8)
        self._ends = np.cumsum([len(name) for name in names])
        return tuple(specs)

    def cpu(self, c: SampleContext, *data: np.ndarray) -> tuple[np.ndarray, ...]:
        (record,) = data
        found = np.empty((len(self._wanted), 6), np.int64)
        state = tf_example.find_features(record, self._names, self._ends, found)
        if state in _WRONG:
            raise BadSampleError(f"The record of TensorFlow {_WRONG[state]}.")
        if state == tf_example.SEQUENCE:
            name = self._wanted[int(np.argmin(found[:, tf_example.ENTRY_END]))][0]
            raise BadSampleError(
                f"The feature {name!r} is in the `feature_lists` of a `SequenceExample`, of which "
                "only the `context` can be read. Write it as a feature of an `Example`."
            )
        rows = zip(self._wanted, found, strict=True)
        return tuple([_element(record, *wanted, row) for wanted, row in rows])

    def chunk_kind(self) -> Any:
        return list(self.args.features.items())

    def cpu_chunk(self, c: ChunkContext, *data: Rows) -> tuple[Rows, ...] | None:
        """Read features of several records; `None` where one is bad, or lacks bytes."""
        (records,) = data
        addresses, sizes = records.addresses, records.sizes
        found = np.empty((len(records), len(self._wanted), 6), np.int64)
        if not tf_example.find_in_all(addresses, sizes, self._names, self._ends, found):
            return None
        shapes = []
        for number, (_, kind, _, feature) in enumerate(self._wanted):
            rows = found[:, number]
            counts = rows[:, tf_example.COUNT]
            given = _shapes(feature, counts)
            if given is None or ((rows[:, tf_example.KIND] != kind) & (counts > 0)).any():
                return None
            shapes.append(given)
        made = []
        for number, (_, kind, dtype, feature) in enumerate(self._wanted):
            rows = np.ascontiguousarray(found[:, number])
            if kind == BYTES:
                begins = rows[:, tf_example.BEGIN]
                made.append(records.window(begins, rows[:, tf_example.END] - begins))
                continue
            out = c.empty(shapes[number], dtype, number)
            assert out.flat is not None
            assert out.begins is not None
            if feature.has_shape:
                for k in np.flatnonzero(rows[:, tf_example.COUNT] == 0).tolist():
                    out[k][...] = feature.default_value
            lists = out.flat, _NO_FLOATS
            if kind == FLOATS:
                lists = _NO_INTEGERS, out.flat.view(np.uint32)
            tf_example.read_all_numbers(addresses, sizes, rows, out.begins, *lists)
            made.append(out)
        return tuple(made)


def _shapes(feature: Any, counts: np.ndarray) -> np.ndarray | None:
    """Shapes of a feature of records that have so many elements of it; `None` if one is wrong."""
    shape = feature.shape
    if _KINDS[feature.dtype][0] == BYTES:
        return None if np.count_nonzero(counts) < len(counts) else counts
    if feature.has_shape:
        wrong = (counts != math.prod(shape)) & (counts != 0)
        return None if wrong.any() else np.full((len(counts), len(shape)), shape, np.int64)
    each = max(math.prod(shape), 1)
    found = np.empty((len(counts), 1 + len(shape)), np.int64)
    found[:, 0], found[:, 1:] = counts // each, shape
    return None if (counts % each).any() else found


def _element(
    record: np.ndarray, name: str, kind: int, dtype: np.dtype, feature: Any, row: np.ndarray
) -> np.ndarray:
    """A feature of a record as an array."""
    has, count, begin, end = row[: tf_example.ENTRY].tolist()
    if count and has != kind:
        raise BadSampleError(
            f"The feature {name!r} of the record is a list of another type than `features` says."
        )
    if kind == BYTES:
        default = feature.default_value.encode
        return record[begin:end] if count else np.frombuffer(default(), np.uint8)
    shape = feature.shape
    if not feature.has_shape:
        each = max(math.prod(shape), 1)
        if count % each:
            raise BadSampleError(
                f"The feature {name!r} has {count} elements, which are no whole number of the "
                f"partial shape {list(shape)}."
            )
        shape = (count // each, *shape)
    elif not count:
        return np.full(shape, feature.default_value, dtype)
    elif count != math.prod(shape):
        wrong, bound = ("small", "least") if count > math.prod(shape) else ("large", "most")
        raise BadSampleError(
            f"Output tensor shape is too {wrong} for the feature {name!r}: {list(shape)}. Expected "
            f"at {bound} {count} elements, as many as the record has; or use a `VarLenFeature`."
        )
    return (tf_example.read_numbers(record, row) if count else np.empty(0, dtype)).reshape(shape)
