"""Indexes of videos, kept on disk from run to run: a small data base in the cache folder.

Whatever is wrong with it (a full disk, a damaged file, another process that holds it for long), the
video is scanned again.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import struct
import threading
import time
import zlib
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from pathlib import Path

import numpy as np

from headrace._version import __version__
from headrace.config import cache_folder
from headrace.kernels.cpu.video.frame_index import FrameIndex, Packets
from headrace.kernels.cpu.video.library import pyav
from headrace.kernels.cpu.video.sound import SoundIndex

KIND = "videos"
"""Name of the folder."""
LIMIT_BYTES = 1 << 30
"""Of the data base; what was used longest ago makes room."""
_YOUNG_SECONDS = 0.05
"""Files that changed so shortly before may change once more and look the same."""
_DAY_SECONDS = 86400
_WAIT_SECONDS = 2.0
_HEAD = struct.Struct("<6qd6q")
_TABLE = """create table if not exists videos
(path text, size integer, changed integer, made_by text, used real, content blob,
primary key (path, size, changed, made_by)) without rowid"""

Key = tuple[str, int, int]
"""A path or address, the size, and when the file changed, or what else tells its versions apart."""


class _Connection(sqlite3.Connection):
    """One that is closed with its thread, which Python 3.13 and later ask for."""

    def __del__(self) -> None:
        with contextlib.suppress(sqlite3.Error):
            self.close()


class IndexStore:
    """Indexes in a file; any number of threads and processes use it at once."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._local = threading.local()

    def get(self, key: Key) -> FrameIndex | None:
        """The index that was kept of this version of a file."""

        def find(connection: sqlite3.Connection) -> FrameIndex | None:
            where = "where path=? and size=? and changed=? and made_by=?"
            values = (*key, _maker())
            row = connection.execute(f"select content, used from videos {where}", values).fetchone()
            if row is None:
                return None
            index = unpacked(row[0])
            if row[1] < time.time() - _DAY_SECONDS:
                with connection:
                    connection.execute(f"update videos set used=? {where}", (time.time(), *values))
            return index

        return self._attempt(find)

    def put(self, key: Key, index: FrameIndex) -> None:
        """Keep what was found in a file, in place of what was found in earlier versions of it."""

        def keep(connection: sqlite3.Connection) -> None:
            values = (*key, _maker(), time.time(), packed(index))
            with connection:
                connection.execute("delete from videos where path=?", (key[0],))
                connection.execute("insert into videos values (?, ?, ?, ?, ?, ?)", values)
                self._make_room(connection)

        self._attempt(keep)

    def _make_room(self, connection: sqlite3.Connection) -> None:
        (pages,), (bytes_each,), (free,) = (
            connection.execute(f"pragma {name}").fetchone()
            for name in ("page_count", "page_size", "freelist_count")
        )
        if (pages - free) * bytes_each > LIMIT_BYTES:
            connection.execute(
                "delete from videos where used < (select used from videos order by used limit 1 "
                "offset (select count(*) / 4 from videos))"
            )

    def _attempt(
        self, function: Callable[[sqlite3.Connection], FrameIndex | None]
    ) -> FrameIndex | None:
        """The result of `function` of this thread's connection; `None` if anything goes wrong."""
        try:
            found = getattr(self._local, "connection", None)
            if found is None or self._local.pid != os.getpid():
                self._file.parent.mkdir(parents=True, exist_ok=True)
                # The garbage collector may close it in any thread; no other uses it.
                found = sqlite3.connect(
                    self._file,
                    timeout=_WAIT_SECONDS,
                    check_same_thread=False,
                    factory=_Connection,
                )
                self._local.connection, self._local.pid = found, os.getpid()
                found.execute("pragma synchronous=off")
                found.execute(_TABLE)
            return function(found)
        except sqlite3.DatabaseError as error:
            self._drop()
            if not isinstance(error, sqlite3.OperationalError):  # it is no data base any more
                with contextlib.suppress(OSError):
                    self._file.unlink()
        except (OSError, ValueError, struct.error, zlib.error):
            self._drop()
        return None

    def _drop(self) -> None:
        found = self._local.__dict__.pop("connection", None)
        if found is not None:
            with contextlib.suppress(sqlite3.Error):
                found.close()


@cache
def _store_in(folder: Path) -> IndexStore:
    return IndexStore(folder / "indexes.sqlite")


def store() -> IndexStore | None:
    """The store; `None` if the user has no folder for caches."""
    folder = cache_folder(KIND)
    return None if folder is None else _store_in(folder)


def is_settled(key: Key) -> bool:
    """Return True if a file has not just been written."""
    return key[2] < time.time_ns() - int(_YOUNG_SECONDS * 1e9)


@cache
def _maker() -> str:
    return f"{__version__} {pyav().library_versions['libavformat']}"


def packed(index: FrameIndex) -> bytes:
    """An index as bytes."""
    packets, sound = index.packets, index.sound
    places = [] if sound is None or sound.places is None else [*sound.places.items()]
    base = index.time_base
    head = _HEAD.pack(
        *(len(packets), len(index.order), len(places), index.missing, index.height, index.width),
        *(index.rate, index.orientation or 0, base.numerator, base.denominator, int(index.exact)),
        *((0, 0) if sound is None else (sound.rate, sound.channels)),
    )
    columns = [packets.pts, packets.dts, packets.sizes, index.order]
    numbers = [np.diff(column, prepend=np.int64(0)) for column in columns]
    numbers.append(np.array(places, np.int64).reshape(-1))
    flags = np.concatenate([packets.keys, packets.shown]).view(np.uint8)
    body = np.concatenate(numbers).tobytes() + flags.tobytes()
    has_places = bool(sound is not None and sound.places is not None)
    return zlib.compress(head + bytes([has_places]) + body, 1)


def unpacked(content: bytes) -> FrameIndex:
    """The index that `packed` made bytes of."""
    data = zlib.decompress(content)
    count, frames, heard, missing, height, width, rate, turn, up, down, exact, hz, channels = (
        _HEAD.unpack_from(data)
    )
    at = _HEAD.size + 1
    lengths = [count] * 3 + [frames, 2 * heard]
    numbers = np.frombuffer(data, np.int64, sum(lengths), at)
    *columns, places = np.split(numbers, np.cumsum(lengths)[:-1])
    pts, dts, sizes, order = (np.cumsum(column) for column in columns)
    flags = np.frombuffer(data, bool, 2 * count, at + numbers.nbytes)
    packets = Packets(flags[:count], flags[count:], pts, dts, sizes)
    index = FrameIndex(packets, order, Fraction(up, down), rate, missing)
    index.height, index.width, index.exact = height, width, bool(exact)
    index.orientation = turn or None
    if hz:
        pairs = zip(places[::2].tolist(), places[1::2].tolist(), strict=True)
        known: dict[int, int] | None = dict(pairs) if data[_HEAD.size] else None
        index.sound = SoundIndex(hz, channels, known)
    return index
