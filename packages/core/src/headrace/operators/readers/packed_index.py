"""An index whose entries are rows of one length, packed with sequences of another index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from headrace.errors import BadSampleError
from headrace.kernels.cpu.best_fit import best_fit
from headrace.operators.readers.index import Index, fetched
from headrace.operators.readers.storage import Allocate
from headrace.operators.support.schema import Spec
from headrace.types import DALIDataType, storage_dtype

_WINDOW = 8192
"""Sequences that are packed together, neighbours in the data set: they are read together, too."""
_NUMBERS = (Spec(DALIDataType.INT32, 1),) * 2


class PackingPlan(NamedTuple):
    """Rows of parts of sequences; row ``k`` has those from ``begins[k]`` to ``begins[k + 1]``."""

    entries: np.ndarray
    """The sequence that each part is of."""
    firsts: np.ndarray
    """The element of it that each part begins with."""
    sizes: np.ndarray
    """Number of elements of each part."""
    begins: np.ndarray
    groups: np.ndarray
    """Rows at which other sequences begin, none of which is in a row before."""


def packed(lengths: np.ndarray, length: int, *, split: bool) -> PackingPlan:
    """Pack sequences, best fit. Of those above `length`, the rest is left out or, with `split`, in
    parts of their own.
    """
    parts = -(-lengths // length) if split else np.minimum(lengths, 1)
    entries = np.repeat(np.arange(len(lengths)), parts)
    firsts = (np.arange(len(entries)) - np.repeat(np.cumsum(parts) - parts, parts)) * length
    sizes = np.minimum(lengths[entries] - firsts, length)
    rows = np.empty(len(sizes), np.int64)
    groups, count = [0], 0
    for begin in range(0, len(sizes), _WINDOW):
        own = sizes[begin : begin + _WINDOW]
        found = rows[begin : begin + _WINDOW]
        made = best_fit(own, np.argsort(-own, kind="stable"), length, found)
        _, at, numbers = np.unique(found, return_index=True, return_inverse=True)
        found[:] = count + np.argsort(np.argsort(at))[numbers]  # in the order of the data set
        count += made
        groups.append(count)
    order = np.argsort(rows, kind="stable")
    begins = np.searchsorted(rows[order], np.arange(count + 1))
    return PackingPlan(entries[order], firsts[order], sizes[order], begins, np.array(groups[:-1]))


class PackedIndex(Index):
    """Rows of `length` elements, and of each the number of its sequence and its place there.

    `part`: index of the sequences. `outputs`: its pieces that rows are made of. `rows`: what is in
    each row. `length`: elements of a row. `fills`: elements that follow after the last sequence of
    a row, of each output.
    """

    def __init__(
        self,
        part: Index,
        outputs: Sequence[int],
        rows: PackingPlan,
        length: int,
        fills: Sequence[Any],
    ) -> None:
        specs = [part.specs[k]._replace(layout="") for k in outputs]
        super().__init__(len(rows.begins) - 1, (*specs, *_NUMBERS))
        self.indices = (part,)
        self._part, self._outputs, self._rows = part, list(outputs), rows
        self._length, self._fills = length, [*fills, 0, 0]
        self._bytes = 0
        self.reads_apart, self.orders_groups = part.reads_apart, part.orders_groups
        self.looks_ahead = min(part.looks_ahead, -(-part.looks_ahead * len(self) // len(part)))

    def _parts(self, row: int) -> slice:
        return slice(*self._rows.begins[row : row + 2].tolist())

    def _entries(self, rows: Sequence[int]) -> np.ndarray:
        own = [self._rows.entries[self._parts(row)] for row in rows]
        return np.unique(np.concatenate(own)) if own else np.empty(0, np.int64)

    def source(self, entry: int) -> str:
        """The files or keys of the sequences."""
        return ";".join(self._part.sources(self._entries([entry]).tolist()))

    def containers(self) -> np.ndarray:
        """The first row of each group."""
        return self._rows.groups

    def expect(self, entries: Sequence[int]) -> None:
        """Take note of the sequences that will be wanted soon."""
        self._part.expect(self._entries(entries).tolist())

    def fetch_together(self, entries: np.ndarray, empty: Allocate) -> Sequence[Any]:
        """Several rows."""
        wanted = self._entries(entries.tolist())
        pieces, self._bytes = fetched(self._part, wanted, empty, self._bytes)
        count = len(self._part.specs)
        known = {}
        for k, entry in enumerate(wanted.tolist()):
            own = pieces[k * count : (k + 1) * count]
            if not any(piece is None for piece in own):
                known[entry] = own
        found: list[Any] = []
        for row in entries.tolist():
            try:
                found += self._made(row, known, empty)
            except (KeyError, BadSampleError):
                found += [None] * len(self.specs)
        return found

    def fetch(self, entry: int) -> tuple[Any, ...]:
        """One row."""
        known: Any = {k: self._part.fetch(k) for k in self._entries([entry]).tolist()}
        return tuple(self._made(entry, known, np.empty))

    def _made(self, row: int, known: dict[int, Sequence[Any]], empty: Allocate) -> list[np.ndarray]:
        parts = self._parts(row)
        entries, firsts, sizes = (each[parts].tolist() for each in self._rows[:3])
        out: list[np.ndarray] = []
        for output, spec in zip(self._outputs, self.specs, strict=False):
            tail = known[entries[0]][output].shape[1:]
            out.append(empty((self._length, *tail), storage_dtype(spec.dtype)))
        out += [empty((self._length,), np.int32) for _ in _NUMBERS]
        at = 0
        for number, (entry, first, size) in enumerate(zip(entries, firsts, sizes, strict=True)):
            for output, values in zip(self._outputs, out, strict=False):
                own = known[entry][output][first : first + size]
                if len(own) < size or own.shape[1:] != values.shape[1:]:
                    raise BadSampleError(
                        f"The sequence from {self._part.source(entry)!r} has the shape "
                        f"{known[entry][output].shape}; `lengths` says that it has "
                        f"{first + size} elements at least, and others of its row are of the shape "
                        f"{(self._length, *values.shape[1:])}."
                    )
                values[at : at + size] = own
            out[-2][at : at + size] = number + 1
            out[-1][at : at + size] = np.arange(size)
            at += size
        for values, fill in zip(out, self._fills, strict=True):
            values[at:] = fill
        return out
