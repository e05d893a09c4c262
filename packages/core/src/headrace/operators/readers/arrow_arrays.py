"""Columns of Arrow as samples: types, and a value for each row, as views wherever they can be."""

from __future__ import annotations

import functools
import posixpath
from collections.abc import Sequence
from types import ModuleType
from typing import Any

import numpy as np

from headrace._optional import import_optional
from headrace.errors import ArgumentValueError, BadSampleError, DataTypeError, did_you_mean
from headrace.operators.readers.grouped import Spans
from headrace.operators.readers.storage import join, read_file
from headrace.operators.support.schema import Spec
from headrace.types import DALIDataType, to_dali_type
from headrace.types.side_data import encoded

EMBEDDED = frozenset(("bytes", "path"))
"""Fields of an image or audio file as Hugging Face's libraries store them."""


def arrow(operator: str) -> ModuleType:
    """The library pyarrow."""
    return import_optional("pyarrow", purpose=f"`{operator}`", install="headrace[arrow]")


class ArrowColumn:
    """The type of a column, or of a field within it: ``"objects.bbox"``.

    `spec`: type of a value. `fields`: names of the fields that are read, below the column.
    `is_file`: true if a value is a file: its bytes, or where there are none, those at its path.
    `is_object`: true if values are no tensors, but objects of Python: side data.
    """

    def __init__(self, schema: Any, name: str) -> None:
        self.name = name
        self.column, self.fields = column_path(schema, name)
        kind, left, rank = schema.field(self.column).type, list(self.fields), 0
        while True:
            kind, inner = _plain(kind)
            if inner is not None:
                kind, rank = inner, rank + 1
            elif _is_struct(kind) and left:
                kind = _field(kind, left.pop(0), name).type
            else:
                break
        if left:
            raise ArgumentValueError(
                f"`columns`: {name!r} names a field of {self.column!r}, which has the type "
                f"{schema.field(self.column).type} and no such field."
            )
        self.is_file = not rank and _is_struct(kind) and _names(kind) == EMBEDDED
        if self.is_file:
            kind = kind.field("bytes").type
        self._leaf = kind
        found = _leaf_type(kind)
        self.is_object = False
        if not rank and _is_text(kind):
            self.spec = Spec(DALIDataType.STRING, 1)
        elif found is None or (found[1] and rank):
            self.is_object = True
            self.spec = Spec(DALIDataType.PYTHON_OBJECT, 1)
        else:
            self.spec = Spec(to_dali_type(found[0]), rank + found[1])

    def values(self, table: Any, folder: str) -> ArrowValues:
        """Those of a table with the column."""
        return ArrowValues(self, table.column(self.column), folder)


def column_lengths(table: Any, name: str) -> np.ndarray:
    """Lengths of a column's values, float64: numbers are their own, lists and bytes are counted."""
    column, fields = column_path(table.schema, name)
    array, left = table.column(column).combine_chunks(), list(fields)
    array = _stored(array)
    while _is_struct(array.type) and (left or _names(array.type) == EMBEDDED):
        array = _stored(_compute().struct_field(array, left.pop(0) if left else "bytes"))
    kind, inner = _plain(array.type)
    if inner is not None:
        array = _compute().list_value_length(array)
    elif _is_text(kind) or (_leaf_type(kind) or ("", 0))[1]:
        kind = arrow("A column").large_binary()
        array = _compute().binary_length(array.cast(kind))
    elif _leaf_type(kind) is None:
        raise ArgumentValueError(f"The column {name!r} has the type {kind}, which has no length.")
    if _types().is_temporal(array.type):
        raise ArgumentValueError(f"The column {name!r} has the type {array.type}: no length.")
    found: np.ndarray = array.cast("float64").to_numpy(zero_copy_only=False)
    return found


class ArrowValues:
    """The values of a column for some rows that lie in memory."""

    def __init__(self, column: ArrowColumn, chunked: Any, folder: str) -> None:
        self.column = column
        self._folder = folder
        self._objects: Any = None
        array = chunked
        if hasattr(chunked, "combine_chunks"):
            array = chunked.chunk(0) if chunked.num_chunks == 1 else chunked.combine_chunks()
        if column.is_object:
            self._objects = array
            return
        self._levels: list[tuple[np.ndarray, np.ndarray | None, int]] = []
        """Of lists, from the outermost on: where each begins, which are there, and the size of all
        if it is fixed.
        """
        self._paths: Any = None
        left = list(column.fields)
        while True:
            array = _stored(array)
            offsets = _offsets(array)
            if offsets is not None:
                fixed = getattr(array.type, "list_size", 0)
                self._levels.append((offsets, _valid(array), fixed))
                array = array.values
            elif _is_struct(array.type) and left:
                array = _compute().struct_field(array, left.pop(0))
            else:
                break
        if column.is_file:
            self._paths = _compute().struct_field(array, "path")
            array = _compute().struct_field(array, "bytes")
        self._valid = _valid(array)
        self._leaves, self._ends = _leaves(array)

    def rows(self, positions: Sequence[int]) -> list[np.ndarray | None]:
        """The values of rows; `None` where one is missing, or is no tensor."""
        if self._objects is not None:
            return [self._object(p) for p in positions]
        ends, leaves, valid = self._ends, self._leaves, self._valid
        if not self._levels:
            if ends is None:
                found: list[Any] = [leaves[p, ...] for p in positions]
            else:
                found = [leaves[ends[p] : ends[p + 1]] for p in positions]
            if valid is not None:
                found = [v if valid[p] else None for p, v in zip(positions, found, strict=True)]
            return found
        return [self._list(p) for p in positions]

    def taken(self, positions: np.ndarray) -> np.ndarray | Spans | None:
        """The values of rows as one array, or as parts of one; `None` where one is missing, or they
        are neither.
        """
        if self._objects is not None or len(self._levels) > 1:
            return None
        ends, valid = self._ends, self._valid
        if self._levels:
            ends, missing, fixed = self._levels[0]
            if fixed or missing is not None or valid is not None or self._ends is not None:
                return None
        elif valid is not None and not valid[positions].all():
            return None
        if ends is None:
            found: np.ndarray = self._leaves[positions]
            return found
        begins = ends[positions].astype(np.int64)
        return Spans(self._leaves, begins, ends[positions + 1] - begins)

    def _object(self, position: int) -> np.ndarray:
        value = self._objects[position].as_py()
        for field in self.column.fields:
            value = _within(value, field)
        return encoded(value, DALIDataType.PYTHON_OBJECT)

    def _list(self, position: int) -> np.ndarray | None:
        begin, end, shape = position, position + 1, []
        for offsets, valid, fixed in self._levels:
            if valid is not None and not valid[begin:end].all():
                return None
            sizes = np.diff(offsets[begin : end + 1])
            size = int(sizes[0]) if len(sizes) else fixed
            if (sizes != size).any():
                return None
            shape.append(size)
            begin, end = int(offsets[begin]), int(offsets[end])
        if self._valid is not None and not self._valid[begin:end].all():
            return None
        found = self._leaves[begin:end]
        return found.reshape(shape) if len(shape) > 1 else found

    def alone(self, position: int) -> np.ndarray:
        """The value of a row that is missing among those of `rows`, or a reason why it is."""
        (found,) = self.rows([position])
        if found is not None:
            return found
        name = self.column.name
        if self._paths is not None and self._paths[position].is_valid:
            path = self._paths[position].as_py()
            return read_file(join(self._folder, path), np.empty)
        if self._levels and (self._levels[0][1] is None or self._levels[0][1][position]):
            raise BadSampleError(
                f"The column {name!r} has lists of different lengths within one value, or with "
                "nothing (null) in them: that is no tensor."
            )
        raise BadSampleError(f"The column {name!r} has no value here (null).")


def _within(value: Any, field: str) -> Any:
    """A field of a structure, or of each in a list."""
    if isinstance(value, list):
        return [_within(each, field) for each in value]
    return None if value is None else value[field]


def folder_of(path: str) -> str:
    """The folder or address that names in a file are relative to."""
    return posixpath.dirname(path)


@functools.cache
def _compute() -> ModuleType:
    return import_optional("pyarrow.compute", purpose="A column", install="headrace[arrow]")


def column_path(schema: Any, name: str) -> tuple[str, tuple[str, ...]]:
    """The column that `name` begins with, and the fields below it."""
    parts = name.split(".")
    for k in range(len(parts), 0, -1):  # the name of a column may have dots
        column = ".".join(parts[:k])
        if column in schema.names:
            return column, tuple(parts[k:])
    raise ArgumentValueError(
        f"`columns` has {name!r}, which is none of the columns: "
        f"{', '.join(map(repr, schema.names))}.{did_you_mean(name, schema.names)}"
    )


def _names(kind: Any) -> set[str]:
    return {kind.field(k).name for k in range(kind.num_fields)}


def _field(kind: Any, part: str, name: str) -> Any:
    if part not in _names(kind):
        raise ArgumentValueError(
            f"`columns`: {name!r} names the field {part!r} where there are "
            f"{', '.join(map(repr, sorted(_names(kind))))}.{did_you_mean(part, _names(kind))}"
        )
    return kind.field(part)


def _types() -> Any:
    return import_optional("pyarrow.types", purpose="A column", install="headrace[arrow]")


def _is_struct(kind: Any) -> bool:
    return bool(_types().is_struct(kind))


def _plain(kind: Any) -> tuple[Any, Any]:
    """A type without what is around it, and that of its elements if it is a list."""
    while True:
        if hasattr(kind, "storage_type"):
            kind = kind.storage_type
        elif _types().is_dictionary(kind):
            kind = kind.value_type
        else:
            break
    t = _types()
    lists = (t.is_list, t.is_large_list, t.is_fixed_size_list, t.is_list_view, t.is_large_list_view)
    return kind, kind.value_type if any(test(kind) for test in lists) else None


def _is_text(kind: Any) -> bool:
    t = _types()
    return bool(t.is_string(kind) or t.is_large_string(kind) or t.is_string_view(kind))


def _leaf_type(kind: Any) -> tuple[np.dtype, int] | None:
    """Element type of a value that is no list, and its number of axes."""
    t = _types()
    if any(
        test(kind)
        for test in (t.is_binary, t.is_large_binary, t.is_binary_view, t.is_fixed_size_binary)
    ):
        return np.dtype(np.uint8), 1
    if t.is_boolean(kind):
        return np.dtype(bool), 0
    if t.is_integer(kind) or t.is_floating(kind):
        return np.dtype(kind.to_pandas_dtype()), 0
    if t.is_date32(kind) or t.is_time32(kind):
        return np.dtype(np.int32), 0
    if t.is_date64(kind) or t.is_time64(kind) or t.is_timestamp(kind) or t.is_duration(kind):
        return np.dtype(np.int64), 0
    return None


def _stored(array: Any) -> Any:
    """An array without what is around it."""
    while True:
        if hasattr(array.type, "storage_type"):
            array = array.storage
        elif _types().is_dictionary(array.type):
            array = array.dictionary_decode()
        else:
            return array


def _valid(array: Any) -> np.ndarray | None:
    if not array.null_count:
        return None
    found: np.ndarray = array.is_valid().to_numpy(zero_copy_only=False)
    return found


def _offsets(array: Any) -> np.ndarray | None:
    """Beginnings of the values of each list, and the end of the last; `None` without lists."""
    t, kind = _types(), array.type
    if t.is_list(kind) or t.is_large_list(kind):
        found: np.ndarray = array.offsets.to_numpy()
        return found
    if t.is_fixed_size_list(kind):
        starts: np.ndarray = (array.offset + np.arange(len(array) + 1)) * kind.list_size
        return starts
    if t.is_list_view(kind) or t.is_large_list_view(kind):
        raise DataTypeError(
            f"Lists of the type {kind} are not read; write the column as `pyarrow.list_`."
        )
    return None


def _leaves(array: Any) -> tuple[np.ndarray, np.ndarray | None]:
    """The values of an array without lists, and where each begins if they are bytes."""
    t, kind = _types(), array.type
    if _is_text(kind):
        array, kind = array.cast("large_string"), arrow("A column").large_binary()
    elif t.is_binary_view(kind):
        array = array.cast("large_binary")
        kind = array.type
    count, offset, buffers = len(array), array.offset, array.buffers()
    if t.is_fixed_size_binary(kind):
        width = kind.byte_width
        return _of_buffer(buffers[1], np.uint8, offset * width, count * width, (count, width)), None
    if t.is_binary(kind) or t.is_large_binary(kind):
        integer = np.int64 if t.is_large_binary(kind) else np.int32
        if not count:
            return np.empty(0, np.uint8), np.zeros(1, np.int64)
        ends = np.frombuffer(buffers[1], integer, count + 1, offset * np.dtype(integer).itemsize)
        data = buffers[2]
        leaves = np.frombuffer(data, np.uint8) if data is not None else np.empty(0, np.uint8)
        return leaves, ends
    if t.is_boolean(kind):
        return array.fill_null(False).to_numpy(zero_copy_only=False), None
    dtype, _ = _leaf_type(kind) or (None, 0)
    assert dtype is not None
    return _of_buffer(buffers[1], dtype, offset, count, (count,)), None


def _of_buffer(
    buffer: Any, dtype: Any, offset: int, count: int, shape: tuple[int, ...]
) -> np.ndarray:
    if buffer is None or not count:
        return np.zeros(shape, dtype)
    size = np.dtype(dtype).itemsize
    return np.frombuffer(buffer, dtype, count, offset * size).reshape(shape)
