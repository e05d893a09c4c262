"""The index of several readers at once: their entries one reader after the other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.kernels.cpu import reading_threads
from headrace.operators.readers.index import (
    Column,
    ComputedColumn,
    FileIndex,
    Index,
    RaggedColumn,
    fetched,
)
from headrace.operators.readers.storage import Allocate
from headrace.operators.support.schema import Spec
from headrace.types import DALIDataType

if TYPE_CHECKING:
    from headrace.kernels.cpu.reading_threads import FileExtents

_NOTHING = np.empty(0, np.uint8)
_COPIED_BYTES = 256 << 20
"""Columns of more are left where they are."""
_PIECE = Spec(DALIDataType.UINT8, 1)


class MixedIndex(Index):
    """Entries of several indices, one index after the other.

    `indices`: the indices. `outputs`: where readers have no parser: of each, the pieces that are
    outputs, and the columns after them. Without it, an entry has as many pieces as that of any
    index, and its details are the number of the index, and the details and columns there. The last
    column is the number of the index.
    """

    def __init__(
        self, indices: Sequence[Index], outputs: Sequence[Sequence[int]] | None = None
    ) -> None:
        self.indices = list(indices)
        self._ends = np.cumsum([len(index) for index in indices])
        self._starts = self._ends - [len(index) for index in indices]
        widths = [len(index.specs) for index in indices]
        number, columns, details = _Number(self._ends), [], []
        specs = [_PIECE] * max(widths)
        every = [list(range(len(specs)))] * len(indices)
        self._outputs: list[list[int]] = [list(range(width)) for width in widths]
        self.is_parsed = outputs is None
        if outputs is None:
            details = [number, *self._all(i.details for i in indices)]
            self.first_column = len(specs) + len(details)
            """Place of the columns of an index in what a parser is handed."""
            details += self._all(i.columns for i in indices)
        else:
            self._outputs = [[k for k in o if k < c] for o, c in zip(outputs, widths, strict=True)]
            specs = [self.indices[0].specs[k] for k in self._outputs[0]]
            known = list(zip(indices, outputs, widths, strict=True))
            for k in range(len(specs), len(outputs[0])):
                own = [index.columns[o[k] - width] for index, o, width in known]
                columns.append(_joined(own, self._ends))
            every = [list(range(len(specs)))] * len(indices)
        self._width = len(specs)
        super().__init__(int(self._ends[-1]), specs, columns=[*columns, number], details=details)
        counts = [len(index) * width for index, width in zip(indices, widths, strict=True)]
        self._is_plain = self._outputs == every and set(widths) == {self._width}
        """True if entries have all the extents of their indices, and as many of them."""
        self._widths, self._extents = np.array(widths), np.cumsum([0, *counts[:-1]])
        empty = any(index.allows_empty for index in indices)
        self.allows_empty = empty or (self.is_parsed and not self._is_plain)
        self._bytes = [0] * len(indices)
        self.lends = any(index.lends for index in indices)
        self.reads_apart = any(index.reads_apart for index in indices)
        self.own_sources = any(index.own_sources for index in indices)
        if not all(isinstance(index, FileIndex) for index in indices):
            self.apart = (number,)

    def _all(self, columns: Iterable[Sequence[Column]]) -> list[Column]:
        """Columns of all indices, one for each place; of those that have fewer, nothing."""
        ends = self._ends
        sizes = np.diff(ends, prepend=0).tolist()
        nothing = [_Nothing(size) for size in sizes]
        return [
            _MixedColumn([n if c is None else c for n, c in zip(nothing, each, strict=True)], ends)
            for each in zip_longest(*columns)
        ]

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "local"}

    @cached_property
    def local(self) -> FileExtents | None:  # type: ignore[override]
        """The extents of all indices, if all are in local files and entries are alike."""
        alike = len({index.allows_empty for index in self.indices}) == 1
        if not self._width or not alike or (self.is_parsed and not self._is_plain):
            return None
        return reading_threads.FileExtents.joined([index.local for index in self.indices])

    def numbers(self, entries: np.ndarray) -> np.ndarray:
        """The extents of entries."""
        if self._is_plain:
            return super().numbers(entries)
        parts = _owners(self._ends, entries)
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
        return self.indices[part].source(own)

    def piece_sources(self, piece: int, entries: Sequence[int]) -> list[str]:
        """Source of a piece of several entries."""
        return [self._piece_source(piece, *self.part_of(entry)) for entry in entries]

    def _piece_source(self, piece: int, part: int, own: int) -> str:
        index, outputs = self.indices[part], self._outputs[part]
        if index.own_sources and piece < len(outputs) and outputs[piece]:
            return index.piece_sources(outputs[piece], [own])[0]
        return index.source(own)

    def extents(self, entries: np.ndarray) -> list[tuple[tuple[str, int, int], ...]] | None:
        """The files that entries come from; of those without a parser, that outputs come from."""
        found: list[Any] = [()] * len(entries)
        parts = _owners(self._ends, entries)
        for part in np.unique(parts).tolist():
            places = np.flatnonzero(parts == part)
            own = self.indices[part].extents(entries[places] - self._starts[part])
            if own is None:
                return None
            outputs = self._outputs[part] if isinstance(self.indices[part], FileIndex) else None
            for place, each in zip(places.tolist(), own, strict=True):
                found[place] = each if outputs is None else tuple([each[k] for k in outputs])
        return found

    def fetch_together(self, entries: np.ndarray, empty: Allocate) -> Sequence[Any]:
        """The pieces of several entries, one index after the other."""
        width = self._width
        rows: list[Any] = [None] * (len(entries) * width)
        parts = _owners(self._ends, entries)
        for part in np.unique(parts).tolist():
            places = np.flatnonzero(parts == part)
            own, index = entries[places] - self._starts[part], self.indices[part]
            pieces, count = self._pieces(part, own, empty), len(index.specs)
            for k in range(width):
                if k >= len(self._outputs[part]):
                    for place in places.tolist():
                        rows[place * width + k] = _NOTHING
                    continue
                kept = pieces[self._outputs[part][k] :: count]
                for place, row in zip(places.tolist(), kept, strict=True):
                    if row is not None and (row.size or index.allows_empty):
                        rows[place * width + k] = row
        return rows

    def _pieces(self, part: int, own: np.ndarray, empty: Allocate) -> Sequence[Any]:
        rows, self._bytes[part] = fetched(self.indices[part], own, empty, self._bytes[part])
        return rows

    def fetch(self, entry: int) -> tuple[Any, ...]:
        """The pieces of one entry."""
        part, own = self.part_of(entry)
        pieces = self.indices[part].fetch(own)
        found = [pieces[k] for k in self._outputs[part]]
        return (*found, *[_NOTHING] * (self._width - len(found)))


def _owners(ends: np.ndarray, entries: np.ndarray) -> np.ndarray:
    """The number of the index that each entry is of."""
    found: np.ndarray = np.searchsorted(ends, entries, "right")
    return found


class _Nothing(ComputedColumn):
    """A column of entries that lack it."""

    dtype, ndim, layout = np.dtype(np.uint8), 2, ""

    def __init__(self, size: int) -> None:
        self._size = size

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, entries: np.ndarray) -> Any:
        return np.empty((len(entries), 0), np.uint8)


class _Number(ComputedColumn):
    """The number of the index that an entry is of."""

    dtype, ndim, layout = np.dtype(np.int32), 1, ""

    def __init__(self, ends: np.ndarray) -> None:
        self._ends = ends

    def __len__(self) -> int:
        return int(self._ends[-1])

    def __getitem__(self, entries: np.ndarray) -> Any:
        return _owners(self._ends, entries).astype(np.int32)


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
        parts = _owners(self._ends, entries)
        places = [np.flatnonzero(parts == part) for part in range(len(self._columns))]
        found = [
            (own, column[entries[own] - start])
            for own, column, start in zip(places, self._columns, self._starts, strict=True)
            if len(own)
        ]
        kinds: set[Any] = {
            (v.shape[1:], v.dtype) if isinstance(v, np.ndarray) else None for _, v in found
        }
        dense = len(kinds) == 1 and None not in kinds
        rows: Any = {}
        if dense:
            shape, dtype = kinds.pop()
            rows = np.empty((len(entries), *shape), dtype)
        for own, values in found:
            if dense:
                rows[own] = values
            else:
                rows.update({place: _row(values, k) for k, place in enumerate(own.tolist())})
        return rows if dense else [rows[k] for k in range(len(entries))]


def _row(values: Any, number: int) -> Any:
    return values[number, ...] if isinstance(values, np.ndarray) else values[number]
