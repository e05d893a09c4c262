"""A store of samples in files that threads and processes of one host share: see design/cache.md."""

from __future__ import annotations

import contextlib
import json
import mmap
import os
import secrets
import shutil
import struct
import tempfile
import threading
import weakref
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from headrace.config import ram_cache_root
from headrace.errors import BadSampleError, NotYetSupportedError, SuspectDataWarning
from headrace.operators.support.disk_room import room_on_disk
from headrace.operators.support.schema import Spec
from headrace.tracebacks import warn_at
from headrace.types import DALIDataType

try:
    import fcntl
except ImportError:  # on Windows
    fcntl = None  # type: ignore[assignment]

RAM = "ram"
MOST_DIMENSIONS = 8

_MAGIC = b"HRCACHE1"
_HEAD = struct.Struct("<8s6qI")
_ROW = struct.Struct("<16s5qI4x")
_ROW_CHECKED = struct.Struct("<16s5q")
_EXTENT = struct.Struct(f"<8s16s3qqQ2q{MOST_DIMENSIONS}q")
_EXTENT_BYTES = 192
_ALIGNMENT = 64
_SMALLEST_TABLE = 1 << 10
_ROWS_AT_ONCE = 8

Stamp = tuple[int, int, int]


class Found(NamedTuple):
    """A stored sample: which data file it is in, where its elements begin, its type and shape."""

    data: int
    offset: int
    dtype: int
    shape: tuple[int, ...]


class _Head(NamedTuple):
    table: int
    """Number of the table in force; the same for the file of data."""
    data: int
    capacity: int
    rows: int
    used: int
    """Bytes of the file of data that are taken."""
    dead: int
    """Those of them that samples of changed files took."""


class Store:
    """Samples by key and stamp, in the folder of one graph.

    A file of data only grows; a table of fixed rows, found by hashing, says where in it a sample
    is. Rows and samples have check sums, so that what is damaged counts as absent and is written
    again. A writer holds the lock of the file `head`; readers need none.

    Parameters
    ----------
    where
        Folder of stores, or ``"ram"``.
    digest
        Name of the graph: the folder within.
    limit_bytes
        Most bytes of data; `None` for what leaves a tenth of the file system free.
    line
        The user's line, for messages.
    """

    def __init__(self, where: str, digest: str, limit_bytes: int | None, line: str) -> None:
        self.where = where
        self.folder = (ram_folder() if where == RAM else Path(where)) / digest
        self._limit = limit_bytes
        self._line = line
        self._set_up()

    def _set_up(self) -> None:
        self._lock = threading.RLock()
        self._files: dict[str, int] = {}
        self._maps: dict[int, mmap.mmap] = {}
        self._is_full = False
        self._process = os.getpid()
        self._closing = weakref.finalize(self, _close, self._files)

    def __getstate__(self) -> dict[str, Any]:
        names = ("where", "folder", "_limit", "_line")
        return {name: getattr(self, name) for name in names}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._set_up()

    def open(self, entries: int) -> None:
        """Make the store ready for so many samples, in the process that owns it."""
        if fcntl is None:
            raise NotYetSupportedError(
                "`fn.cache` needs locks of files, which Windows does not have: leave it out there."
            )
        if self.where == RAM:
            _remove_unused(self.folder.parent)
        while True:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            if self.where != RAM:
                break
            users = os.open(self.folder / "users", os.O_RDWR | os.O_CREAT, 0o600)
            fcntl.flock(users, fcntl.LOCK_SH)
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(users), os.stat(self.folder / "users")):
                    weakref.finalize(self, _leave, users, self.folder, os.getpid())
                    break
            os.close(users)  # another process has just removed it
        with self._writing():
            head = self._head()
            if head is None or not self._is_whole(head):
                head = self._begin_anew()
            wanted = max(_SMALLEST_TABLE, 1 << (2 * entries).bit_length())
            if wanted > head.capacity:
                self._grow(head, wanted)

    # -- reading -------------------------------------------------------------------------------

    def find(self, keys: list[bytes], stamps: list[Stamp | None]) -> list[Found | None]:
        """Find the samples that are here, whole, and not older than their files."""
        head = self._head()
        if head is None:
            return [None] * len(keys)
        try:
            return [
                None if stamp is None else self._find(head, key, stamp)
                for key, stamp in zip(keys, stamps, strict=True)
            ]
        except OSError:  # removed, as by `headrace cache clear`
            return [None] * len(keys)

    def _find(self, head: _Head, key: bytes, stamp: Stamp) -> Found | None:
        _, row = self._row(head, key)
        if row is None or row[1:4] != stamp:
            return None
        return self._checked(head, key, stamp, row[4])

    def _checked(self, head: _Head, key: bytes, stamp: Stamp, begin: int) -> Found | None:
        """The sample whose extent begins there, if all of it is what was written."""
        size = os.fstat(self._file("data", head.data)).st_size
        if not 0 <= begin <= size - _EXTENT_BYTES:
            return None
        mapped = self._mapped(head.data, begin + _EXTENT_BYTES, size)
        magic, own, *rest = _EXTENT.unpack_from(mapped, begin)
        length, checksum, dtype, ndim, *shape = rest[3:]
        end = begin + _EXTENT_BYTES + length
        if (magic, own, tuple(rest[:3])) != (_MAGIC, key, stamp) or length < 0 or end > size:
            return None
        mapped = self._mapped(head.data, end, size)
        if _checksum(mapped, begin, length) != checksum:
            return None
        return Found(head.data, begin + _EXTENT_BYTES, dtype, tuple(shape[:ndim]))

    def view(self, data: int, offset: int, shape: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
        """The elements of a sample that was found, in mapped memory."""
        count = int(np.prod(shape, dtype=np.int64))
        try:
            size = os.fstat(self._file("data", data)).st_size
            mapped = self._mapped(data, offset + count * dtype.itemsize, size)
        except (OSError, ValueError) as error:
            raise BadSampleError(
                f"The cache in {str(self.folder)!r} was removed or cut while it was read."
            ) from error
        return np.frombuffer(mapped, dtype, count, offset).reshape(shape)

    def spec(self) -> Spec | None:
        """Type of the samples, as far as any is here."""
        try:
            known = json.loads((self.folder / "spec.json").read_text())
            return Spec(DALIDataType(known["dtype"]), int(known["ndim"]), str(known["layout"]))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    # -- writing -------------------------------------------------------------------------------

    def put(self, key: bytes, stamp: Stamp, sample: np.ndarray, spec: Spec) -> None:
        """Keep a sample, as long as there is room."""
        if self._is_full:
            return
        try:
            with self._writing():
                self._put(key, stamp, np.asarray(sample, order="C"), spec)
        except OSError as error:
            self._note_full(error.strerror or str(error))

    def _put(self, key: bytes, stamp: Stamp, sample: np.ndarray, spec: Spec) -> None:
        head = self._head()
        if head is None or not self._is_whole(head):
            head = self._begin_anew()
        if 10 * head.rows > 7 * head.capacity:
            head = self._grow(head, 4 * head.capacity)
        slot, row = self._row(head, key)
        if row is not None and row[1:4] == stamp and self._checked(head, key, stamp, row[4]):
            return  # by another process, in the meantime
        length = -(-sample.nbytes // 8) * 8
        taken = -(-(_EXTENT_BYTES + length) // _ALIGNMENT) * _ALIGNMENT
        limit = self._limit if self._limit is not None else self._room(head.used)
        if head.used + taken > limit:
            self._note_full(f"it has {head.used:,} bytes of {limit:,}")
            return
        if spec != self.spec():
            given = {"dtype": int(spec.dtype), "ndim": spec.ndim, "layout": spec.layout}
            _write_whole(self.folder / "spec.json", json.dumps(given).encode())
        content = memoryview(bytearray(taken))
        flat = np.frombuffer(content, np.uint8)
        flat[_EXTENT_BYTES : _EXTENT_BYTES + sample.nbytes] = sample.reshape(-1).view(np.uint8)
        shape = (*sample.shape, *(0,) * (MOST_DIMENSIONS - sample.ndim))
        fields = (_MAGIC, key, *stamp, length, _checksum(content, 0, length), int(spec.dtype))
        _EXTENT.pack_into(content, 0, *fields, sample.ndim, *shape)
        _write_at(self._file("data", head.data), content, head.used)
        packed = _ROW_CHECKED.pack(key, *stamp, head.used, taken)
        table = self._file("table", head.table)
        _write_at(table, _ROW.pack(*_ROW_CHECKED.unpack(packed), zlib.crc32(packed)), slot * 64)
        dead = head.dead + (row[5] if row is not None else 0)
        rows = head.rows + (row is None)
        self._set_head(head._replace(rows=rows, used=head.used + taken, dead=dead))

    def _note_full(self, why: str) -> None:
        self._is_full = True
        head = self._head()
        warn_at(
            self._line,
            f"The cache at {self._line} takes no more than the "
            f"{0 if head is None else head.rows} samples that it has: {why}. The others are made "
            f"anew in every epoch. `limit_bytes` and `where` ({self.where!r}) say how much may be "
            f"kept and where; the folder is {str(self.folder)!r}.",
            SuspectDataWarning,
        )

    def _room(self, used: int) -> int:
        """The bytes that data may take where the user gave no limit."""
        return max(used + room_on_disk(self.folder), 0)

    # -- files ---------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _writing(self) -> Iterator[None]:
        with self._lock:
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            if "head" in self._files and not os.fstat(self._files["head"]).st_nlink:
                self._forget()  # removed, and may have been made anew
            if "head" not in self._files:
                flags = os.O_RDWR | os.O_CREAT
                self._files["head"] = os.open(self.folder / "head", flags, 0o600)
            file = self._files["head"]
            fcntl.flock(file, fcntl.LOCK_EX)
            try:
                yield
            finally:
                fcntl.flock(file, fcntl.LOCK_UN)

    def _forget(self) -> None:
        _close(self._files)
        self._maps = {}

    def _head(self) -> _Head | None:
        """Read the head; `None` if it is damaged, or there is none."""
        try:
            return _parsed(os.pread(self._file("head"), _HEAD.size, 0))
        except OSError:
            return None

    def _set_head(self, head: _Head) -> None:
        packed = _HEAD.pack(_MAGIC, *head, 0)[:-4]
        _write_at(self._file("head"), packed + struct.pack("<I", zlib.crc32(packed)), 0)

    def _is_whole(self, head: _Head) -> bool:
        """False if a file is missing or too short, or most of the data is of changed files."""
        try:
            data = os.stat(self.folder / f"data-{head.data}").st_size
            table = os.stat(self.folder / f"table-{head.table}").st_size
        except OSError:
            return False
        return (
            data >= head.used
            and table == head.capacity * _ROW.size
            and 2 * head.dead <= head.used
            and (head.rows == 0 or self.spec() is not None)
        )

    def _begin_anew(self) -> _Head:
        for kind in ("data", "table"):
            for path in self.folder.glob(f"{kind}-*"):
                path.unlink(missing_ok=True)
        number = secrets.randbits(40)
        _write_whole(self.folder / f"data-{number}", b"")
        return self._with_table(_Head(number, number, _SMALLEST_TABLE, 0, 0, 0), [])

    def _grow(self, head: _Head, capacity: int) -> _Head:
        old, table = self.folder / f"table-{head.table}", self._file("table", head.table)
        size, content = head.capacity * _ROW.size, b""
        while len(content) < size and (part := os.pread(table, size - len(content), len(content))):
            content += part
        rows = [_ROW.unpack_from(content, at) for at in range(0, len(content), _ROW.size)]
        whole = [row for row in rows if _is_sound(row)]
        grown = head._replace(table=head.table + 1, capacity=capacity, rows=len(whole))
        grown = self._with_table(grown, whole)
        old.unlink(missing_ok=True)
        return grown

    def _with_table(self, head: _Head, rows: list[tuple[Any, ...]]) -> _Head:
        path = self.folder / f"table-{head.table}"
        with open(path, "wb") as file:
            file.truncate(head.capacity * _ROW.size)
        table = self._file("table", head.table)
        for row in rows:
            slot, _ = self._row(head, row[0])
            _write_at(table, _ROW.pack(*row), slot * _ROW.size)
        self._set_head(head)
        return head

    def _row(self, head: _Head, key: bytes) -> tuple[int, tuple[Any, ...] | None]:
        """The slot of a key, and its row if it has one: ``key, *stamp, begin, bytes, crc``."""
        table, capacity = self._file("table", head.table), head.capacity
        slot = first = int.from_bytes(key[:8], "little") % capacity
        while True:
            count = min(_ROWS_AT_ONCE, capacity - slot)
            content = os.pread(table, count * _ROW.size, slot * _ROW.size)
            for k in range(len(content) // _ROW.size):
                row = _ROW.unpack_from(content, k * _ROW.size)
                if not _is_sound(row):
                    return slot + k, None  # empty or damaged
                if row[0] == key:
                    return slot + k, row
            slot = (slot + count) % capacity
            if slot == first or not content:
                return first, None

    def _file(self, kind: str, number: int | None = None) -> int:
        name = kind if number is None else f"{kind}-{number}"
        file = self._files.get(name)
        if file is None:
            with self._lock:
                if name not in self._files:
                    self._files[name] = os.open(self.folder / name, os.O_RDWR)
                file = self._files[name]
        return file

    def _mapped(self, data: int, end: int, size: int) -> mmap.mmap:
        """The file of data mapped at least up to `end`; it has `size` bytes."""
        found = self._maps.get(data)
        if found is None or len(found) < end:
            found = mmap.mmap(self._file("data", data), size, access=mmap.ACCESS_READ)
            self._maps[data] = found
        return found


def _is_sound(row: tuple[Any, ...]) -> bool:
    return bool(row[5] > 0 and row[6] == zlib.crc32(_ROW_CHECKED.pack(*row[:6])))


def _checksum(content: Any, begin: int, length: int) -> int:
    """Of the elements of the extent that begins there."""
    words = np.frombuffer(content, np.uint64, length // 8, begin + _EXTENT_BYTES)
    return int(np.add.reduce(words, dtype=np.uint64))


def _write_at(file: int, content: Any, offset: int) -> None:
    rest = memoryview(content)
    while rest.nbytes:
        done = os.pwrite(file, rest[: 1 << 30], offset)
        rest, offset = rest[done:], offset + done


def _write_whole(path: Path, content: bytes) -> None:
    other = path.with_name(f"{path.name}.{os.getpid()}.{threading.get_ident()}")
    other.write_bytes(content)
    os.replace(other, path)


def _close(files: dict[str, int]) -> None:
    while files:
        os.close(files.popitem()[1])


class Kept(NamedTuple):
    """Contents of one store."""

    folder: Path
    samples: int
    size_bytes: int


def kept(root: Path) -> list[Kept]:
    """The stores in a folder of stores."""
    found = []
    for folder in sorted(root.iterdir()) if root.is_dir() else ():
        if not (folder / "head").is_file():
            continue
        try:
            head = _parsed((folder / "head").read_bytes()[: _HEAD.size])
            size = sum(path.stat().st_blocks * 512 for path in folder.iterdir())
        except OSError:  # removed meanwhile
            continue
        found.append(Kept(folder, 0 if head is None else head.rows, size))
    return found


def _parsed(content: bytes) -> _Head | None:
    """Parse a head; `None` if it is damaged."""
    if len(content) != _HEAD.size:
        return None
    magic, *numbers, crc = _HEAD.unpack(content)
    whole = magic == _MAGIC and crc == zlib.crc32(content[:-4])
    return _Head(*numbers) if whole else None


# -- in memory ---------------------------------------------------------------------------------


def ram_folder() -> Path:
    """Return the folder of stores in memory, of this user: a file system in memory where there is
    one.
    """
    user = os.getuid() if hasattr(os, "getuid") else "all"
    return (ram_cache_root() or Path(tempfile.gettempdir())) / f"headrace-cache-{user}"


def _leave(users: int, folder: Path, process: int) -> None:
    """Give up the use of a store in memory; who is last removes it."""
    if os.getpid() == process:  # not a child that was forked, which has the same open file
        _remove_if_unused(users, folder)
    os.close(users)


def _remove_if_unused(users: int, folder: Path) -> None:
    with contextlib.suppress(OSError):
        fcntl.flock(users, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)


def _remove_unused(root: Path) -> None:
    """Remove stores in memory that processes which were killed have left."""
    if not root.is_dir():
        return
    for folder in root.iterdir():
        with contextlib.suppress(OSError):
            users = os.open(folder / "users", os.O_RDWR)
            _remove_if_unused(users, folder)
            os.close(users)
