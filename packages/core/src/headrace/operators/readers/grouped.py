"""Indices whose entries lie in groups that are read as a whole, as the row groups of Parquet."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections import OrderedDict, deque
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from headrace.operators.readers.index import Index
from headrace.operators.readers.storage import Allocate, complete
from headrace.operators.support.schema import Spec
from headrace.tensors.rows import Rows

_OWN = ("_lock", "_kept", "_wanted", "_reads_ahead")
"""Attributes that a process does not share with others."""
CACHE_BYTES = 1 << 29
"""Memory for groups that are kept, by default."""


class Values(Protocol):
    """The values of a column for the rows of a group."""

    def rows(self, positions: Sequence[int]) -> list[np.ndarray | None]:
        """Those of some rows; `None` for what only `alone` can bring in, or says what is wrong."""

    def alone(self, position: int) -> np.ndarray:
        """That of one row."""

    def taken(self, positions: np.ndarray) -> np.ndarray | Spans | None:
        """Those of some rows as one array, or as parts of one; `None` where one is missing, or
        they are neither.
        """


class Spans(NamedTuple):
    """Parts of an array, 1-D."""

    values: np.ndarray
    begins: np.ndarray
    sizes: np.ndarray


def _joined(columns: Sequence[Any], places: Sequence[Any], count: int) -> np.ndarray | Rows | None:
    """One column out of several, the rows of each at its places; `None` where one is `None`."""
    kinds = {type(column) for column in columns}
    if kinds == {np.ndarray}:
        if len(columns) == 1:
            return columns[0]  # type: ignore[no-any-return]
        whole = np.empty((count, *columns[0].shape[1:]), columns[0].dtype)
        for own, column in zip(places, columns, strict=True):
            whole[own] = column
        return whole
    if kinds != {Spans}:
        return None
    facts = np.empty((3, count), np.int64)
    for number, (own, column) in enumerate(zip(places, columns, strict=True)):
        facts[0, own], facts[1, own], facts[2, own] = number, column.begins, column.sizes
    return Rows.of_parts([column.values for column in columns], *facts)


class GroupedIndex(Index):
    """Entries in groups, of which those that were used last are kept in memory.

    `sizes`: number of entries of each group. `specs`: types of the values of an entry.
    `cache_bytes`: memory for groups that are kept; one at least is.
    """

    lends = True
    reads_apart = True
    orders_groups = True

    def __init__(
        self, sizes: Sequence[int], specs: Sequence[Spec], cache_bytes: int = CACHE_BYTES
    ) -> None:
        self.ends = np.cumsum(np.asarray(sizes, np.int64))
        super().__init__(int(self.ends[-1]) if len(self.ends) else 0, specs)
        self._cache_bytes = cache_bytes
        self._start()

    def _start(self) -> None:
        self._lock = threading.Lock()
        self._kept: OrderedDict[int, _Group] = OrderedDict()
        self._wanted: deque[int] = deque()
        """Groups that are to be read ahead, by a thread if there is one."""
        self._reads_ahead = False

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in vars(self).items() if k not in _OWN}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._start()

    @abstractmethod
    def read_group(self, group: int) -> tuple[list[Values], int]:
        """The values of each column for the rows of a group, and the bytes of memory they take.

        Raises `BadSampleError` if it cannot be read.
        """

    def place(self, entry: int) -> tuple[int, int]:
        """The group that `entry` is in, and its position there."""
        group = int(np.searchsorted(self.ends, entry, "right"))
        return group, entry - (int(self.ends[group - 1]) if group else 0)

    def file_row(self, entry: int) -> tuple[str, int] | None:
        """The file of an entry, and its row there; `None` if it is in none."""
        return None

    def extents(self, entries: np.ndarray) -> list[tuple[tuple[str, int, int], ...]] | None:
        """The files that entries are in, and their rows."""
        found = [place for e in entries.tolist() if (place := self.file_row(e)) is not None]
        if len(found) < len(entries):
            return None
        return [((complete(path), row, -1),) for path, row in found]

    def containers(self) -> np.ndarray:
        """The first entry of each group."""
        return np.unique(np.concatenate(([0], self.ends[:-1])))

    def expect(self, entries: Sequence[int]) -> None:
        """Read the groups of entries ahead, in a thread that ends when it has read them."""
        if len(self._kept) == len(self.ends):
            return
        groups = np.searchsorted(self.ends, np.unique(entries), "right")
        with self._lock:
            known = [group.size_bytes for group in self._kept.values() if group.size_bytes]
            most = self._cache_bytes // (2 * max(known)) if known else 1
            for group in dict.fromkeys(groups.tolist()):
                is_known = group in self._kept or group in self._wanted
                if not is_known and len(self._wanted) < most:
                    self._wanted.append(group)
            if self._reads_ahead or not self._wanted:
                return
            self._reads_ahead = True
        threading.Thread(target=self._read_ahead, name="headrace-groups", daemon=True).start()

    def _read_ahead(self) -> None:
        while True:
            with self._lock:
                if not self._wanted:
                    self._reads_ahead = False
                    return
                group = self._wanted.popleft()
            self._group(group)

    def fetch_columns(self, entries: np.ndarray) -> list[Any] | None:
        """The values of several entries as columns."""
        groups = np.searchsorted(self.ends, entries, "right")
        positions = entries - np.concatenate(([0], self.ends))[groups]
        found: list[list[Any]] = [[] for _ in self.specs]
        each: list[Any] = []
        several = set(groups.tolist())
        for group in several:
            each.append(np.flatnonzero(groups == group) if len(several) > 1 else slice(None))
            known = self._group(group).columns
            if known is None:
                return None
            for column, values in zip(found, known, strict=True):
                column.append(values.taken(positions[each[-1]]))
        columns = [_joined(column, each, len(entries)) for column in found]
        return None if any(column is None for column in columns) else columns

    def fetch_together(self, entries: np.ndarray, empty: Allocate) -> Sequence[Any]:
        """The values of several entries, one group after the other."""
        pieces = len(self.specs)
        rows: list[Any] = [None] * (len(entries) * pieces)
        groups = np.searchsorted(self.ends, entries, "right")
        for group in np.unique(groups).tolist():
            places = np.flatnonzero(groups == group)
            positions = (entries[places] - (self.ends[group - 1] if group else 0)).tolist()
            columns = self._group(group).columns
            for k, column in enumerate(columns or ()):
                values = column.rows(positions)
                for place, value in zip(places.tolist(), values, strict=True):
                    rows[place * pieces + k] = value
        return rows

    def fetch(self, entry: int) -> tuple[Any, ...]:
        """The values of one entry."""
        group, position = self.place(entry)
        found = self._group(group)
        if found.columns is None:
            found.columns = self.read_group(group)[0]
        return tuple([column.alone(position) for column in found.columns])

    def _group(self, number: int) -> _Group:
        """A group, which one thread reads while others wait; without columns if it is damaged."""
        with self._lock:
            group = self._kept.get(number)
            if group is None:
                group = self._kept[number] = _Group()
            self._kept.move_to_end(number)
        with group.lock:
            if not group.is_read:
                group.is_read = True
                try:
                    group.columns, group.size_bytes = self.read_group(number)
                except Exception:  # whatever it is, `fetch` meets it again and knows the sample
                    group.columns = None
                self._let_go()
        return group

    def _let_go(self) -> None:
        with self._lock:
            total = sum(group.size_bytes for group in self._kept.values())
            while total > self._cache_bytes and len(self._kept) > 1:
                total -= self._kept.popitem(last=False)[1].size_bytes


class _Group:
    __slots__ = ("columns", "is_read", "lock", "size_bytes")

    def __init__(self) -> None:
        self.columns: list[Values] | None = None
        self.size_bytes = 0
        self.is_read = False
        self.lock = threading.Lock()
