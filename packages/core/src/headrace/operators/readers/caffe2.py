"""`readers.caffe2`: data bases of Caffe2."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from headrace.errors import ArgumentChoiceError, ArgumentValueError, BadSampleError
from headrace.kernels.cpu import tensor_protos
from headrace.kernels.cpu.protobuf import VARINT, Message
from headrace.operators.readers.base import Reader, reader
from headrace.operators.readers.index import Index, first_of
from headrace.operators.readers.lmdb import LmdbIndex
from headrace.operators.support.argument_types import BoolArg, IntArg, PathListArg
from headrace.operators.support.contexts import ChunkContext
from headrace.operators.support.operator import SampleContext
from headrace.operators.support.schema import REQUIRED, Arg, Spec
from headrace.tensors.rows import Rows
from headrace.types import to_dali_type, to_numpy_type

_SINGLE, _SPARSE, _DENSE, _WEIGHTED, _NONE = range(5)
"""Values of `label_type`."""
_FLOAT, _INT32, _BYTE, _STRING, _INT64 = 1, 2, 3, 4, 10
"""Types of the elements of a ``TensorProto``."""
_TYPES = {*range(11), 12, 13}
"""All that there are: others are no value of the field."""
_KNOWN = np.isin(np.arange(max(_TYPES) + 1), list(_TYPES))
_DIMS, _TYPE, _FLOATS, _INTEGERS, _BYTES, _STRINGS, _LONG_INTEGERS = 1, 2, 3, 4, 5, 6, 10
"""Numbers of the fields of a ``TensorProto``."""
_NUMBERS: dict[int, tuple[int, type]] = {
    _FLOAT: (_FLOATS, np.float32),
    _INT32: (_INTEGERS, np.int32),
    _INT64: (_LONG_INTEGERS, np.int64),
}
"""Types that are numbers: the field that they are in, and what they become."""


def _count_outputs(args: dict[str, Any]) -> int:
    label = args.get("label_type", _SINGLE)
    has_box = args.get("bbox", False) or label in (_SPARSE, _WEIGHTED)
    given = args.get("image_available", True), label != _NONE, has_box
    return sum(map(bool, given)) + max(int(args.get("additional_inputs", 0)), 0)


@reader(
    "readers.caffe2",
    old_names=("caffe2_reader",),
    args=(
        Arg("path", PathListArg, REQUIRED, "The data bases of LMDB: folders, or one of them."),
        Arg("image_available", BoolArg, True, "Whether records begin with an image."),
        Arg(
            "label_type",
            IntArg,
            _SINGLE,
            "What is after it: 0 for one label; 1 for the numbers of labels, which become a "
            "vector with ones at their places; 2 for a vector; 3 for numbers of labels and their "
            "weights, which become a vector with the weights at their places; 4 for no label.",
        ),
        Arg("num_labels", IntArg, 1, "Length of the vectors of `label_type` 1 and 3."),
        Arg(
            "additional_inputs",
            IntArg,
            0,
            "How many tensors after the label are outputs. The weights of `label_type` 3 are the "
            "first of them.",
        ),
        Arg("bbox", BoolArg, False, "Whether a box follows these: four values, int32."),
    ),
    epoch_shuffle=False,
    num_outputs=_count_outputs,
    output_docs=(
        (
            "With `image_available`: content of the image file, 1-D, uint8; pixels of shape "
            "``(height, width, channels)`` where records have them."
        ),
        "Unless `label_type` is 4: the label of shape ``(1,)``, or the vector; int32 or float32.",
        "For each of `additional_inputs`: a tensor of int32, int64 or float32, 1-D.",
        (
            "With `bbox`, or where `label_type` is 1 or 3: the box, int32, of shape ``(4,)``; "
            "``(0,)`` where there is none and `bbox` is not given."
        ),
    ),
)
class Caffe2Reader(Reader):
    """Reads images and labels from data bases of LMDB, as Caffe2 has them.

    Their records are ``TensorProtos`` messages, read in the order of their keys. No library is
    needed for it.

    Examples
    --------
    >>> encoded, labels = fn.readers.caffe2(path="train_lmdb")
    """

    permutes = False
    chunks_light = True

    _specs: tuple[Spec, ...]

    def list_entries(self) -> Index:
        args = self.args
        if args.label_type not in range(5):
            raise ArgumentChoiceError(
                f"Unsupported label type: `label_type` is {args.label_type}, and can be 0 to 4."
            )
        for name in ("num_labels", "additional_inputs"):
            if (value := getattr(args, name)) < 0:
                raise ArgumentValueError(f"`{name}` must not be negative, got {value}.")
        index = LmdbIndex(args.path)
        types = self._likely_types()
        if not types:
            raise ArgumentValueError("Neither image nor label nor anything else is to be read.")
        first = first_of(index, self._parse) or [np.zeros(0, each) for each in types]
        self._specs = tuple([Spec(to_dali_type(each.dtype), each.ndim) for each in first])
        return index

    def _likely_types(self) -> list[type]:
        """Types of the outputs where no record can tell them."""
        args = self.args
        label = np.float32 if args.label_type == _WEIGHTED else np.int32
        box = args.bbox or args.label_type in (_SPARSE, _WEIGHTED)
        return [
            *[np.uint8] * args.image_available,
            *[label] * (args.label_type != _NONE),
            *[np.float32] * args.additional_inputs,
            *[np.int32] * bool(box),
        ]

    def infer(self, *data: Spec) -> tuple[Spec, ...]:
        return self._specs

    def cpu(self, c: SampleContext, *data: np.ndarray) -> tuple[np.ndarray, ...]:
        found = self._parse(data[0])
        for number, (output, spec) in enumerate(zip(found, self._specs, strict=True)):
            if (to_dali_type(output.dtype), output.ndim) != (spec.dtype, spec.ndim):
                raise BadSampleError(
                    "Records of Caffe2 must all have the same types and numbers of dimensions: "
                    f"output {number} of this one is {output.dtype} with {output.ndim}, and of the "
                    f"first {spec.dtype.name} with {spec.ndim}."
                )
        return tuple(found)

    def cpu_chunk(self, c: ChunkContext, *data: Rows) -> tuple[Rows, ...] | None:
        """Parse records whose images are strings; `None` where one is something else."""
        args, (records,) = self.args, data
        single = args.label_type in (_SINGLE, _DENSE)
        box = args.bbox or not (single or args.label_type == _NONE)
        image, label = int(args.image_available), int(args.label_type != _NONE)
        plain = image + label + args.additional_inputs
        found = np.empty((len(records), plain + box, 6), np.int64)
        if not tensor_protos.find_tensors(records.addresses, records.sizes, _KNOWN, found):
            return None
        made: list[Rows] = []
        if image:
            begins = found[:, 0, tensor_protos.STRING_BEGIN]
            are_strings = (found[:, 0, tensor_protos.KIND] == _STRING) & (begins >= 0)
            if self._specs[0].ndim != 1 or not are_strings.all():
                return None
            made.append(records.window(begins, found[:, 0, tensor_protos.STRING_END] - begins))
        if label and not single:
            vectors = self._vectors(c, records, found[:, image:], len(made))
            if vectors is None:
                return None
            made.append(vectors)
        for number in range(image + (label and not single), plain):
            count = 1 if label and number == image and args.label_type == _SINGLE else None
            known = found[:, number]
            if label and number == image and (known[:, tensor_protos.KIND] == _INT64).any():
                return None
            numbers = self._numbers(c, records, known, len(made), count)
            if numbers is None:
                return None
            made.append(numbers)
        if box:
            known = found[:, plain].copy()
            has = known[:, tensor_protos.KIND] == _INT32
            counts = known[:, tensor_protos.COUNT]
            if (counts[has] != 4).any() or (args.bbox and not has.all()):
                return None
            counts[~has] = known[~has, tensor_protos.BEGIN] = known[~has, tensor_protos.END] = 0
            known[:, tensor_protos.KIND] = _INT32
            boxes = self._numbers(c, records, known, len(made))
            assert boxes is not None
            made.append(boxes)
        return tuple(made)

    def _numbers(
        self,
        c: ChunkContext,
        records: Rows,
        found: np.ndarray,
        output: int,
        count: int | None = None,
    ) -> Rows | None:
        """The numbers of a tensor of each record; `None` where they are not of the type of the
        output, or not `count`.
        """
        dtype, counts = to_numpy_type(self._specs[output].dtype), found[:, tensor_protos.COUNT]
        kinds = [kind for kind, (_, each) in _NUMBERS.items() if each == dtype]
        wrong = count is not None and (counts != count).any()
        if wrong or not kinds or (found[:, tensor_protos.KIND] != kinds[0]).any():
            return None
        made = c.empty(counts[:, np.newaxis].copy(), dtype, output)
        assert made.flat is not None
        assert made.begins is not None
        flat = made.flat
        if kinds[0] == _FLOAT:
            lists = np.empty(0, np.int64), flat.view(np.uint32)
        else:
            lists = flat, np.empty(0, np.uint32)
        rows = np.ascontiguousarray(found)
        tensor_protos.read_numbers(records.addresses, records.sizes, rows, made.begins, *lists)
        return made

    def _vectors(
        self, c: ChunkContext, records: Rows, found: np.ndarray, output: int
    ) -> Rows | None:
        """Vectors with ones, or weights, at the labels of each record; `None` where one has labels
        that are out of bounds, or not as many weights.
        """
        size, weighted = self.args.num_labels, self.args.label_type == _WEIGHTED
        counts = found[:, 0, tensor_protos.COUNT]
        kinds = found[:, 0, tensor_protos.KIND]
        if (kinds != _INT32).any() or not size:
            return None
        ends = np.cumsum(counts)
        labels, values = np.empty(counts.sum(), np.int32), np.ones(counts.sum(), np.float32)
        facts = records.addresses, records.sizes
        rows, nothing = np.ascontiguousarray(found[:, 0]), np.empty(0, np.uint32)
        tensor_protos.read_numbers(*facts, rows, ends - counts, labels, nothing)
        if labels.min(initial=0) < 0 or labels.max(initial=0) >= size:
            return None
        if weighted:
            rows = np.ascontiguousarray(found[:, 1])
            of_weights = rows[:, tensor_protos.KIND] == _FLOAT
            if not of_weights.all() or (rows[:, tensor_protos.COUNT] != counts).any():
                return None
            bits = values.view(np.uint32)
            tensor_protos.read_numbers(*facts, rows, ends - counts, labels, bits)
        dtype = to_numpy_type(self._specs[output].dtype)
        made = c.empty(np.full((len(records), 1), size), dtype, output)
        assert made.flat is not None
        assert made.begins is not None
        for begin in made.begins.tolist():
            made.flat[begin : begin + size] = 0
        made.flat[np.repeat(made.begins, counts) + labels] = values
        return made

    def _parse(self, data: np.ndarray) -> list[np.ndarray]:
        """The outputs of a record."""
        args = self.args
        try:
            rest = [_TensorRecord.of(each) for each in Message.of(data).parts(1)]
        except ValueError as error:
            raise BadSampleError(
                "Error while parsing Caffe2 record: it is no `TensorProtos` message, or damaged."
            ) from error
        rest.reverse()
        found = []
        if args.image_available:
            found.append(_next(rest, "image").image())
        if args.label_type != _NONE:
            found.append(self._label(_next(rest, "label"), rest))
        found += [
            _next(rest, "tensor of `additional_inputs`").numbers("additional tensor")
            for _ in range(args.additional_inputs)
        ]
        box = rest[-1] if rest else None
        has_box = box is not None and box.kind == _INT32
        if args.bbox:
            if box is None or not has_box:
                raise BadSampleError("The record of Caffe2 has no box of type int32 at its end.")
            found.append(box.numbers("box", 4))
        elif args.label_type in (_SPARSE, _WEIGHTED):
            found.append(box.numbers("box", 4) if box and has_box else np.zeros(0, np.int32))
        return found

    def _label(self, label: _TensorRecord, rest: list[_TensorRecord]) -> np.ndarray:
        """The label as an output; `rest` is what is after it, the next one last."""
        kind, count = self.args.label_type, self.args.num_labels
        if label.kind not in (_FLOAT, _INT32):
            raise BadSampleError(
                f"Unsupported label data type {label.kind}; Caffe2's FLOAT (1) and INT32 (2) are "
                "known."
            )
        values = label.numbers("label", 1 if kind == _SINGLE else None)
        if kind in (_SINGLE, _DENSE):
            return values
        places = values.astype(np.int64)
        if places.size and not 0 <= places.min() <= places.max() < count:
            raise BadSampleError(
                f"Label index out of bounds: the record has the labels {places.tolist()}, and "
                f"`num_labels` is {count}."
            )
        if kind == _SPARSE:
            vector = np.zeros(count, np.int32)
            vector[places] = 1
            return vector
        vector = np.zeros(count, np.float32)
        if not rest or rest[-1].kind != _FLOAT:
            raise BadSampleError("The record of Caffe2 has no weights, float32, after its labels.")
        vector[places] = rest[-1].numbers("list of weights", len(places))
        return vector


class _TensorRecord(NamedTuple):
    """A ``TensorProto``: the type of its elements, its extents, and all of its fields."""

    kind: int
    dims: list[int]
    message: Message

    @classmethod
    def of(cls, data: np.ndarray) -> _TensorRecord:
        message = Message.of(data)
        kinds = [a for n, k, a, _ in message.rows if n == _TYPE and k == VARINT and a in _TYPES]
        return cls(kinds[-1] if kinds else _FLOAT, message.integers(_DIMS).tolist(), message)

    def image(self) -> np.ndarray:
        """The first of its strings, or its bytes as pixels ``(height, width, channels)``."""
        strings = self.message.parts(_STRINGS)
        if self.kind == _STRING and strings:
            return strings[0]
        if self.kind != _BYTE:
            raise BadSampleError(
                f"The image is a tensor of Caffe2's type {self.kind}; STRING (4) with an encoded "
                "image and BYTE (3) with pixels are known."
            )
        pixels = (self.message.parts(_BYTES) or [np.zeros(0, np.uint8)])[-1]
        shape = (*self.dims, 1) if len(self.dims) == 2 else tuple(self.dims)
        if len(shape) != 3 or min(shape) < 0 or pixels.size != math.prod(shape):
            raise BadSampleError(
                f"Image data size mismatch: {pixels.size} bytes for the extents {self.dims}, which "
                "are height, width and channels."
            )
        return pixels.reshape(shape)

    def numbers(self, what: str, count: int | None = None) -> np.ndarray:
        """Its numbers, 1-D."""
        if self.kind not in _NUMBERS:
            raise BadSampleError(
                f"Unsupported data type {self.kind} of the {what}; Caffe2's FLOAT (1), INT32 (2) "
                "and INT64 (10) are known."
            )
        field, dtype = _NUMBERS[self.kind]
        message = self.message
        try:
            found = message.floats(field) if self.kind == _FLOAT else message.integers(field)
        except ValueError as error:
            raise BadSampleError(f"The {what} of the record of Caffe2 is damaged.") from error
        values: np.ndarray = found.astype(dtype)
        if count is not None and len(values) != count:
            raise BadSampleError(
                f"The {what} of the record of Caffe2 has {len(values)} values, expected {count}."
            )
        return values


def _next(rest: list[_TensorRecord], what: str) -> _TensorRecord:
    if not rest:
        raise BadSampleError(f"The record of Caffe2 has no {what}: it has too few tensors.")
    return rest.pop()
