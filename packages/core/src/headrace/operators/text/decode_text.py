"""`decoders.text` and `decoders.json`: files with text, as side data or as numbers."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from headrace.errors import ArgumentValueError, BadSampleError
from headrace.operators.support.argument_types import BoolArg, DataTypeArg, IntArg, StringArg
from headrace.operators.support.operator import SampleContext, SampleOperator, operator
from headrace.operators.support.schema import Arg, Input, Spec
from headrace.types import DALIDataType, is_bool, is_integer, storage_dtype
from headrace.types.dtypes import SIDE_TYPES, is_stored
from headrace.types.side_data import decoded, encoded

_FILE = Input(
    "encoded",
    "Content of a file, 1-D, uint8; or a text.",
    dtypes=(DALIDataType.UINT8, DALIDataType.STRING),
)


def _text(data: np.ndarray, encoding: str) -> str:
    try:
        return data.tobytes().decode(encoding)
    except UnicodeDecodeError as error:
        raise BadSampleError(f"The file is no text in {encoding}: {error}.") from error


@operator(
    "decoders.text",
    inputs=_FILE,
    args=(
        Arg("encoding", StringArg, "utf-8", "Encoding of the text, as Python calls it."),
        Arg("strip", BoolArg, False, "Leave out white space at the beginning and the end."),
    ),
    output_docs=("The text: side data, `types.STRING`.",),
    devices=("cpu",),
)
class TextDecoder(SampleOperator):
    """Makes texts of the content of files: side data that travels beside tensors.

    Pipelines, iterators and `tolist` of batches give them as `str`. A file that is no text is a bad
    sample.

    Examples
    --------
    >>> jpegs, captions = fn.readers.webdataset(paths="train.tar", ext=["jpg", "txt"])
    >>> captions = fn.decoders.text(captions, strip=True)
    >>> paths = fn.decoders.text(fn.get_property(jpegs, key="source_info"))
    """

    def check_constants(self) -> None:
        try:
            "".encode(self.args.encoding)
        except LookupError as error:
            raise ArgumentValueError(f"`encoding`: {error}.") from error

    def infer(self, data: Spec) -> Spec:
        self._is_text = data.dtype == DALIDataType.STRING
        return Spec(DALIDataType.STRING, 1)

    def cpu(self, c: SampleContext, data: np.ndarray) -> np.ndarray:
        text = _text(data, "utf-8" if self._is_text else self.args.encoding)
        return encoded(text.strip() if self.args.strip else text, DALIDataType.STRING)


@operator(
    "decoders.json",
    inputs=Input(
        "encoded",
        "Content of a file, 1-D, uint8; a text; or what another `decoders.json` has made.",
        dtypes=(DALIDataType.UINT8, *SIDE_TYPES),
    ),
    args=(
        Arg(
            "field",
            StringArg,
            None,
            'Path of the value that is wanted: ``"objects.0.name"``; the whole document if not '
            "given.",
        ),
        Arg(
            "dtype",
            DataTypeArg,
            None,
            "Element type of a tensor to make of numbers or truth values; `types.STRING` for a "
            "text. Without it the value is side data.",
        ),
        Arg("ndim", IntArg, 0, "Number of axes of the tensor; 0 for a single number."),
    ),
    output_docs=("The value: side data (`types.PYTHON_OBJECT`), or a tensor of type `dtype`.",),
    devices=("cpu",),
)
class JsonDecoder(SampleOperator):
    """Reads JSON: as side data, dictionaries and lists of Python, or as tensors.

    A file ``cls`` of a WebDataset that says 4 is the number 4. A file that is no JSON, that lacks
    the field, or whose value is of another kind, is a bad sample.

    Examples
    --------
    >>> jpegs, cls, meta = fn.readers.webdataset(paths="train.tar", ext=["jpg", "cls", "json"])
    >>> label = fn.decoders.json(cls, dtype=types.INT64)
    >>> boxes = fn.decoders.json(meta, field="boxes", dtype=types.FLOAT, ndim=2)
    >>> everything = fn.decoders.json(meta)
    """

    def check_constants(self) -> None:
        dtype, ndim = self.args.dtype, self.args.ndim
        if dtype is not None and not is_stored(dtype) and dtype not in SIDE_TYPES:
            raise ArgumentValueError(f"`dtype` is {dtype.name}, which is no type of data.")
        if ndim < 0 or (ndim and (dtype is None or dtype in SIDE_TYPES)):
            raise ArgumentValueError(
                f"`ndim` is {ndim}: it counts the axes of a tensor, whose type is `dtype`."
            )

    def infer(self, data: Spec) -> Spec:
        dtype = self.args.dtype
        self._dtype = DALIDataType.PYTHON_OBJECT if dtype is None else dtype
        self._made = data.dtype if data.dtype == DALIDataType.PYTHON_OBJECT else None
        self._path = self.args.field.split(".") if self.args.field else []
        return Spec(self._dtype, 1 if self._dtype in SIDE_TYPES else self.args.ndim)

    def cpu(self, c: SampleContext, data: np.ndarray) -> np.ndarray:
        if self._made is not None:
            value = decoded(data, self._made)
        else:
            try:
                value = json.loads(_text(data, "utf-8-sig"))
            except (ValueError, RecursionError) as error:
                raise BadSampleError(f"The file is no JSON: {error}.") from error
        for k, part in enumerate(self._path):
            value = _part(value, part, ".".join(self._path[:k]))
        if self._dtype in SIDE_TYPES:
            if self._dtype == DALIDataType.STRING and not isinstance(value, str):
                raise self._other(value, "a text")
            return encoded(value, self._dtype)
        return self._tensor(value)

    def _tensor(self, value: Any) -> np.ndarray:
        dtype, wanted = storage_dtype(self._dtype), f"{self._dtype.name} of {self.args.ndim} axes"
        try:
            found = np.array(value)
        except ValueError as error:  # lists of different lengths
            raise self._other(value, wanted) from error
        if not found.size:  # of an empty list nothing else is known
            found = np.empty(found.shape + (0,) * (self.args.ndim - found.ndim), dtype)
        kinds = "b" if is_bool(self._dtype) else "biu" if is_integer(self._dtype) else "biuf"
        if found.ndim != self.args.ndim or found.dtype.kind not in kinds:
            raise self._other(value, wanted)
        made = found.astype(dtype)
        if is_integer(self._dtype) and (made != found).any():
            raise self._other(value, wanted)
        return made

    def _other(self, value: Any, wanted: str) -> BadSampleError:
        where = f"the field {self.args.field!r} of the JSON" if self.args.field else "the JSON"
        shown = repr(value)
        shown = shown if len(shown) < 80 else f"{shown[:77]}..."
        return BadSampleError(f"{where.capitalize()} is {shown}; expected is {wanted}.")


def _part(value: Any, part: str, before: str) -> Any:
    if isinstance(value, dict) and part in value:
        return value[part]
    if isinstance(value, list) and part.isdecimal() and int(part) < len(value):
        return value[int(part)]
    has = f"the fields {', '.join(map(repr, value))}" if isinstance(value, dict) else repr(value)
    what = f"the field {before!r} of the JSON" if before else "the JSON"
    raise BadSampleError(
        f"{what.capitalize()} has no {part!r}: it is {has[:200]}."
        if not isinstance(value, dict)
        else f"{what.capitalize()} has no field {part!r}; it has {has[11:200] or 'none'}."
    )
