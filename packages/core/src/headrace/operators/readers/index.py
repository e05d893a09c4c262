"""Index of a reader's entries, known before any is read: file extents, and columns of values."""

from __future__ import annotations

import contextlib
import math
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from headrace.errors import ArgumentValueError, BadSampleError
from headrace.kernels.cpu import reading_loop, reading_threads
from headrace.operators.readers.remote import ReadAhead
from headrace.operators.readers.storage import (
    Allocate,
    complete,
    file_size,
    in_memory,
    is_remote,
    join,
    read_file,
)
from headrace.operators.support.schema import Spec
from headrace.types import DALIDataType, to_dali_type

if TYPE_CHECKING:
    from headrace.kernels.cpu.reading_threads import FileExtents
    from headrace.operators.cache.lookup import Lookups

T = TypeVar("T")
_PEEKING = 16
"""Threads that look at the headers of images."""
_HEADER_BYTES = 1 << 16
"""Part of a file that is read for its header; the whole of it where that does not do."""


class RaggedColumn:
    """A column whose values differ in length from entry to entry.

    `values`: those of all entries one after another, ``(all, ...)``. `ends`: int64 ``(entries,)``:
    where in `values` those of each entry end.
    """

    def __init__(self, values: np.ndarray, ends: Sequence[int] | np.ndarray) -> None:
        self.values = values.view()
        self.values.flags.writeable = False  # samples are parts of it
        self.ends = np.asarray(ends, np.int64)
        self._begins = np.concatenate(([0], self.ends[:-1]))

    def __len__(self) -> int:
        return len(self.ends)

    def __getitem__(self, entries: np.ndarray) -> list[np.ndarray]:
        spans = zip(self._begins[entries].tolist(), self.ends[entries].tolist(), strict=True)
        return [self.values[begin:end] for begin, end in spans]

    @property
    def dtype(self) -> np.dtype:
        """Type of the elements."""
        return self.values.dtype

    @property
    def ndim(self) -> int:
        """Number of dimensions, that of the entries included."""
        return self.values.ndim + 1


class ComputedColumn(ABC):
    """A column whose values are made when entries are read."""

    dtype: np.dtype
    """Type of the elements."""
    ndim: int
    """Number of dimensions, that of the entries included."""
    layout: str
    """The layout of the values."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def __getitem__(self, entries: np.ndarray) -> list[np.ndarray]: ...


Column = np.ndarray | RaggedColumn | ComputedColumn


class Index:
    """The entries of a data set, and what is known of them without their bytes.

    Entries are numbered from 0. `FileIndex` is one of files; a sub-class for other storage has a
    `fetch` and a `source` of its own. An index can be pickled, so that another process can be told
    entries by their numbers alone.

    `size`: number of entries. `specs`: types of the pieces that an entry is made of; none where
    there are only columns. `columns`: arrays ``(entries, ...)``, `RaggedColumn` or
    `ComputedColumn`, that become the last outputs of the reader. `details`: the same for what the
    parser is handed after the pieces.

    Raises `ArgumentValueError` if a column has another number of entries.
    """

    allows_empty = True
    """True if entries without a byte are samples."""
    own_sources = False
    """True if pieces are identified by their source: `piece_sources`."""
    reads_apart = False
    """True if entries are brought in by threads of this process in a stage of its own, as what is
    read for one is kept for others.
    """
    indices: Sequence[Index] = ()
    """The indices that its entries are made of, if any."""
    apart: tuple[Column, ...] = ()
    """Columns that tell entries apart which come from one place, besides the details."""
    lends = False
    """True if pieces may be views of memory that others use, too; nothing may write to them."""
    cached: Lookups | None = None
    """The caches of what is made of the entries, if any."""
    looks_ahead = 0
    """Number of entries after those that are drawn that `expect` is told."""
    orders_groups = False
    """True if orders are to need few groups of entries at a time."""
    local: FileExtents | None = None
    """The extents, if all are in local files that can be read without the interpreter."""
    classes: Mapping[str, int] = MappingProxyType({})
    """Labels by the names of classes, where these have names."""
    labels: np.ndarray | None = None
    """The class of each entry, integers, where it is known and there is one."""

    def __init__(
        self,
        size: int,
        specs: Sequence[Spec] = (),
        *,
        columns: Sequence[Column] = (),
        details: Sequence[Column] = (),
    ) -> None:
        self._size = size
        self.specs = tuple(specs)
        self.columns = tuple(columns)
        self.details = tuple(details)
        lengths = [len(column) for column in (*columns, *details)]
        if any(length != size for length in lengths):
            raise ArgumentValueError(
                f"The columns of an index of {size} entries have the lengths {lengths}; each has "
                "one value for each entry."
            )

    def __len__(self) -> int:
        return self._size

    def source(self, entry: int) -> str:
        """The file or key that `entry` comes from."""
        return f"entry {entry}"

    def sources(self, entries: Sequence[int]) -> list[str]:
        """The same for several."""
        return [self.source(entry) for entry in entries]

    def piece_sources(self, piece: int, entries: Sequence[int]) -> list[str]:
        """Source of a piece of several entries; empty where an entry lacks it."""
        raise NotImplementedError

    length_names: tuple[str, ...] = ()
    """Lengths of entries that are known before they are read."""

    def lengths(self, name: str) -> np.ndarray | None:
        """The lengths of entries of this name, one of `length_names`; `None` for others."""
        return None

    def containers(self) -> np.ndarray:
        """The first entry of each file of several, or of what else is read in one go, int64."""
        return np.arange(len(self))

    def extents(self, entries: np.ndarray) -> list[tuple[tuple[str, int, int], ...]] | None:
        """The files that entries come from, each with offset and size (-1: all of it), by which an
        entry is known again; `None` if the index does not name any.
        """
        return None

    def paths_of(self, entries: np.ndarray) -> list[str] | None:
        """The file that each of these entries is in, or begins in; `None` if that is unknown."""
        found = self.extents(entries)
        return None if found is None else [pieces[0][0] for pieces in found]

    def keys_of(self, entries: np.ndarray) -> list[str] | None:
        """The name of each of these entries in the data set; `None` if there is none."""
        return None

    def numbers(self, entries: np.ndarray) -> np.ndarray:
        """The pieces of entries, int64: those of the first one, then those of the next.

        Piece ``p`` of an entry has the number of the entry times the number of pieces, plus ``p``.
        """
        pieces = len(self.specs)
        if pieces == 1:
            return entries
        found: np.ndarray = reading_loop.numbers_of(entries, pieces)
        return found

    def expect(self, entries: Sequence[int]) -> None:
        """Take note that entries were drawn, and will be wanted soon."""

    def fetch_columns(self, entries: np.ndarray) -> list[Any] | None:
        """Each piece of several entries as a column, an array or `Rows`, where not all are in local
        files; `None` where `fetch_together` is to bring them in.
        """
        return None

    def fetch_together(self, entries: np.ndarray, empty: Allocate) -> Sequence[Any]:
        """The pieces of several entries where not all are in local files, in memory of `empty`.

        What stands as `None` is left to `fetch`.
        """
        return [None] * (len(entries) * len(self.specs))

    def fetch(self, entry: int) -> tuple[Any, ...]:
        """The pieces of one entry, which could not be brought in with others.

        Raises `BadSampleError` if it cannot be read.
        """
        return ()


class FileIndex(Index):
    """Entries that are files, or extents within files.

    `paths`: names of files, or addresses. `root`: what incomplete names are below; empty for the
    working directory. `files`: which of `paths` an entry is in, ``(entries,)``; or ``(entries,
    pieces)`` for entries that are made of several pieces. Without it entry ``k`` is in file ``k``.
    `offsets`, `sizes`: where in its file each begins, and how long it is, in bytes, of the shape of
    `files`. Without them, they begin at 0 and reach to the end of the file, as where a size is
    negative. `columns`, `details`: as of `Index`. `allows_empty`: whether entries without a byte
    are samples. `largest_bytes`: the parser is handed the path of local files with more bytes, of
    which it reads what it needs. `None` for bytes always.

    Raises `ArgumentValueError` if the arrays do not have the same number of entries, or name other
    files than there are.
    """

    def __init__(
        self,
        paths: Sequence[str],
        *,
        root: str = "",
        files: Any = None,
        offsets: Any = None,
        sizes: Any = None,
        columns: Sequence[Column] = (),
        details: Sequence[Column] = (),
        allows_empty: bool = True,
        largest_bytes: int | None = None,
    ) -> None:
        given = {"files": files, "offsets": offsets, "sizes": sizes}
        places = {k: np.array(p, np.int64) for k, p in given.items() if p is not None}
        shapes = {place.shape for place in places.values()} or {(len(paths),)}
        shape = next(iter(shapes))
        if len(shapes) > 1 or len(shape) not in (1, 2):
            raise ArgumentValueError(
                f"An index has places of the shapes {sorted(shapes)}; `files`, `offsets` and "
                "`sizes` are all of the shape (entries,) or all (entries, pieces)."
            )
        specs = [Spec(DALIDataType.UINT8, 1)] * (shape[1] if len(shape) > 1 else 1)
        super().__init__(shape[0], specs, columns=columns, details=details)
        self._places = {name: place.reshape(-1) for name, place in places.items()}
        every = places.get("files", np.arange(math.prod(shape)))
        if every.size and (every.min() < 0 or every.max() >= len(paths)):
            raise ArgumentValueError(
                f"An index is about files {every.min()} to {every.max()} where there are "
                f"{len(paths)}; `files` says which of `paths` each entry is in."
            )
        self.paths = paths
        self.root = root
        self.allows_empty = allows_empty
        self.largest_bytes = largest_bytes

    def __getstate__(self) -> dict[str, Any]:
        own = ("local", "_ahead")
        return {name: value for name, value in vars(self).items() if name not in own}

    @cached_property
    def reads_apart(self) -> bool:  # type: ignore[override]
        """True if entries are remote: they are read ahead in this process."""
        some = (self.root, self.paths[0], self.paths[-1]) if len(self.paths) else ()
        return any(map(is_remote, some))  # of mixed ones, some are read when they are wanted

    @cached_property
    def _ahead(self) -> ReadAhead:
        return ReadAhead(self._extent)

    @property
    def looks_ahead(self) -> int:  # type: ignore[override]
        """Number of entries after those that are drawn that `expect` is told."""
        return self._ahead.window // max(len(self.specs), 1) if self.reads_apart else 0

    def expect(self, entries: Sequence[int]) -> None:
        """Begin to read remote entries."""
        if self.reads_apart:
            self._ahead.expect(self.numbers(np.array(entries, np.int64)).tolist())

    def _place(self, number: int) -> tuple[int, int, int]:
        """File, offset and size of a piece."""
        usual = {"files": number, "offsets": 0, "sizes": -1}
        found = {k: int(place[number]) for k, place in self._places.items()}
        file, offset, size = (usual | found).values()
        return file, offset, max(size, -1)

    def source(self, entry: int) -> str:
        """The file that `entry` is in; of part of a file, with the offset."""
        file, offset, _ = self._place(entry * len(self.specs))
        path = self.paths[file]
        return f"{path} at index {offset}" if "offsets" in self._places else path

    def sources(self, entries: Sequence[int]) -> list[str]:
        """The same for several."""
        if self._places:
            return super().sources(entries)
        paths = self.paths
        return [paths[entry] for entry in entries]

    length_names: tuple[str, ...] = ("bytes", "pixels")

    def lengths(self, name: str) -> np.ndarray | None:
        """Bytes of entries, of all their pieces together; or pixels of the images they are."""
        if name == "pixels":
            with ThreadPoolExecutor(_PEEKING, "headrace-pixels") as threads:
                return np.array(list(threads.map(self._pixels, range(len(self)))), np.int64)
        if name != "bytes":
            return None
        every = [self.bytes_of(piece) for piece in range(len(self.specs))]
        total: np.ndarray = np.stack(every).sum(0)
        return total

    def bytes_of(self, piece: int) -> np.ndarray:
        """Bytes of a piece of all entries, int64."""
        numbers = np.arange(len(self)) * len(self.specs) + piece
        found = [
            size if size >= 0 else file_size(path) - offset
            for path, offset, size in map(self._extent, numbers.tolist())
        ]
        return np.array(found, np.int64)

    def _pixels(self, entry: int) -> int:
        """Pixels of an image, of whose file as little is read as it takes."""
        from headrace.operators.support.decode.encoded import open_encoded

        path, offset, size = self._extent(entry * len(self.specs))
        size = file_size(path) - offset if size < 0 else size
        for part in sorted({min(size, _HEADER_BYTES), size}):
            try:
                header = open_encoded(read_file(path, np.empty, offset, part))[1]
                return math.prod(header.size(True))
            except BadSampleError as error:
                problem = error
        raise ArgumentValueError(
            f'`bucket_by`="pixels": {self.source(entry)!r} cannot be looked into: {problem}'
        ) from problem

    def keys_of(self, entries: np.ndarray) -> list[str] | None:
        """The names of files, where each has an entry."""
        if self._places:
            return None
        return [self.paths[entry].removeprefix("./") for entry in entries.tolist()]

    def containers(self) -> np.ndarray:
        """The first entry of each run of entries that are in one file."""
        if "files" not in self._places:
            return super().containers()
        files = self._places["files"][:: len(self.specs)]
        return np.flatnonzero(np.diff(files, prepend=-1))

    def extents(self, entries: np.ndarray) -> list[tuple[tuple[str, int, int], ...]]:
        """The pieces of entries: files, offsets, sizes."""
        pieces = [self._extent(number) for number in self.numbers(entries).tolist()]
        pieces = [(complete(path), offset, size) for path, offset, size in pieces]
        count = len(self.specs)
        return [tuple(pieces[k : k + count]) for k in range(0, len(pieces), count)]

    @cached_property
    def local(self) -> FileExtents | None:  # type: ignore[override]
        """The extents, if all are in local files that can be read without the interpreter."""
        extents: dict[str, Any] = dict(self._places)
        if self.largest_bytes is not None:
            extents["largest"] = self.largest_bytes
        return reading_threads.FileExtents.of(self.paths, self.root, **extents)

    def fetch_together(self, entries: np.ndarray, empty: Allocate) -> Sequence[Any]:
        """The pieces of several entries where not all are in local files."""
        numbers = self.numbers(entries).tolist()
        remote = [n for n in numbers if is_remote(self._extent(n)[0])]
        sizes = [self._extent(n)[2] for n in remote]
        found = {
            n: content
            for n, content, size in zip(remote, self._ahead.take(remote), sizes, strict=True)
            if isinstance(content, bytes) and size in (len(content), -1)
        }
        return in_memory([found.get(n) for n in numbers], empty)

    def fetch(self, entry: int) -> tuple[Any, ...]:
        """The pieces of one entry; the path in place of a piece that is too large."""
        first = entry * len(self.specs)
        return tuple([self._piece(first + k) for k in range(len(self.specs))])

    def _extent(self, number: int) -> tuple[str, int, int]:
        file, offset, size = self._place(number)
        return join(self.root, self.paths[file]), offset, size

    def _piece(self, number: int) -> Any:
        path, offset, size = self._extent(number)
        if self.largest_bytes is not None and not is_remote(path):
            local = path.removeprefix("file://")
            if os.path.isfile(local) and os.path.getsize(local) > self.largest_bytes:
                return local
        data = read_file(path, np.empty, offset, size)
        if not data.size and not self.allows_empty:
            raise BadSampleError(
                f"The file {path!r} is empty. `dont_use_mmap=True` lets empty files through."
            )
        return data


def specs_of(columns: Sequence[Column]) -> tuple[Spec, ...]:
    """Types of the values of columns."""
    return tuple(
        [
            Spec(
                getattr(c, "dali_type", None) or to_dali_type(c.dtype),
                c.ndim - 1,
                getattr(c, "layout", ""),
            )
            for c in columns
        ]
    )


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


def first_of(index: Index, parse: Callable[[np.ndarray], T]) -> T | None:
    """The contents of the first record that can be parsed: others are to be alike. Or `None`."""
    for entry in range(len(index)):
        with contextlib.suppress(BadSampleError):
            return parse(index.fetch(entry)[0])
    return None
