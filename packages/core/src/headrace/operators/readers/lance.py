"""`readers.lance`: data sets of Lance."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from headrace._optional import import_optional
from headrace.errors import ArgumentValueError, BadSampleError
from headrace.operators.readers.arrow_arrays import ArrowColumn, column_lengths, column_path
from headrace.operators.readers.base import Reader, reader
from headrace.operators.readers.columns import COLUMNS_ARG, count_columns
from headrace.operators.readers.index import Index
from headrace.operators.readers.storage import Allocate
from headrace.operators.support.argument_types import IntArg, ObjectArg, PathArg
from headrace.operators.support.schema import REQUIRED, Arg


class _LanceIndex(Index):
    """The rows of one version of a data set, which processes open for themselves."""

    lends = True

    def __init__(
        self, path: str, version: int | None, options: Any, columns: Sequence[str]
    ) -> None:
        self._path, self._version, self._options = path, version, options
        opened = self._opened
        self._version = opened.version
        self.length_names = tuple(opened.schema.names)
        self._columns = [ArrowColumn(opened.schema, name) for name in columns]
        self._wanted = list(dict.fromkeys(c.column for c in self._columns))
        super().__init__(opened.count_rows(), [column.spec for column in self._columns])

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in vars(self).items() if k != "_opened"}

    @cached_property
    def _opened(self) -> Any:
        lance = import_optional("lance", purpose="`readers.lance`", install="headrace[lance]")
        try:
            return lance.dataset(self._path, version=self._version, storage_options=self._options)
        except Exception as error:  # the library raises what its parts in Rust do
            raise ArgumentValueError(
                f"`path`={self._path!r} cannot be opened as a data set of Lance: {error}."
            ) from error

    def source(self, entry: int) -> str:
        """The data set and the row of an entry."""
        return f"{self._path}, row {entry}"

    def lengths(self, name: str) -> np.ndarray | None:
        """The lengths of a column's values."""
        if not {name, name.split(".")[0]} & {*self.length_names}:
            return None
        column, _ = column_path(self._opened.schema, name)
        return column_lengths(self._opened.to_table(columns=[column]), name)

    def _values(self, entries: list[int]) -> list[Any]:
        table = self._opened.take(entries, columns=self._wanted)
        return [column.values(table, self._path) for column in self._columns]

    def fetch_together(self, entries: np.ndarray, empty: Allocate) -> Sequence[Any]:
        """The values of several entries, taken at once."""
        found = [v.rows(range(len(entries))) for v in self._values(entries.tolist())]
        return [value for row in zip(*found, strict=True) for value in row]

    def fetch(self, entry: int) -> tuple[Any, ...]:
        """The values of one entry."""
        try:
            found = self._values([entry])
        except Exception as error:  # the library raises what its parts in Rust do
            raise BadSampleError(
                f"Row {entry} of {self._path!r} cannot be read: {error}."
            ) from error
        return tuple([values.alone(0) for values in found])


@reader(
    "readers.lance",
    class_name="Lance",
    args=(
        Arg("path", PathArg, REQUIRED, "Folder or address of the data set."),
        COLUMNS_ARG,
        Arg("version", IntArg, None, "The version to read; the latest when not given."),
        Arg("storage_options", ObjectArg, None, "For the store, as `lance.dataset` takes it."),
    ),
    num_outputs=count_columns,
    output_docs=("Of each column: its value.",),
)
class LanceReader(Reader):
    """Reads columns of a data set of Lance, a sample for each row.

    Rows are taken by their numbers, those of a few samples at once and in any order. Types are
    those of `readers.parquet`. It needs the library pylance.

    Examples
    --------
    >>> encoded, label = fn.readers.lance(path="train.lance", columns=["image", "label"])
    """

    def list_entries(self) -> Index:
        args = self.args
        index = _LanceIndex(args.path, args.version, args.storage_options, args.columns)
        if not len(index):
            raise ArgumentValueError(f"The data set at {args.path!r} has no rows.")
        return index
