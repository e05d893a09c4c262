"""A copy of fetched remote files on a local disk, of bounded size, that processes share.

A file is written whole under another name and renamed, so that half of one is never seen; the bytes
that all take are counted under a lock, and the files that were used longest ago make room.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import struct
import time
import warnings
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from headrace.config import FILE_CACHE_BYTES, FILE_CACHE_CHECK_SECONDS, file_cache_folder
from headrace.errors import SuspectDataWarning
from headrace.operators.support.disk_room import room_on_disk

try:
    import fcntl
except ImportError:  # on Windows: sizes of several processes are not counted together
    fcntl = None  # type: ignore[assignment]

Stamp = tuple[int, int, int]

_HEAD = struct.Struct("<8s3qqI")
_MAGIC = b"HRFILE01"
_FILL = 0.9
"""Share of the limit that is left when room is made."""
_LEFT_BEHIND_SECONDS = 3600


class KeptFiles(NamedTuple):
    """Contents of a cache of files."""

    folder: Path
    number: int
    size_bytes: int


class FileCache:
    """Contents of remote files, or of extents of them, in a folder.

    `folder`: where they are. `limit_bytes`: how much they may take; 0 for what leaves a tenth of
    the disk free.
    """

    def __init__(self, folder: Path, limit_bytes: int = 0) -> None:
        self.folder = folder
        self._limit = limit_bytes
        self._is_full = False
        self._said: dict[str, tuple[float, Stamp]] = {}

    def known_stamp(self, address: str) -> Stamp | None:
        """The stamp that was found last, if it is young enough to be relied on."""
        seconds = FILE_CACHE_CHECK_SECONDS.value()
        found = self._said.get(address)
        return None if found is None or time.monotonic() - found[0] >= seconds else found[1]

    def note_stamp(self, address: str, stamp: Stamp) -> None:
        """Keep what the store has said of a file now."""
        if FILE_CACHE_CHECK_SECONDS.value():
            self._said[address] = time.monotonic(), stamp

    def get(self, place: tuple[str, int, int], stamp: Stamp) -> bytes | None:
        """The content of an extent, if it is here, whole and of this version."""
        path = self._path(place)
        try:
            content = path.read_bytes()
            magic, *said, size, crc = _HEAD.unpack_from(content)
        except (OSError, struct.error):
            return None
        data = content[_HEAD.size :]
        if (magic, tuple(said), size, crc) != (_MAGIC, stamp, len(data), zlib.crc32(data)):
            return None
        with contextlib.suppress(OSError):
            os.utime(path)
        return data

    def put(self, place: tuple[str, int, int], stamp: Stamp, data: bytes) -> None:
        """Keep the content of an extent, if the disk takes it."""
        path = self._path(place)
        head = _HEAD.pack(_MAGIC, *stamp, len(data), zlib.crc32(data))
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            with self._counting() as counter:
                if not self._make_room(counter, len(head) + len(data)):
                    return
                other = path.with_name(f"{path.name}.{os.getpid()}.part")
                try:
                    other.write_bytes(head + data)
                    os.replace(other, path)
                except OSError:
                    other.unlink(missing_ok=True)
                    raise

    def _path(self, place: tuple[str, int, int]) -> Path:
        name = hashlib.blake2b(repr(place).encode(errors="surrogatepass"), digest_size=16)
        digest = name.hexdigest()
        return self.folder / digest[:2] / digest[2:]

    def _make_room(self, counter: int, taken: int) -> bool:
        """Count so many bytes more, and remove files where they would be too many."""
        packed = os.pread(counter, 8, 0)
        total = int.from_bytes(packed, "little") if len(packed) == 8 else self._sizes()
        limit = self._limit or total + room_on_disk(self.folder)
        if limit <= 0:
            self._note_full()
        if taken > limit:
            return False
        if total + taken > limit:
            total = self._remove_oldest(min(int(_FILL * limit), limit - taken))
        os.pwrite(counter, (total + taken).to_bytes(8, "little"), 0)
        return total + taken <= limit

    def _note_full(self) -> None:
        if not self._is_full:
            self._is_full = True
            warnings.warn(
                f"Remote files are not kept in {str(self.folder)!r}: less than a tenth of that "
                "disk is free. They are fetched in every epoch. HEADRACE_FILE_CACHE_BYTES says how "
                "much they may take all the same.",
                SuspectDataWarning,
                stacklevel=2,
            )

    @contextlib.contextmanager
    def _counting(self) -> Iterator[int]:
        counter = os.open(self.folder / "total", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            if fcntl is not None:
                fcntl.flock(counter, fcntl.LOCK_EX)
            yield counter
        finally:
            os.close(counter)  # and with it the lock

    def _sizes(self) -> int:
        return sum(status.st_size for _, status in files_in(self.folder))

    def _remove_oldest(self, most: int) -> int:
        """Remove files until the others take no more than `most` bytes, which are returned."""
        found = list(files_in(self.folder))
        total = sum(status.st_size for _, status in found)
        now = time.time()
        for path, status in sorted(found, key=lambda each: each[1].st_mtime):
            left_behind = path.suffix == ".part" and now - status.st_mtime > _LEFT_BEHIND_SECONDS
            if (total > most and path.suffix != ".part") or left_behind:
                path.unlink(missing_ok=True)
                total -= status.st_size
        return total


def files_in(folder: Path) -> Iterator[tuple[Path, os.stat_result]]:
    """The files of a cache, and what the disk says of them."""
    for group in folder.glob("[0-9a-f][0-9a-f]"):
        with contextlib.suppress(OSError), os.scandir(group) as entries:
            for entry in entries:
                with contextlib.suppress(OSError):
                    yield Path(entry.path), entry.stat()


def kept_files(folder: Path) -> KeptFiles:
    """Count the files of a cache, and their bytes."""
    sizes = [status.st_size for path, status in files_in(folder) if path.suffix != ".part"]
    return KeptFiles(folder, len(sizes), sum(sizes))


def remove_files(folder: Path) -> None:
    """Remove all files of a cache, and nothing else that may be in its folder."""
    for group in folder.glob("[0-9a-f][0-9a-f]"):
        shutil.rmtree(group, ignore_errors=True)
    (folder / "total").unlink(missing_ok=True)


_caches: dict[tuple[Path, int], FileCache] = {}


def file_cache() -> FileCache | None:
    """The cache that the environment names."""
    folder = file_cache_folder()
    if folder is None:
        return None
    key = folder, int(FILE_CACHE_BYTES.value())
    return _caches.setdefault(key, FileCache(*key))
