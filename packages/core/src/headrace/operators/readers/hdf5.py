"""`readers.hdf5`: data sets of HDF5 files."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from headrace._optional import import_optional
from headrace.errors import ArgumentValueError, BadSampleError, DataTypeError, did_you_mean
from headrace.operators.readers.base import Reader, reader
from headrace.operators.readers.columns import CACHE_ARG, count_columns
from headrace.operators.readers.grouped import GroupedIndex, Values
from headrace.operators.readers.index import FileIndex, Index
from headrace.operators.readers.listing import expanded, within
from headrace.operators.readers.storage import file_system, is_remote
from headrace.operators.support.argument_types import PathListArg, StringListArg
from headrace.operators.support.operator import SampleContext
from headrace.operators.support.schema import REQUIRED, Arg, Spec
from headrace.types import DALIDataType, to_dali_type

_NAME = "readers.hdf5"
_ROWS = 64
"""Rows of a data set that is not stored in chunks which are read at once."""


def _h5py() -> Any:
    return import_optional("h5py", purpose=f"`{_NAME}`", install="headrace[hdf5]")


@contextmanager
def _opened(path: str) -> Iterator[Any]:
    h5py = _h5py()
    if is_remote(path):
        system, inside = file_system(path)
        with system.open(inside, "rb") as remote, h5py.File(remote, "r") as file:
            yield file
    else:
        with h5py.File(path.removeprefix("file://"), "r") as file:
            yield file


def _found(file: Any, name: str, path: str) -> Any:
    """A data set in a file."""
    found = file.get(name)
    if not isinstance(found, _h5py().Dataset):
        known: list[str] = []
        file.visititems(lambda n, o: known.append(n) if hasattr(o, "shape") else None)
        what = "a group" if found is not None else "no data set"
        raise ArgumentValueError(
            f"`columns` has {name!r}, which is {what} in {path!r}; data sets there are "
            f"{', '.join(map(repr, known[:20])) or 'none'}.{did_you_mean(name, known)}"
        )
    if not found.shape:
        raise ArgumentValueError(
            f"`columns`: {name!r} in {path!r} is a single value; the first axis counts the samples."
        )
    return found


def _spec(dataset: Any, name: str, path: str) -> tuple[Spec, bool]:
    """Type of a sample of a data set, and True if each has a length of its own."""
    if _is_text(dataset.dtype) and len(dataset.shape) == 1:
        return Spec(DALIDataType.STRING, 1), True
    varying = _h5py().check_vlen_dtype(dataset.dtype)
    dtype = varying or dataset.dtype
    if not isinstance(dtype, np.dtype):
        dtype = np.dtype(dtype) if dtype not in (str, bytes) else None
    if dtype is None or dtype.kind not in "biuf" or (varying and len(dataset.shape) > 1):
        raise DataTypeError(
            f"`columns`: {name!r} in {path!r} has elements of type {dataset.dtype}, and samples of "
            "it are no tensors: those are numbers, truth values, and lists of numbers of any "
            "length."
        )
    try:
        kind = to_dali_type(dtype.newbyteorder("="))
    except TypeError as error:
        raise DataTypeError(f"`columns`: {name!r} in {path!r}: {error}") from error
    return Spec(kind, 1 if varying else len(dataset.shape) - 1), bool(varying)


def _is_text(dtype: Any) -> bool:
    return _h5py().check_string_dtype(dtype) is not None


def _lengths(paths: Sequence[str], name: str) -> np.ndarray | None:
    """The lengths of a data set's samples: numbers are their own, others are counted."""
    every: list[Any] = []
    for path in paths:
        with _opened(path) as file:
            found = file.get(name)
            if not isinstance(found, _h5py().Dataset) or not found.shape:
                return None
            varies = _spec(found, name, path)[1]
            if varies or len(found.shape) > 1:
                every.append(
                    [len(v) for v in found[:]] if varies else [found.shape[1]] * len(found)
                )
            else:
                every.append(found[:])
    return np.concatenate(every).astype(np.float64)


class _Part:
    """A data set in one file: what is known of it without its values."""

    def __init__(self, dataset: Any, name: str, path: str) -> None:
        self.spec, self.varies = _spec(dataset, name, path)
        self.rows, self.shape, self.dtype = dataset.shape[0], dataset.shape[1:], dataset.dtype
        self.chunk = dataset.chunks[0] if dataset.chunks else 0
        self.offset: int | None = None
        """Place of the values in the file, if they lie there in one piece, as they are."""
        if not (self.varies or self.chunk or dataset.is_virtual or dataset.external):
            self.offset = dataset.id.get_offset()


class _Rows:
    """Values of a data set for the rows of a group."""

    def __init__(self, values: np.ndarray, dtype: np.dtype) -> None:
        self._values, self._dtype = values, dtype

    def rows(self, positions: Sequence[int]) -> list[np.ndarray | None]:
        """Those of some rows."""
        return [self.alone(position) for position in positions]

    def taken(self, positions: np.ndarray) -> np.ndarray | None:
        """Those of some rows as one array; `None` where they differ in length."""
        return None if self._values.dtype.kind in "SO" else self._values[positions]

    def alone(self, position: int) -> np.ndarray:
        """That of one row."""
        value = self._values[position]
        if isinstance(value, bytes):
            return np.frombuffer(value, np.uint8)
        return np.asarray(self._values[position, ...][()], self._dtype)


class _GroupedHdf5(GroupedIndex):
    """Rows that are read some at a time by the library, as chunks are decompressed as a whole."""

    def __init__(
        self, paths: Sequence[str], columns: Sequence[str], parts: Any, cache_bytes: int
    ) -> None:
        self._paths, self._names = list(paths), list(columns)
        self._groups: list[tuple[int, int, int]] = []
        for file, own in enumerate(parts):
            step = max(*[part.chunk for part in own], 0) or _ROWS
            for first in range(0, own[0].rows, step):
                self._groups.append((file, first, min(first + step, own[0].rows)))
        self.length_names = tuple(columns)
        specs = [part.spec for part in parts[0]]
        self._dtypes = [_stored(part) for part in parts[0]]
        super().__init__([last - first for _, first, last in self._groups], specs, cache_bytes)

    def lengths(self, name: str) -> np.ndarray | None:
        """The lengths of a data set's samples."""
        return _lengths(self._paths, name)

    def source(self, entry: int) -> str:
        """The file and row of an entry."""
        return "{}, row {}".format(*self.file_row(entry))

    def file_row(self, entry: int) -> tuple[str, int]:
        """The file of an entry, and its row there."""
        group, position = self.place(entry)
        file, first, _ = self._groups[group]
        return self._paths[file], first + position

    def read_group(self, group: int) -> tuple[list[Values], int]:
        """The data sets' values for some rows."""
        file, first, last = self._groups[group]
        path, found, size_bytes = self._paths[file], [], 0
        try:
            with _opened(path) as opened:
                for name, dtype in zip(self._names, self._dtypes, strict=True):
                    values = opened[name][first:last]
                    if values.dtype.kind == "S":
                        size_bytes += values.nbytes
                    elif values.dtype.kind != "O":
                        values = np.ascontiguousarray(values, dtype)
                        size_bytes += values.nbytes
                    else:
                        size_bytes += sum(getattr(v, "nbytes", 0) or len(v) for v in values)
                    found.append(_Rows(values, dtype))
        except Exception as error:  # the library raises errors of many kinds
            raise BadSampleError(
                f"Rows {first} to {last - 1} of {path!r} cannot be read: {error}."
            ) from error
        return list(found), size_bytes


def _stored(part: _Part) -> np.dtype:
    if part.spec.dtype == DALIDataType.STRING:
        return np.dtype(np.uint8)
    varying = _h5py().check_vlen_dtype(part.dtype)
    found: np.dtype = np.dtype(varying or part.dtype).newbyteorder("=")
    return found


class _PlainHdf5(FileIndex):
    """Rows that lie in files as they are."""

    def __init__(self, paths: Sequence[str], parts: Any) -> None:
        files: Any = []
        offsets: Any = []
        sizes: Any = []
        rows = []
        for file, own in enumerate(parts):
            numbers = np.arange(own[0].rows)
            widths = np.array([math.prod(p.shape) * p.dtype.itemsize for p in own], np.int64)
            offsets.append(numbers[:, np.newaxis] * widths + [p.offset for p in own])
            sizes.append(np.broadcast_to(widths, offsets[-1].shape))
            files.append(np.full(offsets[-1].shape, file))
            rows.append(numbers)
        files, offsets, sizes = map(np.concatenate, (files, offsets, sizes))
        super().__init__(paths, files=files, offsets=offsets, sizes=sizes)
        self._rows = np.concatenate(rows)
        self.types = [(p.dtype, p.shape, p.spec) for p in parts[0]]

    def lengths(self, name: str) -> np.ndarray | None:
        """The lengths of a data set's samples."""
        found = super().lengths(name)
        return _lengths(self.paths, name) if found is None else found

    def source(self, entry: int) -> str:
        """The file and row of an entry."""
        file, _, _ = self._place(entry * len(self.specs))
        return f"{self.paths[file]}, row {self._rows[entry]}"


@reader(
    _NAME,
    class_name="Hdf5",
    args=(
        Arg(
            "paths",
            PathListArg,
            REQUIRED,
            "The files, or folders with ``.h5`` files. Names may have wildcards and braces, as in "
            "a shell, and be addresses that fsspec knows.",
        ),
        Arg(
            "columns",
            StringListArg,
            REQUIRED,
            'The data sets to read, such as ``"train/images"``: an output for each, in this order. '
            "Their first axes, which count the samples, are equal.",
        ),
        CACHE_ARG,
    ),
    num_outputs=count_columns,
    output_docs=("Of each data set: its value for the sample.",),
)
class Hdf5Reader(Reader):
    """Reads data sets of HDF5 files, a sample for each row.

    Samples have the type and shape of a row; where rows vary in length (``h5py.vlen_dtype``), they
    are 1-D. Data sets that are stored in one piece are read without the library, in any order.
    Those in chunks are read by the library h5py, chunk by chunk; then `random_shuffle` permutes
    chunks and shuffles their rows by a window, and `shuffle_after_epoch` permutes both for every
    epoch, rows within blocks of `initial_fill`.

    Examples
    --------
    >>> images, labels = fn.readers.hdf5(paths="train.h5", columns=["images", "labels"])
    """

    permutes = False

    def list_entries(self) -> Index:
        args = self.args
        names = list(args.columns)
        paths = [p for path in expanded("paths", args.paths) for p in within(path, ".h5")]
        parts: list[list[_Part]] = []
        for path in paths:
            try:
                with _opened(path) as file:
                    parts.append([_Part(_found(file, n, path), n, path) for n in names])
            except OSError as error:
                raise ArgumentValueError(
                    f"`paths`: {path!r} cannot be read as a file of HDF5: {error}."
                ) from error
            _check(parts[0], parts[-1], names, paths[0], path)
        if not sum(own[0].rows for own in parts):
            raise ArgumentValueError(f"The data set {names[0]!r} has no rows in {paths[0]!r}.")
        every = [part for own in parts for part in own]
        if all(part.offset is not None for part in every) and not any(map(is_remote, paths)):
            return _PlainHdf5(paths, parts)
        return _GroupedHdf5(paths, names, parts, args.cache_bytes)

    @property
    def parses(self) -> bool:
        return isinstance(self.index, _PlainHdf5)

    def infer(self, *data: Spec) -> tuple[Spec, ...]:
        index = self.index
        return tuple([spec for *_, spec in index.types]) if isinstance(index, _PlainHdf5) else data

    def cpu(self, c: SampleContext, *data: np.ndarray) -> tuple[np.ndarray, ...]:
        index = self.index
        assert isinstance(index, _PlainHdf5)
        found = []
        for piece, (dtype, shape, spec) in zip(data, index.types, strict=True):
            values = piece.view(dtype).reshape(shape)
            if spec.dtype == DALIDataType.BOOL:
                values = values != 0
            elif not dtype.isnative:
                values = values.astype(dtype.newbyteorder("="))
            found.append(values)
        return tuple(found)


def _check(
    first: Sequence[_Part], own: Sequence[_Part], names: Sequence[str], path: str, other: str
) -> None:
    """Check that the data sets of a file have equal lengths, and the types of the first file."""
    lengths = {name: part.rows for name, part in zip(names, own, strict=True)}
    if len(set(lengths.values())) > 1:
        raise ArgumentValueError(
            f"The data sets in {other!r} have different numbers of rows: {lengths}. Each has one "
            "row for each sample."
        )
    for name, mine, theirs in zip(names, first, own, strict=True):
        if (mine.dtype, mine.shape) != (theirs.dtype, theirs.shape):
            raise ArgumentValueError(
                f"The data set {name!r} has rows of type {theirs.dtype} and shape {theirs.shape} "
                f"in {other!r}, and {mine.dtype} and {mine.shape} in {path!r}; the files of a data "
                "set are alike."
            )
