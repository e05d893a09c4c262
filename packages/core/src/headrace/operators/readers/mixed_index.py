"""The index of several readers at once: their entries one reader after the other."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.kernels.cpu import reading_threads
from headrace.operators.readers.index import (
    Column,
    ComputedColumn,
    FileIndex,
    Index,
    RaggedColumn,
)
from headrace.operators.readers.storage import Allocate
from headrace.operators.support.schema import Spec
from headrace.types import DALIDataType

if TYPE_CHECKING:
    from headrace.kernels.cpu.reading_threads import FileExtents

_NOTHING = np.empty(0, np.uint8)
_COPIED_BYTES = 256 << 20
"""Columns of more are left where they are."""
_NUMBER, _PIECE = Spec(DALIDataType.INT32, 0), Spec(DALIDataType.UINT8, 1)


class MixedIndex(Index):
    """Entries of several indices, one index after the other.

    `indices`: the indices. `outputs`: where readers have no parser: of each, the pieces that are
    outputs, and the columns after them; the last column is then the number of the index. Without
    it, an entry is made of that number, and of all its index has of it: pieces, details and
    columns.
    """

    def __init__(
        self, indices: Sequence[Index], outputs: Sequence[Sequence[int]] | None = None
    ) -> None:
        self.parts = list(indices)
        self._ends = np.cumsum([len(index) for index in indices])
        self._starts = self._ends - [len(index) for index in indices]
        self._outputs: list[list[int]] | None = None
        specs, columns = [], []
        if outputs is None:
            specs = [_NUMBER] + [_PIECE] * max(_width(index) for index in indices)
        else:
            counts = [len(index.specs) for index in indices]
            self._outputs = [[k for k in o if k < c] for o, c in zip(outputs, counts, strict=True)]
            specs = [self.parts[0].specs[k] for k in self._outputs[0]]
            pieces = len(specs)
            known = list(zip(indices, outputs, counts, strict=True))
            for k in range(pieces, len(outputs[0])):
                own = [index.columns[o[k] - count] for index, o, count in known]
                columns.append(_joined(own, self._ends))
            columns.append(_Number(self._ends))
        self._width = len(specs)
        super().__init__(int(self._ends[-1]), specs, columns=columns)
        widths = [len(index.specs) for index in indices]
        counts = [len(index) * width for index, width in zip(indices, widths, strict=True)]
        every = [list(range(self._width))] * len(indices)
        self._is_plain = self._outputs == every and set(widths) == {self._width}
        """True if entries have all the extents of their indices, and as many of them."""
        self._widths, self._extents = np.array(widths), np.cumsum([0, *counts[:-1]])
        self._numbers = np.arange(len(indices), dtype=np.int32)
        if outputs is not None:
            self.allows_empty = any(index.allows_empty for index in indices)
        self._bytes = [0] * len(indices)
        self.lends = any(index.lends for index in indices)
        self.reads_apart = any(index.reads_apart for index in indices)

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "local"}

    @cached_property
    def local(self) -> FileExtents | None:  # type: ignore[override]
        """The extents of all indices, if none has a parser and all are in local files."""
        alike = len({index.allows_empty for index in self.parts}) == 1
        if self._outputs is None or not self._width or not alike:
            return None
        return reading_threads.FileExtents.joined([index.local for index in self.parts])

    def numbers(self, entries: np.ndarray) -> np.ndarray:
        """The extents of entries."""
        if self._is_plain:
            return super().numbers(entries)
        parts = np.searchsorted(self._ends, entries, "right")
        own = entries - self._starts[parts]
        first = self._extents[parts] + own * self._widths[parts]
        found: np.ndarray = (first[:, np.newaxis] + np.array(self._outputs)[parts]).reshape(-1)
        return found

    def part_of(self, entry: int) -> tuple[int, int]:
        """The number of the index that has an entry, and its number there."""
        part = int(np.searchsorted(self._ends, entry, "right"))
        return part, entry - int(self._starts[part])

    def entry(self, part: int, own: int) -> int:
        """The number here of an entry of an index."""
        return int(self._starts[part]) + own

    def source(self, entry: int) -> str:
        """The file or key that an entry comes from."""
        part, own = self.part_of(entry)
        return self.parts[part].source(own)

    def extents(self, entries: np.ndarray) -> list[tuple[tuple[str, int, int], ...]] | None:
        """The files that outputs of entries come from. `None` if that does not say what they are:
        readers may make something else of one file, or have other columns of one row.
        """
        outputs = self._outputs
        if outputs is None or not all(isinstance(part, FileIndex) for part in self.parts):
            return None
        found: list[Any] = [()] * len(entries)
        parts = np.searchsorted(self._ends, entries, "right")
        for part in np.unique(parts).tolist():
            places = np.flatnonzero(parts == part)
            own = self.parts[part].extents(entries[places] - self._starts[part])
            if own is None:
                return None
            for place, each in zip(places.tolist(), own, strict=True):
                found[place] = tuple([each[k] for k in outputs[part]])
        return found

    def fetch_together(self, entries: np.ndarray, empty: Allocate) -> Sequence[Any]:
        """All there is of several entries, one index after the other."""
        width = self._width
        rows: list[Any] = [None] * (len(entries) * width)
        parts = np.searchsorted(self._ends, entries, "right")
        for part in np.unique(parts).tolist():
            places = np.flatnonzero(parts == part)
            own, index = entries[places] - self._starts[part], self.parts[part]
            pieces, count = self._pieces(part, own, empty), len(index.specs)
            if self._outputs is not None:
                for k, output in enumerate(self._outputs[part]):
                    kept = pieces[output::count]
                    for place, row in zip(places.tolist(), kept, strict=True):
                        if row is not None and (row.size or index.allows_empty):
                            rows[place * width + k] = row
                continue
            values = [column[own] for column in (*index.details, *index.columns)]
            for k, place in enumerate(places.tolist()):
                found = pieces[k * count : (k + 1) * count]
                if all(p is not None and (p.size or index.allows_empty) for p in found):
                    row = [self._numbers[part, ...], *found, *[_row(v, k) for v in values]]
                    row += [_NOTHING] * (width - len(row))
                    rows[place * width : (place + 1) * width] = row
        return rows

    def _pieces(self, part: int, own: np.ndarray, empty: Allocate) -> Sequence[Any]:
        rows, self._bytes[part] = fetched(self.parts[part], own, empty, self._bytes[part])
        return rows

    def fetch(self, entry: int) -> tuple[Any, ...]:
        """All there is of one entry."""
        part, own = self.part_of(entry)
        index = self.parts[part]
        if self._outputs is not None:
            pieces = index.fetch(own)
            return tuple([pieces[k] for k in self._outputs[part]])
        columns = (*index.details, *index.columns)
        values = [_row(column[np.array([own])], 0) for column in columns]
        found = [self._numbers[part, ...], *index.fetch(own), *values]
        return (*found, *[_NOTHING] * (self._width - len(found)))


def fetched(
    index: Index, entries: np.ndarray, empty: Allocate, entry_bytes: int
) -> tuple[Sequence[Any], int]:
    """The pieces of entries, `None` where one is missing, and about the bytes that an entry takes,
    which `entry_bytes` says of those before.
    """
    if index.local is None:
        return index.fetch_together(entries, empty), 0
    numbers = index.numbers(entries)
    guess, pieces = entry_bytes * len(entries), len(index.specs)
    read = reading_threads.BeingRead(None, index.local, numbers, empty, guess, pieces=pieces)
    files = read.wait()
    return files.rows(), files.size_bytes // max(len(entries), 1) * 9 // 8 + 64


class _Number(ComputedColumn):
    """The number of the index that an entry is of."""

    dtype, ndim, layout = np.dtype(np.int32), 1, ""

    def __init__(self, ends: np.ndarray) -> None:
        self._ends = ends

    def __len__(self) -> int:
        return int(self._ends[-1])

    def __getitem__(self, entries: np.ndarray) -> Any:
        return np.searchsorted(self._ends, entries, "right").astype(np.int32)


def _joined(columns: Sequence[Any], ends: np.ndarray) -> Column:
    """Columns of several indices, one after the other: one of their kind, if these are small."""
    kinds = {type(column) for column in columns}
    parts = [getattr(column, "values", column) for column in columns]
    if kinds in ({np.ndarray}, {RaggedColumn}) and sum(p.nbytes for p in parts) <= _COPIED_BYTES:
        shapes = {(part.dtype, part.shape[1:]) for part in parts}
        if len(shapes) == 1:
            values = np.concatenate(parts)
            if kinds == {np.ndarray}:
                return values
            starts = np.cumsum([0, *[len(part) for part in parts[:-1]]])
            stops = [c.ends + start for c, start in zip(columns, starts, strict=True)]
            return RaggedColumn(values, np.concatenate(stops))
    return _MixedColumn(columns, ends)


class _MixedColumn(ComputedColumn):
    """Columns of several indices, one after the other."""

    def __init__(self, columns: Sequence[Column], ends: np.ndarray) -> None:
        self._columns, self._ends = columns, ends
        self._starts = ends - [len(column) for column in columns]
        self.dtype, self.ndim = columns[0].dtype, columns[0].ndim
        layouts = {getattr(column, "layout", "") for column in columns}
        self.layout = layouts.pop() if len(layouts) == 1 else ""

    def __len__(self) -> int:
        return int(self._ends[-1])

    def __getitem__(self, entries: np.ndarray) -> Any:
        parts = np.searchsorted(self._ends, entries, "right")
        places = [np.flatnonzero(parts == part) for part in range(len(self._columns))]
        found = [
            (own, column[entries[own] - start])
            for own, column, start in zip(places, self._columns, self._starts, strict=True)
            if len(own)
        ]
        shapes: set[Any] = {v.shape[1:] if isinstance(v, np.ndarray) else None for _, v in found}
        dense = len(shapes) == 1 and None not in shapes
        rows: Any = np.empty((len(entries), *shapes.pop()), self.dtype) if dense else {}
        for own, values in found:
            if dense:
                rows[own] = values
            else:
                rows.update({place: _row(values, k) for k, place in enumerate(own.tolist())})
        return rows if dense else [rows[k] for k in range(len(entries))]


def _width(index: Index) -> int:
    return len(index.specs) + len(index.details) + len(index.columns)


def _row(values: Any, number: int) -> Any:
    return values[number, ...] if isinstance(values, np.ndarray) else values[number]
