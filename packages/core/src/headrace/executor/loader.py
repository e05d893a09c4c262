"""Brings in the entries of a reader: the bytes of several at once, and their columns."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headrace.executor.source_names import SourceNames
from headrace.kernels.cpu import reading_threads
from headrace.operators.readers.index import specs_of
from headrace.operators.support.operator import SampleContext
from headrace.types import storage_dtype

if TYPE_CHECKING:
    from headrace.operators.readers.index import Column, Index
    from headrace.operators.support.schema import Spec

_ALIGNMENT = 64


class Loaded(NamedTuple):
    """Entries that were brought in together."""

    missing: list[int]
    """Positions of those that `Loader.fetch` has to see; the others are here, in their order."""
    columns: list[Any]
    """The pieces, `Rows` or a list with one array for each entry, and then the columns of the
    index."""
    sources: SourceNames
    """Files that the entries come from."""


class Loader:
    """Brings in the entries of one reader, for any number of threads at once.

    It knows where bytes are and nothing of what they mean. Local files are read without the
    interpreter, in the thread that asks (`load`) or by threads of their own (`begin`); addresses by
    fsspec, those of several entries at once. What cannot be read so is tried once more alone
    (`fetch`), which raises what is wrong.

    `index`: the entries. `pieces`: of how many extents an entry is made. `specs`: types of the
    pieces, the details and the columns.
    """

    plan = None
    frame_args: tuple[str, ...] = ()
    returns_lazy: tuple[type, ...] = ()
    takes: tuple[type, ...] = ()

    def __init__(self, index: Index) -> None:
        self.index = index
        self.args = SimpleNamespace()
        self.pieces = len(index.specs)
        self._columns = (*index.details, *index.columns)
        known = () if index.cached is None else index.cached.specs
        self.specs = (*index.specs, *specs_of(self._columns), *known)
        self._entry_bytes = 0
        """About how much memory an entry takes, so that sizes need not be known beforehand."""

    def columns(self, entries: np.ndarray) -> list[Any]:
        """The details and columns of entries: an array, or a list of arrays, for each."""
        return [column[entries] for column in self._columns]

    def sources(self, entries: np.ndarray, piece: int | None = None) -> SourceNames:
        """Files that entries come from, or those of a piece of them."""
        index = self.index
        if piece is None:
            return SourceNames(len(entries), lambda: index.sources(entries.tolist()))
        return SourceNames(len(entries), lambda: index.piece_sources(piece, entries.tolist()))

    def load(self, entries: np.ndarray, empty: Callable[..., np.ndarray]) -> Loaded:
        """Load entries, given by int64 indices; ``empty(shape, dtype)`` makes memory they share."""
        cached = self.index.cached
        if cached is None:
            return self._load(entries, empty)
        wanted, columns = cached.look_up(self.index, entries)
        places = np.flatnonzero(wanted)
        read = self._load(entries[places], empty) if len(places) else Loaded([], [], SourceNames(0))
        missing = places[read.missing].tolist()
        there = np.delete(np.arange(len(entries)), missing)
        place = {int(k): n for n, k in enumerate(np.delete(places, read.missing))}
        pieces = [
            [read.columns[p][place[k]] if k in place else _nothing(spec) for k in there.tolist()]
            for p, spec in enumerate(self.index.specs)
        ]
        entries = entries[there]
        found = [*pieces, *self.columns(entries), *[each[there] for each in columns]]
        return Loaded(missing, found, self.sources(entries))

    def _load(self, entries: np.ndarray, empty: Callable[..., np.ndarray]) -> Loaded:
        index = self.index
        if index.local is None:
            columns = index.fetch_columns(entries)
            if columns is not None:
                return Loaded([], [*columns, *self.columns(entries)], self.sources(entries))
            rows, all_there = index.fetch_together(entries, empty), False
        else:
            files = self.begin(None, entries, empty).wait()
            self.note_size(files)
            all_there = not (files.unread or (files.empty and not index.allows_empty))
            together = files.pieces(self.pieces) if all_there else None
            if together is not None:
                return Loaded([], [*together, *self.columns(entries)], self.sources(entries))
            rows = files.rows()
        pieces: list[Any] = [rows[k :: self.pieces] for k in range(self.pieces)]
        missing: list[int] = []
        if not all_there:
            empty_too = not index.allows_empty
            bad = [k for k, r in enumerate(rows) if r is None or (empty_too and not r.size)]
            missing = sorted({k // self.pieces for k in bad})
            entries = np.delete(entries, missing)
            pieces = [[row for k, row in enumerate(p) if k not in missing] for p in pieces]
        return Loaded(missing, [*pieces, *self.columns(entries)], self.sources(entries))

    def begin(
        self,
        threads: reading_threads.ReadingThreads | None,
        entries: np.ndarray,
        empty: Callable[..., np.ndarray],
        scans: bool = False,
    ) -> reading_threads.BeingRead:
        """Begin to read entries that are in local files; see `reading_threads.BeingRead`."""
        extents = self.index.local
        assert extents is not None
        numbers = self.index.numbers(entries)
        guess = self._entry_bytes * len(entries)
        return reading_threads.BeingRead(
            threads, extents, numbers, empty, guess, scans, self.pieces
        )

    def note_size(self, files: reading_threads.FilesRead) -> None:
        """Note how much memory entries take, for the size of later blocks."""
        needed = self.pieces * (files.size_bytes // max(len(files.sizes), 1) + _ALIGNMENT)
        self._entry_bytes = max(needed * 9 // 8, self._entry_bytes * 15 // 16)

    def fetch(self, c: SampleContext, entry: int) -> tuple[Any, ...]:
        """Bring in one entry alone: its pieces, details and columns."""
        cached = self.index.cached
        known = []
        if cached is not None:  # before the file is read, which may change
            known = [each[0, ...] for each in cached.look_up(self.index, np.array([entry])).columns]
        columns = [_value(column, entry) for column in self._columns]
        return (*self.index.fetch(entry), *columns, *known)


def _nothing(spec: Spec) -> np.ndarray:
    """Return the stand-in of an unread piece."""
    return np.empty((0,) * (spec.ndim or 0), storage_dtype(spec.dtype))


def _value(column: Column, entry: int) -> np.ndarray:
    """A copy of the value of one entry."""
    found = column[np.array([entry])]
    return found[0, ...] if isinstance(found, np.ndarray) else found[0].copy()
