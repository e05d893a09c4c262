"""`readers.parquet`: columns of Parquet files."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import Any

import numpy as np

from headrace._optional import import_optional
from headrace.errors import ArgumentValueError, BadSampleError
from headrace.operators.readers.arrow_arrays import (
    ArrowColumn,
    arrow,
    column_lengths,
    column_path,
    folder_of,
)
from headrace.operators.readers.base import Reader, reader
from headrace.operators.readers.columns import CACHE_ARG, COLUMNS_ARG, count_columns
from headrace.operators.readers.grouped import GroupedIndex, Values
from headrace.operators.readers.index import Index
from headrace.operators.readers.listing import expanded, within
from headrace.operators.readers.storage import file_system, is_remote
from headrace.operators.support.argument_types import PathListArg
from headrace.operators.support.schema import REQUIRED, Arg

_NAME = "readers.parquet"
_OPENERS = 16
"""Threads that read the ends of files, which say what is in them."""


def _parquet() -> Any:
    return import_optional("pyarrow.parquet", purpose=f"`{_NAME}`", install="headrace[arrow]")


def _opened(path: str, metadata: Any = None) -> Any:
    """A file of Parquet."""
    parquet = _parquet()
    if not is_remote(path):
        return parquet.ParquetFile(path.removeprefix("file://"), metadata=metadata, memory_map=True)
    system, inside = file_system(path)
    return parquet.ParquetFile(system.open(inside, "rb"), metadata=metadata, pre_buffer=True)


class _ParquetIndex(GroupedIndex):
    """The rows of files of Parquet, one file after the other."""

    def __init__(self, paths: Sequence[str], columns: Sequence[str], cache_bytes: int) -> None:
        self._paths = list(paths)
        self._groups: list[tuple[int, int, int]] = []
        """File, number and first row there of each row group."""
        sizes: list[int] = []
        with ThreadPoolExecutor(min(_OPENERS, len(paths)), "headrace-parquet") as threads:
            for file, (path, found) in enumerate(
                zip(paths, threads.map(self._looked_into, paths), strict=True)
            ):
                schema, rows, leaves = found
                if not file:
                    first = schema
                    self.length_names = tuple(schema.names)
                    self._columns = [ArrowColumn(schema, name) for name in columns]
                    wanted = [(c.column, *c.fields) for c in self._columns]
                    self._leaves = [p for p in leaves if _is_wanted(p, wanted)]
                for column in self._columns:
                    _check_alike(column.column, first, schema, paths[0], path)
                row = 0
                for number, size in enumerate(rows):
                    self._groups.append((file, number, row))
                    sizes.append(size)
                    row += size
        super().__init__(sizes, [column.spec for column in self._columns], cache_bytes)
        self._start_files()

    def _start_files(self) -> None:
        self._metadata = lru_cache(256)(lambda file: _opened(self._paths[file]).metadata)

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in super().__getstate__().items() if k != "_metadata"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self._start_files()

    @staticmethod
    def _looked_into(path: str) -> tuple[Any, list[int], list[str]]:
        """The schema of a file, the rows of its groups, and the paths of its leaves."""
        try:
            with _opened(path) as file:
                metadata = file.metadata
                rows = [metadata.row_group(k).num_rows for k in range(metadata.num_row_groups)]
                leaves = [metadata.schema.column(k).path for k in range(len(metadata.schema))]
                return file.schema_arrow, rows, leaves
        except Exception as error:  # each kind of file system raises its own
            raise ArgumentValueError(
                f"`paths`: {path!r} cannot be read as a file of Parquet: {error}."
            ) from error

    def source(self, entry: int) -> str:
        """The file, row group and row of an entry."""
        group, position = self.place(entry)
        file, number, row = self._groups[group]
        return f"{self._paths[file]}, row group {number}, row {row + position}"

    def file_row(self, entry: int) -> tuple[str, int]:
        """The file of an entry, and its row there."""
        group, position = self.place(entry)
        file, _, row = self._groups[group]
        return self._paths[file], row + position

    def lengths(self, name: str) -> np.ndarray | None:
        """The lengths of a column's values."""
        if not {name, name.split(".")[0]} & {*self.length_names}:
            return None
        found = []
        for file in self._paths:
            with _opened(file) as opened:
                schema = opened.metadata.schema
                leaves = [schema.column(k).path for k in range(len(schema))]
                column, fields = column_path(opened.schema_arrow, name)
                wanted = [leaf for leaf in leaves if _is_wanted(leaf, [(column, *fields)])]
                found.append(column_lengths(opened.read(columns=wanted), name))
        return np.concatenate(found)

    def read_group(self, group: int) -> tuple[list[Values], int]:
        """The columns of a row group."""
        file, number, _ = self._groups[group]
        path = self._paths[file]
        try:
            with _opened(path, self._metadata(file)) as opened:
                table = opened.read_row_group(number, columns=self._leaves, use_threads=False)
            folder = folder_of(path)
            return [c.values(table, folder) for c in self._columns], table.nbytes
        except Exception as error:  # each kind of file system raises its own
            raise BadSampleError(
                f"Row group {number} of {path!r} cannot be read: {error}."
            ) from error


def _is_wanted(leaf: str, wanted: Sequence[tuple[str, ...]]) -> bool:
    """True if the column stored at `leaf` is part of one of these: a path without lists."""
    for path in wanted:
        rest = leaf
        column, *fields = path
        if rest != column and not rest.startswith(f"{column}."):
            continue
        parts = rest[len(column) + 1 :].split(".")
        at = 0
        for part in parts:  # levels of lists have names of their own, which differ by writer
            at += at < len(fields) and part == fields[at]
        if at == len(fields):
            return True
    return False


def _check_alike(column: str, first: Any, other: Any, path: str, other_path: str) -> None:
    """Check that a column has one type in two files."""
    types = [s.field(column).type if column in s.names else None for s in (first, other)]
    if types[0] != types[1]:
        what = "no such column" if types[1] is None else f"the type {types[1]}"
        raise ArgumentValueError(
            f"The column {column!r} has the type {types[0]} in {path!r} and {what} in "
            f"{other_path!r}; the files of a data set are alike."
        )


@reader(
    _NAME,
    class_name="Parquet",
    args=(
        Arg(
            "paths",
            PathListArg,
            REQUIRED,
            "The files, or folders with such. Names may have wildcards and braces, as in a shell, "
            "and be addresses that fsspec knows: ``hf://datasets/name/data/train-*.parquet``.",
        ),
        COLUMNS_ARG,
        CACHE_ARG,
    ),
    num_outputs=count_columns,
    output_docs=("Of each column: its value.",),
)
class ParquetReader(Reader):
    """Reads columns of Parquet files, a sample for each row.

    Numbers are scalars, lists of them 1-D and lists of equal lists 2-D tensors of their element
    type; the lengths may differ from row to row. Bytes are 1-D, uint8, for the decoders; and so are
    images and audio as Hugging Face's libraries store them, also where a row has nothing but a
    path. Dates and times are their numbers of days, seconds, ... A row that lacks a value is a
    bad sample.

    Row groups are read as a whole, and only the columns that are named. `random_shuffle` permutes
    row groups and shuffles their rows by a window; `shuffle_after_epoch` permutes both for every
    epoch, rows within blocks of `initial_fill`. It needs the library pyarrow.

    Examples
    --------
    >>> encoded, labels = fn.readers.parquet(paths="train-*.parquet", columns=["image", "label"])
    >>> images = fn.decoders.image(encoded)
    """

    permutes = False

    def list_entries(self) -> Index:
        args = self.args
        arrow(_NAME)
        paths = [p for path in expanded("paths", args.paths) for p in within(path, ".parquet")]
        index = _ParquetIndex(paths, args.columns, args.cache_bytes)
        if not len(index):
            raise ArgumentValueError(f"The files in `paths` have no rows: {paths[0]!r}.")
        return index
