"""Look-up of the entries of a reader in the stores of its caches, before they are read."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headrace.errors import ArgumentValueError
from headrace.operators.cache.store import MOST_DIMENSIONS, Stamp, Store
from headrace.operators.readers.remote import remote_stamps
from headrace.operators.readers.storage import is_remote
from headrace.operators.support.schema import Spec
from headrace.types import DALIDataType

if TYPE_CHECKING:
    from headrace.operators.readers.index import Column, Index

_YOUNG_SECONDS = 0.02
"""A file that was changed so short a time ago may change again and have the same time."""
_KEY, _STAMP, PLACE, _SHAPE = slice(0, 2), slice(2, 5), slice(5, 8), 8
WIDTH = _SHAPE + MOST_DIMENSIONS
"""int64 numbers of a record: key, stamp, file, offset and type of the elements, shape, -1s. An
offset of 0 says that the sample is not there, and a file of -1 that it is not to be kept."""


class LookedUp(NamedTuple):
    """Entries that were looked up."""

    wanted: np.ndarray
    """bool ``(entries,)``: those that have to be read."""
    columns: list[np.ndarray]
    """The columns that a reader gives for its caches."""


class Lookups:
    """The caches of one reader, and the columns that it gives for them.

    `stores`: one for each cache. The first columns are their records, ``(entries, WIDTH)``.
    `groups`: sets of caches, by their numbers: the other columns say which entries are absent from
    any cache of a set. `reads`: which of `groups` tells what is to be read; -1: everything, as
    others than caches use it. `columns`: which of the columns of the index have a say in what is
    kept; `None` for all.
    """

    def __init__(
        self,
        stores: Sequence[Store],
        groups: Sequence[frozenset[int]],
        reads: int,
        columns: Sequence[int],
    ) -> None:
        self.stores = list(stores)
        self.groups = list(groups)
        self.reads = reads
        self.columns = list(columns)
        self.specs = (
            *[Spec(DALIDataType.INT64, 1)] * len(self.stores),
            *[Spec(DALIDataType.UINT8, 0)] * len(self.groups),
        )

    def look_up(self, index: Index, entries: np.ndarray) -> LookedUp:
        """Look up entries in all caches."""
        keys, stamps, keeps = identify(index, entries, [index.columns[k] for k in self.columns])
        records, absent = [], np.ones((len(self.stores), len(entries)), bool)
        for number, store in enumerate(self.stores):
            rows = np.full((len(entries), WIDTH), -1, np.int64)
            found = store.find(keys, stamps)
            for row, key, stamp, keep, place in zip(rows, keys, stamps, keeps, found, strict=True):
                row[_KEY] = np.frombuffer(key, np.int64)
                row[_STAMP] = stamp or 0
                row[PLACE] = (0 if keep else -1, 0, 0) if place is None else place[:3]
                if place is not None:
                    row[_SHAPE : _SHAPE + len(place.shape)] = place.shape
            absent[number] = rows[:, 6] == 0
            records.append(rows)
        missing: list[np.ndarray] = [np.any(absent[list(g)], axis=0) for g in self.groups]
        wanted = missing[self.reads] if self.reads >= 0 else np.ones(len(entries), bool)
        return LookedUp(wanted, [*records, *[each.astype(np.uint8) for each in missing]])


def key_of(record: np.ndarray) -> tuple[bytes, Stamp] | None:
    """The key and the stamp to keep a sample under; `None` if it is not to be kept."""
    if record[5] < 0:
        return None
    size, changed, status = record[_STAMP].tolist()
    return record[_KEY].tobytes(), (size, changed, status)


def shapes_of(records: np.ndarray, ndim: int) -> np.ndarray:
    """Shapes of the samples of records ``(samples, WIDTH)`` that are there."""
    return np.ascontiguousarray(records[:, _SHAPE : _SHAPE + ndim])


def identify(
    index: Index, entries: np.ndarray, columns: Sequence[Column]
) -> tuple[list[bytes], list[Stamp | None], list[bool]]:
    """The keys of entries, the stamps of their files, and which of them can be kept.

    What a sample is made of besides its bytes, `columns` and the details of the index, is part of
    its key, as is what tells entries of one place apart.
    """
    places = index.extents(entries)
    if places is None:
        raise ArgumentValueError(
            "`fn.cache` keeps samples by the files that they come from, and this reader does not "
            "name any."
        )
    known = _stamps({path for extents in places for path, _, _ in extents})
    values = [column[entries] for column in (*index.details, *index.apart, *columns)]
    keys, stamps, keeps = [], [], []
    for k, extents in enumerate(places):
        digest = hashlib.blake2b(repr(extents).encode(errors="surrogatepass"), digest_size=16)
        for value in values:
            each = np.ascontiguousarray(value[k])
            digest.update(repr((each.shape, each.dtype.str)).encode() + each.tobytes())
        keys.append(digest.digest())
        own = [known[path] for path in dict.fromkeys(path for path, _, _ in extents)]
        stamps.append(_joined([stamp for stamp, _ in own]))
        keeps.append(all(keep for _, keep in own) and stamps[-1] is not None)
    return keys, stamps, keeps


def _stamps(paths: set[str]) -> dict[str, tuple[Stamp | None, bool]]:
    """The stamps of files, and whether they are old enough to be relied on."""
    found: dict[str, tuple[Stamp | None, bool]] = {}
    remote = sorted(path for path in paths if is_remote(path))
    if remote:
        stamps = remote_stamps(remote)
        found.update((p, (s, s is not None)) for p, s in zip(remote, stamps, strict=True))
    now = time.time_ns()
    for path in paths.difference(remote):
        try:
            status = os.stat(path.removeprefix("file://"))
        except (OSError, ValueError):
            found[path] = None, False
            continue
        age = now - max(status.st_mtime_ns, status.st_ctime_ns)
        stamp = (status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        found[path] = stamp, age > _YOUNG_SECONDS * 1e9
    return found


def _joined(stamps: Sequence[Stamp | None]) -> Stamp | None:
    if len(stamps) == 1:
        return stamps[0]
    if None in stamps:
        return None
    packed = hashlib.blake2b(repr(stamps).encode(), digest_size=24).digest()
    first, second, third = np.frombuffer(packed, np.int64).tolist()
    return first, second, third
