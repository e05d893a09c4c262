"""Indices whose entries lie in groups that are read as a whole, as the row groups of Parquet."""

from __future__ import annotations

import threading
from abc import abstractmethod
from collections import OrderedDict, deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from headrace.operators.readers.index import Index
from headrace.operators.readers.order import FIXED_SEED, ReadingOrder
from headrace.operators.readers.storage import Allocate
from headrace.operators.support.schema import Spec

if TYPE_CHECKING:
    from headrace.operators.readers.base import Reader

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


class GroupedIndex(Index):
    """Entries in groups, of which those that were used last are kept in memory.

    Parameters
    ----------
    sizes
        Number of entries of each group.
    specs
        Types of the values of an entry.
    cache_bytes
        Memory for groups that are kept; one at least is.
    """

    lends = True
    reads_apart = True

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

        Raises
        ------
        BadSampleError
            If it cannot be read.
        """

    def place(self, entry: int) -> tuple[int, int]:
        """The group that `entry` is in, and its position there."""
        group = int(np.searchsorted(self.ends, entry, "right"))
        return group, entry - (int(self.ends[group - 1]) if group else 0)

    def expect(self, entries: Sequence[int]) -> None:
        """Read the groups of entries ahead, in a thread that ends when it has read them."""
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


class GroupedOrder(ReadingOrder):
    """An order in which few groups are needed at a time.

    With `random_shuffle` groups are permuted once, as other readers permute the list of files, and
    the window is over their entries. With `shuffle_after_epoch` they are permuted for every epoch,
    and entries are then permuted within blocks of `initial_fill` entries or a group, whatever is
    more.
    """

    def __init__(self, ends: np.ndarray, block: int, **settings: Any) -> None:
        super().__init__(int(ends[-1]) if len(ends) else 0, **settings)
        self._group_ends = ends
        self._block = block
        seed = settings.get("shuffle_after_epoch_seed")
        self._group_seed = FIXED_SEED if seed is None else seed
        self._list = None

    def entries_of(self, epoch: int, shard: int) -> Sequence[int]:
        """The samples of `shard` in `epoch`, in the order before shuffling by a window."""
        if not (self._window or self._shuffled):
            return super().entries_of(epoch, shard)
        first, last = (k * self.size // self.num_shards for k in (shard, shard + 1))
        seed, epoch = (self._group_seed, epoch) if self._shuffled else (FIXED_SEED, 0)
        found: list[int] = _of_groups(
            self._group_ends, first, last, seed, epoch, self._block if self._shuffled else 0
        ).tolist()
        return found


def grouped_order(reader: Reader, seed: int) -> GroupedOrder:
    """The order of a reader of a `GroupedIndex`."""
    args, index = reader.args, reader.index
    assert isinstance(index, GroupedIndex)
    return GroupedOrder(
        index.ends,
        args.initial_fill,
        shard_id=args.shard_id,
        num_shards=args.num_shards,
        stick_to_shard=args.stick_to_shard,
        pad_last_batch=args.pad_last_batch,
        random_shuffle=args.random_shuffle,
        initial_fill=args.initial_fill,
        seed=seed,
        shuffle_after_epoch=args.shuffle_after_epoch and not args.random_shuffle,
        shuffle_after_epoch_seed=args.shuffle_after_epoch_seed,
    )


def _of_groups(
    ends: np.ndarray, first: int, last: int, seed: int, epoch: int, block: int
) -> np.ndarray:
    """Numbers `first` to `last` of the entries of permuted groups, and permuted in blocks."""
    begins = np.concatenate(([0], ends[:-1]))
    order = _permutation(len(ends), seed, epoch, 0)
    sizes = (ends - begins)[order]
    stops = np.cumsum(sizes)
    starts = stops - sizes
    blocks = starts // max(block, 1) if block else np.arange(len(order))
    parts = []
    chosen = (stops > first) & (starts < last)
    for number in np.unique(blocks[chosen]).tolist():
        members = np.flatnonzero(blocks == number) if block else np.array([number])
        entries = np.concatenate([np.arange(begins[g], ends[g]) for g in order[members].tolist()])
        if block:
            entries = entries[_permutation(len(entries), seed, epoch, number + 1)]
        start = int(starts[members[0]])
        parts.append(entries[max(first - start, 0) : max(last - start, 0)])
    return np.concatenate(parts) if parts else np.empty(0, np.int64)


def _permutation(count: int, seed: int, epoch: int, stream: int) -> np.ndarray:
    """A permutation that follows from these numbers alone, also with other versions of NumPy."""
    mask = (1 << 64) - 1
    bits = np.random.Philox(key=[seed & mask, epoch], counter=[0, 0, stream, 0])
    return np.argsort(bits.random_raw(count), kind="stable")
