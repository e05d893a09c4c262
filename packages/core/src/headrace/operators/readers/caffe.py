"""`readers.caffe`: data bases of Caffe."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from headrace.errors import ArgumentValueError, BadSampleError
from headrace.kernels.cpu import datum
from headrace.kernels.cpu.protobuf import Message
from headrace.operators.readers.base import Reader, reader
from headrace.operators.readers.index import Index, first_of
from headrace.operators.readers.lmdb import LmdbIndex
from headrace.operators.support.argument_types import BoolArg, PathListArg
from headrace.operators.support.contexts import ChunkContext
from headrace.operators.support.operator import SampleContext
from headrace.operators.support.schema import REQUIRED, Arg, Spec
from headrace.tensors.rows import Rows
from headrace.types import DALIDataType


def _count_outputs(args: dict[str, Any]) -> int:
    return sum(bool(args.get(name, True)) for name in ("image_available", "label_available"))


@reader(
    "readers.caffe",
    old_names=("caffe_reader",),
    args=(
        Arg("path", PathListArg, REQUIRED, "The data bases of LMDB: folders, or one of them."),
        Arg("image_available", BoolArg, True, "Whether there is an output for images."),
        Arg("label_available", BoolArg, True, "Whether there is an output for labels."),
    ),
    epoch_shuffle=False,
    num_outputs=_count_outputs,
    output_docs=(
        (
            "With `image_available`: content of the image file, 1-D, uint8; pixels of shape "
            "``(height, width, channels)`` where records say that they are not encoded."
        ),
        "With `label_available`: the label, int32, shape ``(1,)``, or ``(0,)`` if there is none.",
    ),
)
class CaffeReader(Reader):
    """Reads images and labels from data bases of LMDB, as Caffe's ``convert_imageset`` makes them.

    Their records are ``Datum`` messages, read in the order of their keys. No library is needed for
    it.

    Examples
    --------
    >>> encoded, labels = fn.readers.caffe(path="train_lmdb")
    """

    permutes = False
    chunks_light = True

    _rank: int

    def list_entries(self) -> Index:
        args = self.args
        if not (args.image_available or args.label_available):
            raise ArgumentValueError(
                "`image_available` and `label_available` are both False: there is nothing to read."
            )
        index = LmdbIndex(args.path)
        first = first_of(index, _parse)
        self._rank = 1 if first is None else first[0].ndim
        return index

    def infer(self, *data: Spec) -> tuple[Spec, ...]:
        specs = Spec(DALIDataType.UINT8, self._rank), Spec(DALIDataType.INT32, 1)
        return self._wanted(*specs)

    def cpu(self, c: SampleContext, *data: np.ndarray) -> tuple[np.ndarray, ...]:
        image, label = _parse(data[0])
        if image.ndim != self._rank:
            raise BadSampleError(
                "Records of Caffe must all be encoded images, or all be pixels, and this one is "
                "not as the first."
            )
        return self._wanted(image, label)

    def chunk_kind(self) -> Any:
        return self._rank, self.args.image_available, self.args.label_available

    def cpu_chunk(self, c: ChunkContext, *data: Rows) -> tuple[Rows, ...] | None:
        (messages,) = data
        found = np.empty((len(messages), 4), np.int64)
        if self._rank != 1 or not datum.find_data(messages.addresses, messages.sizes, found):
            return None
        labels = None
        if self.args.label_available:
            labels = c.empty(found[:, 2:3].copy(), np.int32, int(self.args.image_available))
            assert labels.flat is not None
            assert labels.begins is not None
            has = found[:, 2] > 0
            labels.flat[labels.begins[has]] = found[has, 3].astype(np.int32)
        return self._wanted(messages.window(found[:, 0], found[:, 1] - found[:, 0]), labels)

    def _wanted(self, image: Any, label: Any) -> tuple[Any, ...]:
        args = self.args
        given = ((image, args.image_available), (label, args.label_available))
        return tuple([each for each, wanted in given if wanted])


def _parse(data: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Image and label of a ``Datum``."""
    try:
        message = Message.of(data)
    except ValueError as error:
        raise BadSampleError(
            "Error while parsing Caffe record: it is no `Datum` message, or damaged."
        ) from error
    image = (message.parts(datum.DATA) or [np.zeros(0, np.uint8)])[-1]
    if message.integer(datum.ENCODED) == 0:
        extents = datum.HEIGHT, datum.WIDTH, datum.CHANNELS
        shape = [_int32(message.integer(n) or 0) for n in extents]
        if min(shape) < 0 or math.prod(shape) != image.size:
            raise BadSampleError(
                f"The content size of the raw image, {image.size} bytes, does not match its "
                f"height, width and channels, {tuple(shape)}."
            )
        image = image.reshape(shape)
    label = message.integer(datum.LABEL)
    return image, np.array([] if label is None else [_int32(label)], np.int32)


def _int32(value: int) -> int:
    """The low 32 bits of an integer, as fields of that type have them."""
    return (value + 2**31) % 2**32 - 2**31
