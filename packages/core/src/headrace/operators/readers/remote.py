"""Contents of remote files, from anything fsspec knows: several at once, again, and ahead."""

from __future__ import annotations

import hashlib
import random
import struct
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import Any

from headrace.config import REMOTE_RETRIES
from headrace.errors import ArgumentValueError, HeadraceError, MissingDependencyError
from headrace.operators.readers.file_cache import FileCache, Stamp, file_cache

ByteRange = tuple[str, int, int]
"""An address, an offset, and a size; -1 for all that follows."""

_LASTING = (
    FileNotFoundError,
    IsADirectoryError,
    NotADirectoryError,
    PermissionError,
    NotImplementedError,
    TypeError,
    ValueError,
    HeadraceError,
)
"""Errors that another try would meet again."""
_FIRST_WAIT_SECONDS, _LONGEST_WAIT_SECONDS = 0.1, 10.0
_SLICE = 8
"""Files that one thread asks for at once."""
_THREADS = 32
_FIRST_WINDOW, _LARGEST_WINDOW = 32, 4096
_MOST_BYTES = 256 << 20
"""Memory for what is read ahead of one reader."""
_SHORT_SECONDS = 1e-3
_GAIN = 1.05
"""Rise of the rate that tells that a larger window was worth it."""

wait = time.sleep


def file_system(address: str) -> tuple[Any, str]:
    """The fsspec file system of `address` and the path within it."""
    try:
        import fsspec

        found: tuple[Any, str] = fsspec.core.url_to_fs(address)
    except ImportError as error:
        raise MissingDependencyError(
            f"Reading {address!r} needs fsspec and its library for "
            f'"{address.partition("://")[0]}": {error}.'
        ) from error
    except ValueError as error:
        raise ArgumentValueError(
            f"The address {address!r} is of no known kind: {error}."
        ) from error
    return found


def fetch(places: Sequence[ByteRange]) -> list[bytes | Exception]:
    """The contents of extents of remote files, asked for at once; or the errors of those that
    cannot be had, after tries with growing waits between them.
    """
    cache = file_cache()
    if cache is None:
        return _fetch(places)
    stamps = _stamps_for(cache, [address for address, _, _ in places])
    found: list[Any] = [
        None if stamp is None else cache.get(place, stamp)
        for place, stamp in zip(places, stamps, strict=True)
    ]
    missing = [k for k, content in enumerate(found) if content is None]
    fetched = _fetch([places[k] for k in missing]) if missing else []
    for k, content in zip(missing, fetched, strict=True):
        found[k], stamp = content, stamps[k]
        if stamp is not None and isinstance(content, bytes):
            cache.put(places[k], stamp, content)
    return found


def _stamps_for(cache: FileCache, addresses: Sequence[str]) -> list[Stamp | None]:
    known = {address: cache.known_stamp(address) for address in addresses}
    unknown = [address for address, stamp in known.items() if stamp is None]
    for address, stamp in zip(unknown, remote_stamps(unknown), strict=True):
        known[address] = stamp
        if stamp is not None:
            cache.note_stamp(address, stamp)
    return [known[address] for address in addresses]


def _fetch(places: Sequence[ByteRange]) -> list[bytes | Exception]:
    found = _asked_for(places)
    seconds = _FIRST_WAIT_SECONDS
    for _ in range(int(REMOTE_RETRIES.value())):
        failed = [k for k, content in enumerate(found) if is_passing(content)]
        if not failed:
            break
        wait(seconds * random.uniform(0.5, 1.5))  # so that many do not come back at once
        seconds = min(4 * seconds, _LONGEST_WAIT_SECONDS)
        for k, content in zip(failed, _asked_for([places[k] for k in failed]), strict=True):
            found[k] = content
    return found


def is_passing(content: Any) -> bool:
    """Return True for an error that another try may not meet."""
    return isinstance(content, Exception) and not isinstance(content, _LASTING)


def _asked_for(places: Sequence[ByteRange]) -> list[Any]:
    """Ask once for extents, those of one file system together."""
    groups: dict[int, tuple[Any, list[tuple[int, str]]]] = {}
    found: list[Any] = [None] * len(places)
    for k, (address, _, _) in enumerate(places):
        system, path = file_system(address)
        groups.setdefault(id(system), (system, []))[1].append((k, path))
    for system, paths in groups.values():
        extents = [places[k][1:] for k, _ in paths]
        begins = [offset or None for offset, _ in extents]
        ends = [None if size < 0 else offset + size for offset, size in extents]
        try:
            contents = system.cat_ranges([p for _, p in paths], begins, ends, on_error="return")
        except Exception as error:  # each kind of file system raises its own
            contents = [error] * len(paths)
        for (k, _), content in zip(paths, contents, strict=True):
            found[k] = content
    return found


def remote_stamps(addresses: Sequence[str]) -> list[Stamp | None]:
    """Tell versions of remote files apart by three numbers, of what their stores say of them: size,
    time, checksum. `None` for those that nothing is said of.
    """
    found: dict[str, Any] = {}
    groups: dict[int, tuple[Any, dict[str, str]]] = {}
    for address in addresses:
        system, path = file_system(address)
        groups.setdefault(id(system), (system, {}))[1][address] = path
    for system, paths in groups.values():
        found.update(zip(paths, _infos(system, list(paths.values())), strict=True))
    return [_stamp(found[address]) for address in addresses]


def _infos(system: Any, paths: list[str]) -> list[Any]:
    """Facts that a file system knows of files; of an asynchronous one, asked for at once."""
    if not getattr(system, "async_impl", False):
        return [_info(system, path) for path in paths]
    import asyncio

    from fsspec.asyn import sync

    async def ask() -> list[Any]:
        asked = [system._info(path) for path in paths]
        return list(await asyncio.gather(*asked, return_exceptions=True))

    return list(sync(system.loop, ask))


def _info(system: Any, path: str) -> Any:
    try:
        return system.info(path)
    except Exception as error:  # each kind of file system raises its own
        return error


def _stamp(info: Any) -> Stamp | None:
    if isinstance(info, BaseException):
        return None
    said = {k: v for k, v in info.items() if k not in ("name", "Key", "type", "StorageClass")}
    digest = hashlib.blake2b(repr(sorted(said.items())).encode(), digest_size=16).digest()
    first, second = struct.unpack("<2q", digest)
    return int(info.get("size") or 0), first, second


class ReadAhead:
    """Reads remote entries before they are asked for, as many as the store's latency calls for.

    The window is doubled when a thread had to wait for an entry that was being read, as long as
    that makes more of them come in a second; what a second brings is then the store's bandwidth.

    `place_of`: the extent of a piece, by its number.
    """

    def __init__(self, place_of: Callable[[int], ByteRange]) -> None:
        self._place_of = place_of
        self._lock = threading.Lock()
        self._coming: dict[int, tuple[Future[list[Any]], int]] = {}
        """By number, what is read with others, and its place among them; oldest first."""
        self._threads: ThreadPoolExecutor | None = None
        self.window = _FIRST_WINDOW
        """Number of pieces that are read ahead."""
        self._mean_bytes = 0.0
        self._taken, self._began = 0, time.perf_counter()
        self._rate = 0.0

    def expect(self, numbers: Iterable[int]) -> None:
        """Begin to read pieces, in this order, as far as the window goes."""
        with self._lock:
            wanted = list(dict.fromkeys(numbers))
            new = [n for n in wanted if n not in self._coming]
            room = max(self.window - len(self._coming), 0)
            stale = [n for n in self._coming if n not in set(wanted)] if new and not room else []
            for number in stale[: len(new)]:  # of an order that has been left
                if self._coming[number][0].done():
                    del self._coming[number]
                    room += 1
            new = new[:room]
            if not new:
                return
            if self._threads is None:
                self._threads = ThreadPoolExecutor(_THREADS, "headrace-remote")
                end = partial(self._threads.shutdown, wait=False, cancel_futures=True)
                weakref.finalize(self, end)
            for k in range(0, len(new), _SLICE):
                part = new[k : k + _SLICE]
                future = self._threads.submit(fetch, [self._place_of(n) for n in part])
                self._coming.update((n, (future, at)) for at, n in enumerate(part))

    def take(self, numbers: Sequence[int]) -> list[bytes | Exception]:
        """The contents of pieces; what was not expected is read now."""
        with self._lock:
            coming = [self._coming.pop(n, None) for n in numbers]
        began = time.perf_counter()
        late = [n for n, known in zip(numbers, coming, strict=True) if known is None]
        found = dict(zip(late, fetch([self._place_of(n) for n in late]), strict=True))
        contents: list[Any] = [
            found[n] if known is None else known[0].result()[known[1]]
            for n, known in zip(numbers, coming, strict=True)
        ]
        waited = time.perf_counter() - began > _SHORT_SECONDS
        sizes = [len(c) for c in contents if isinstance(c, bytes)]
        with self._lock:
            self._taken += len(numbers)
            for size in sizes:
                self._mean_bytes += (size - self._mean_bytes) / 16
            if waited and self._taken >= 2 * self.window:
                self._widen()
        return contents

    def _widen(self) -> None:
        """Read further ahead, if the last time that was done was worth it."""
        now = time.perf_counter()
        rate = self._taken / max(now - self._began, 1e-9)
        if rate > _GAIN * self._rate:
            most = min(_LARGEST_WINDOW, int(_MOST_BYTES / max(self._mean_bytes, 1)))
            self.window = max(min(2 * self.window, most), _SLICE)
            self._rate = rate
        self._taken, self._began = 0, now
