"""`readers.tfrecord`: records of TensorFlow."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from headrace.errors import ArgumentTypeError, ArgumentValueError, BadSampleError, ShapeError
from headrace.kernels.cpu.tf_example import BYTES, FLOATS, INTEGERS, Values, parse_example
from headrace.operators.readers.base import Reader, reader
from headrace.operators.readers.index import FileIndex, Index
from headrace.operators.readers.listing import read_lines
from headrace.operators.support.argument_types import ArgType, BoolArg, PathListArg
from headrace.operators.support.operator import SampleContext
from headrace.operators.support.schema import REQUIRED, Arg, Spec
from headrace.types import DALIDataType

_FRAME_BYTES = 12, 4
"""Before a message, its length and a checksum; behind it, another one."""
_KINDS: dict[int, tuple[int, DALIDataType, np.dtype]] = {
    0: (INTEGERS, DALIDataType.INT64, np.dtype(np.int64)),
    1: (BYTES, DALIDataType.UINT8, np.dtype(np.uint8)),
    2: (FLOATS, DALIDataType.FLOAT, np.dtype(np.float32)),
}
"""By the type of a `headrace.tfrecord.Feature`: list in a record, and elements."""


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
    of the feature, and no element where its length varies.

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

    _wanted: list[tuple[bytes, int, np.dtype, Any]]

    def list_entries(self) -> Index:
        args = self.args
        if len(args.path) != len(args.index_path):
            raise ArgumentValueError(
                f"There are {len(args.index_path)} `index_path` for {len(args.path)} `path`; the "
                "number of index files needs to match the number of data files."
            )
        places = []
        for file, path in enumerate(args.index_path):
            for line in read_lines("index_path", path):
                words = line.split()
                if len(words) == 2 and all(word.isdecimal() for word in words):
                    places.append((file, int(words[0]), int(words[1])))
                elif words:
                    raise ArgumentValueError(
                        f"`index_path`={path!r} has the line {line!r}; expected two numbers, place "
                        "and size of a record."
                    )
        if not places:
            raise ArgumentValueError("No records: `index_path` lists none.")
        files, offsets, sizes = np.array(places, np.int64).T
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
            self._wanted.append((name.encode(), kind, numpy_type, feature))
        self._names = frozenset([name for name, *_ in self._wanted])
        return tuple(specs)

    def cpu(self, c: SampleContext, *data: np.ndarray) -> tuple[np.ndarray, ...]:
        before, behind = _FRAME_BYTES
        message = data[0][before:-behind]
        size = int.from_bytes(data[0][:8].tobytes(), "little")
        if size != message.size:
            raise BadSampleError(
                f"The record of TensorFlow is damaged, or its index is not its own: it announces "
                f"{size} bytes where the index lists {message.size}."
            )
        found = parse_example(message.tobytes(), self._names)
        return tuple([_element(*wanted, found.get(wanted[0])) for wanted in self._wanted])


def _element(
    name: bytes, kind: int, dtype: np.dtype, feature: Any, found: tuple[int, Values] | None
) -> np.ndarray:
    """A feature of a record as an array."""
    values: Any = found[1] if found is not None else ()
    if len(values) and found is not None and found[0] != kind:
        raise BadSampleError(
            f"The feature {name.decode()!r} of the record is a list of another type than "
            "`features` says."
        )
    if kind == BYTES:
        return np.frombuffer(values[0] if len(values) else feature.default_value.encode(), np.uint8)
    shape = feature.shape
    if not feature.has_shape:
        if len(values) % max(math.prod(shape), 1):
            raise BadSampleError(
                f"The feature {name.decode()!r} has {len(values)} elements, which are no whole "
                f"number of the partial shape {list(shape)}."
            )
        return np.array(values, dtype).reshape(len(values) // max(math.prod(shape), 1), *shape)
    if not len(values):
        return np.full(shape, feature.default_value, dtype)
    if len(values) != math.prod(shape):
        wrong, bound = ("small", "least") if len(values) > math.prod(shape) else ("large", "most")
        raise BadSampleError(
            f"Output tensor shape is too {wrong} for the feature {name.decode()!r}: {list(shape)}. "
            f"Expected at {bound} {len(values)} elements, as many as the record has; or use a "
            "`VarLenFeature`."
        )
    return np.array(values, dtype).reshape(shape)
