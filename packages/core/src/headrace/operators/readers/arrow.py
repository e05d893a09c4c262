"""`readers.arrow` and `readers.hf_dataset`: tables of Arrow, in memory or in mapped files."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from headrace.errors import ArgumentTypeError, ArgumentValueError, BadSampleError
from headrace.operators.readers.arrow_arrays import ArrowColumn, arrow, column_lengths, folder_of
from headrace.operators.readers.base import Reader, reader
from headrace.operators.readers.columns import COLUMNS_ARG, count_columns
from headrace.operators.readers.grouped import GroupedIndex, Values
from headrace.operators.readers.index import Index
from headrace.operators.readers.listing import expanded, within
from headrace.operators.readers.storage import Allocate, file_system, is_remote
from headrace.operators.support.argument_types import ObjectArg
from headrace.operators.support.schema import REQUIRED, Arg

_BATCH_BYTES = 1 << 12
"""About what is kept of a batch that is a view of memory which is there anyway."""


class _ArrowFile:
    """A table in a file of Arrow: mapped by each process for itself."""

    def __init__(self, path: str) -> None:
        self.path = path

    def __getstate__(self) -> dict[str, Any]:
        return {"path": self.path}

    @cached_property
    def table(self) -> Any:
        """The table, whose columns are views of the file where that is a local one."""
        pa = arrow("readers.arrow")
        try:
            if is_remote(self.path):
                system, inside = file_system(self.path)
                with system.open(inside, "rb") as file:
                    source = pa.py_buffer(file.read())
            else:
                source = pa.memory_map(self.path.removeprefix("file://"))
            try:
                return pa.ipc.open_file(source).read_all()
            except pa.ArrowInvalid:
                return pa.ipc.open_stream(source).read_all()
        except Exception as error:  # each kind of file system raises its own
            raise ArgumentValueError(
                f"{self.path!r} cannot be read as a file of Arrow (Feather, or a stream of record "
                f"batches): {error}."
            ) from error


class _InMemory:
    """A table that is there: of pyarrow, or of Hugging Face's library, which knows its files."""

    def __init__(self, held: Any) -> None:
        self._held = held
        self.path = ""

    @property
    def table(self) -> Any:
        """The table."""
        return getattr(self._held, "table", self._held)


class TableIndex(GroupedIndex):
    """The rows of tables, one table after the other: views of their memory.

    `holders`: the tables. `columns`: names of the columns. `rows`: the rows that entries are,
    int64; all in their order if not given. `name`: of the data, for messages.
    """

    def __init__(
        self,
        holders: Sequence[_ArrowFile | _InMemory],
        columns: Sequence[str],
        rows: np.ndarray | None = None,
        name: str = "table",
    ) -> None:
        self._holders = list(holders)
        self._name = name
        schema = self._holders[0].table.schema
        self.length_names = tuple(schema.names)
        self._columns = [ArrowColumn(schema, each) for each in columns]
        self._needed = list(dict.fromkeys(c.column for c in self._columns))
        self._batches: dict[int, list[Any]] = {}
        self._places: list[tuple[int, int]] = []
        sizes = []
        for number, holder in enumerate(self._holders):
            for column in self._needed:
                own = holder.table.schema
                kind = own.field(column).type if column in own.names else "none"
                if kind != schema.field(column).type:
                    raise ArgumentValueError(
                        f"The column {column!r} has the type {kind} in {holder.path!r}, and "
                        f"{schema.field(column).type} in {self._holders[0].path!r}; the tables of "
                        "a data set are alike."
                    )
            for at, batch in enumerate(self._of_table(number)):
                self._places.append((number, at))
                sizes.append(batch.num_rows)
        super().__init__(sizes, [column.spec for column in self._columns])
        self._rows = rows
        if rows is not None:
            self._size = len(rows)

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_batches": {}}

    def lengths(self, name: str) -> np.ndarray | None:
        """The lengths of a column's values."""
        if not {name, name.split(".")[0]} & {*self.length_names}:
            return None
        found = np.concatenate([column_lengths(h.table, name) for h in self._holders])
        return found if self._rows is None else found[self._rows]

    def _of_table(self, number: int) -> list[Any]:
        found = self._batches.get(number)
        if found is None:
            table = self._holders[number].table.select(self._needed)
            found = self._batches[number] = table.to_batches()
        return found

    def _row(self, entry: int) -> int:
        return entry if self._rows is None else int(self._rows[entry])

    def source(self, entry: int) -> str:
        """The file or table, and the row of an entry."""
        path, row = self._table_row(entry)
        return f"{path or self._name}, row {row}"

    def file_row(self, entry: int) -> tuple[str, int] | None:
        """The file of an entry, and its row there; `None` for tables in memory."""
        path, row = self._table_row(entry)
        return (path, row) if path else None

    def _table_row(self, entry: int) -> tuple[str, int]:
        row = self._row(entry)
        number, _ = self._places[self.place(row)[0]]
        first = next(k for k, (table, _) in enumerate(self._places) if table == number)
        begin = int(self.ends[first - 1]) if first else 0
        return self._holders[number].path, row - begin

    def fetch_columns(self, entries: np.ndarray) -> list[Any] | None:
        """The values of several entries as columns."""
        return super().fetch_columns(entries if self._rows is None else self._rows[entries])

    def fetch_together(self, entries: np.ndarray, empty: Allocate) -> Sequence[Any]:
        """The values of several entries."""
        return super().fetch_together(entries if self._rows is None else self._rows[entries], empty)

    def fetch(self, entry: int) -> tuple[Any, ...]:
        """The values of one entry."""
        return super().fetch(self._row(entry))

    def read_group(self, group: int) -> tuple[list[Values], int]:
        """The columns of a batch."""
        number, at = self._places[group]
        try:
            batch = self._of_table(number)[at]
            folder = folder_of(self._holders[number].path)
            return [c.values(batch, folder) for c in self._columns], _BATCH_BYTES
        except ArgumentValueError as error:  # the file has gone
            raise BadSampleError(str(error)) from error


@reader(
    "readers.arrow",
    class_name="Arrow",
    args=(
        Arg(
            "source",
            ObjectArg,
            REQUIRED,
            "A `pyarrow.Table` or `RecordBatch`, or files of Arrow: a name or several, with "
            "wildcards and braces as in a shell; folders with ``.arrow`` files; addresses.",
        ),
        COLUMNS_ARG,
    ),
    num_outputs=count_columns,
    output_docs=("Of each column: its value.",),
)
class ArrowReader(Reader):
    """Reads columns of Arrow's tables, a sample for each row.

    Types are those of `readers.parquet`. Rows are read where they lie, in memory or in a mapped
    file, in any order at the same speed. It needs the library pyarrow.

    Examples
    --------
    >>> encoded, label = fn.readers.arrow(source="train/*.arrow", columns=["image", "label"])
    """

    def list_entries(self) -> Index:
        args = self.args
        pa = arrow("readers.arrow")
        source = args.source
        if isinstance(source, pa.RecordBatch):
            source = pa.Table.from_batches([source])
        holders: list[Any]
        if isinstance(source, pa.Table):
            holders = [_InMemory(source)]
        else:
            given = source if isinstance(source, (list, tuple)) else [source]
            if not given or not all(isinstance(p, str) or hasattr(p, "__fspath__") for p in given):
                raise ArgumentTypeError(
                    "`source` of `readers.arrow` is a `pyarrow.Table`, a `RecordBatch` or names of "
                    f"files of Arrow, got a {type(source).__name__}. `readers.hf_dataset` takes a "
                    "`datasets.Dataset`."
                )
            names = [p if isinstance(p, str) else p.__fspath__() for p in given]
            paths = [p for path in expanded("source", names) for p in within(path, ".arrow")]
            holders = [_ArrowFile(path) for path in paths]
        return _checked(TableIndex(holders, args.columns))


@reader(
    "readers.hf_dataset",
    class_name="HfDataset",
    args=(
        Arg("dataset", ObjectArg, REQUIRED, "The `datasets.Dataset`, in memory or mapped."),
        COLUMNS_ARG,
    ),
    num_outputs=count_columns,
    output_docs=("Of each column: its value.",),
)
class HfDatasetReader(Reader):
    """Reads columns of a data set of Hugging Face's library `datasets`, a sample for each row.

    The library's tables are read where they lie, without its Python code: what ``select``,
    ``shuffle``, ``filter``, ``map`` and ``train_test_split`` have made of the data set is there;
    ``set_format`` and ``set_transform``, which change values as Python objects, have no say.
    Images and audio come as their files, encoded. Types are those of `readers.parquet`. A data set
    that streams is none: read its files with `readers.parquet`.

    Examples
    --------
    >>> dataset = datasets.load_dataset("beans", split="train")
    >>> encoded, label = fn.readers.hf_dataset(dataset=dataset, columns=["image", "labels"])
    """

    def list_entries(self) -> Index:
        args = self.args
        dataset = args.dataset
        held = getattr(dataset, "data", None)
        if not hasattr(held, "table") or not hasattr(dataset, "_indices"):
            hint = ""
            if hasattr(dataset, "keys"):
                hint = f" Name a split: {', '.join(map(repr, dataset.keys()))}."
            elif type(dataset).__name__ == "IterableDataset":
                hint = " Read the files of a data set that streams with `readers.parquet`."
            raise ArgumentTypeError(
                "`dataset` of `readers.hf_dataset` is a `datasets.Dataset`, got a "
                f"{type(dataset).__name__}.{hint}"
            )
        rows = dataset._indices
        if rows is not None:
            rows = rows.table.column(0).to_numpy().astype(np.int64)
        return _checked(TableIndex([_InMemory(held)], args.columns, rows, "datasets.Dataset"))


def _checked(index: TableIndex) -> TableIndex:
    if not len(index):
        raise ArgumentValueError("The tables have no rows.")
    return index
