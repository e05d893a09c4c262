"""From a sample, as it is stored, to the tensors a pipeline wants of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headrace.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    BadSampleError,
    DataTypeError,
    ShapeError,
    UnknownNameError,
)
from headrace.plugin.squirrel.arrays import KINDS, as_tensor, nbytes_of
from headrace.plugin.squirrel.read_ahead import SKIPPED
from headrace.types import DALIDataType, as_data_type, storage_dtype

_POLICIES = ("raise", "skip", "cast")


class MismatchError(BadSampleError, DataTypeError, ShapeError):
    """A sample is not what the others are, or what `schema` says."""


@dataclass(frozen=True, slots=True)
class FieldType:
    """Required properties of a field."""

    dtype: np.dtype[Any] | None = None
    ndim: int | None = None
    shape: tuple[int | None, ...] | None = None


class FieldReader:
    """Takes the wanted fields out of samples, checks and converts them."""

    def __init__(
        self,
        names: Sequence[str],
        *,
        dtype: Any = None,
        schema: Mapping[str, Any] | None = None,
        on_mismatch: str = "raise",
    ) -> None:
        if on_mismatch not in _POLICIES:
            raise ArgumentValueError(
                f'`on_mismatch` is {on_mismatch!r}; it can be "raise", "skip" or "cast".'
            )
        self.names = tuple(names)
        if not self.names:
            raise ArgumentValueError("`fields` is empty; name at least one field.")
        if len(set(self.names)) != len(self.names):
            raise ArgumentValueError(f"`fields` names a field twice: {list(self.names)}.")
        self._on_mismatch = on_mismatch
        self._targets = self._per_field(dtype)
        self._expected: dict[str, FieldType] = {}
        for name, entry in (schema or {}).items():
            if name not in self.names:
                raise ArgumentValueError(
                    f"`schema` describes {name!r}, which is none of the fields {list(self.names)}."
                )
            self._expected[name] = _expectation(name, entry)

    def _per_field(self, dtype: Any) -> dict[str, np.dtype[Any]]:
        if dtype is None:
            return {}
        if isinstance(dtype, Mapping):
            unknown = sorted(set(dtype) - set(self.names))
            if unknown:
                raise ArgumentValueError(
                    f"`dtype` names {unknown[0]!r}, which is none of the fields {list(self.names)}."
                )
            return {name: _target(each) for name, each in dtype.items() if each is not None}
        return dict.fromkeys(self.names, _target(dtype))

    def learn(self, sample: Any) -> None:
        """Expect of every further sample what `sample` is, where nothing else was said."""
        for name in self.names:
            value = self._tensor(sample, name)
            known = self._expected.get(name, FieldType())
            shaped = known.ndim is not None or known.shape is not None
            self._expected[name] = FieldType(
                known.dtype if known.dtype is not None else value.dtype,
                known.ndim if shaped else value.ndim,
                known.shape,
            )

    def output(self, name: str) -> tuple[np.dtype[Any], int]:
        """Element type and number of dimensions of the output of field `name`, once learnt."""
        expected = self._expected[name]
        dtype = self._targets.get(name, expected.dtype)
        ndim = expected.ndim if expected.shape is None else len(expected.shape)
        assert dtype is not None
        assert ndim is not None
        return dtype, ndim

    def __call__(self, sample: Any, shard: Any, number: int) -> tuple[Any, int]:
        """The tensors of `sample`, and their size in bytes; `SKIPPED` if it is left out."""
        try:
            values = tuple(self._checked(sample, name) for name in self.names)
        except (BadSampleError, DataTypeError, ShapeError) as error:
            if self._on_mismatch == "skip":
                return SKIPPED, 0
            raise MismatchError(f"Sample {number} of the shard {shard!r}: {error}") from error
        return values, nbytes_of(values)

    def _tensor(self, sample: Any, name: str) -> np.ndarray:
        if not isinstance(sample, dict):
            raise MismatchError(
                f"It is a {type(sample).__name__}, not a dictionary, so it has no fields. Give its "
                "Composable, with a `map` that makes arrays of it, to `external_source`."
            )
        if name not in sample:
            # Of samples after the first, only what was asked for is read.
            others = ", ".join(repr(key) for key in sample if key not in self.names)
            raise MismatchError(
                f"There is no field {name!r}.{f' Others are {others}.' if others else ''}"
            )
        return as_tensor(sample[name], name)

    def _checked(self, sample: Any, name: str) -> np.ndarray:
        value = self._tensor(sample, name)
        expected = self._expected.get(name)
        if expected is not None:
            if expected.ndim is not None and value.ndim != expected.ndim:
                raise MismatchError(
                    f"The field {name!r} has {value.ndim} dimensions where others have "
                    f"{expected.ndim}. Samples may differ in shape, but not in that."
                )
            if expected.shape is not None and not _fits(value.shape, expected.shape):
                raise MismatchError(
                    f"The field {name!r} has the shape {value.shape} where `schema` says "
                    f"{expected.shape}."
                )
            if expected.dtype is not None and value.dtype != expected.dtype:
                if self._on_mismatch != "cast" and name not in self._targets:
                    raise MismatchError(
                        f"The field {name!r} has elements of type {value.dtype} where others have "
                        f'{expected.dtype}. `on_mismatch="cast"` converts them, `dtype` all.'
                    )
                value = value.astype(expected.dtype)
        target = self._targets.get(name)
        return value if target is None else value.astype(target, copy=False)


def field_names(fields: Any, sample: Any) -> tuple[str, ...]:
    """The names in `fields`, or without it those of `sample`."""
    if isinstance(fields, str):
        return (fields,)
    if fields is not None:
        if not isinstance(fields, Sequence) or not all(isinstance(f, str) for f in fields):
            raise ArgumentTypeError(f"`fields` must be a name or a list of names, got {fields!r}.")
        return tuple(fields)
    if not isinstance(sample, dict):
        raise ArgumentTypeError(
            f"Samples are of type {type(sample).__name__}; only dictionaries have fields. Give "
            "the Composable, with a `map` that makes arrays of them, to `external_source`."
        )
    return tuple(sample)


def _target(value: Any) -> np.dtype[Any]:
    """The type to convert to: one of the library's and of frameworks', or NumPy's short names."""
    try:
        return storage_dtype(as_data_type(value))
    except (ArgumentTypeError, ArgumentValueError, UnknownNameError):
        return _dtype(value, "dtype")


def _dtype(value: Any, argument: str) -> np.dtype[Any]:
    try:
        if isinstance(value, DALIDataType):
            return np.dtype(storage_dtype(value))
        dtype: np.dtype[Any] = np.dtype(value)
    except TypeError as error:
        raise ArgumentTypeError(f"`{argument}` {value!r} is no element type: {error}") from error
    if dtype.kind not in KINDS or dtype.itemsize > 8:
        raise ArgumentValueError(
            f"`{argument}` {dtype} cannot be had; booleans, integers and floats of up to 64 bits "
            "can."
        )
    native: np.dtype[Any] = dtype.newbyteorder("=")
    return native


def _expectation(name: str, entry: Any) -> FieldType:
    if isinstance(entry, (tuple, list)) and len(entry) == 2:
        dtype, form = entry
        found = None if dtype is None else _dtype(dtype, "schema")
        if form is None or (isinstance(form, int) and not isinstance(form, bool)):
            return FieldType(found, form)
        if isinstance(form, (tuple, list)) and all(e is None or isinstance(e, int) for e in form):
            return FieldType(found, len(form), tuple(form))
        raise ArgumentTypeError(
            f"`schema` gives {form!r} for {name!r} where a number of dimensions or a shape goes."
        )
    return FieldType(_dtype(entry, "schema"))


def _fits(shape: tuple[int, ...], wanted: tuple[int | None, ...]) -> bool:
    return all(w is None or s == w for s, w in zip(shape, wanted, strict=True))
