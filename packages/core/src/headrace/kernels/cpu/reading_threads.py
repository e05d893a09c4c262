"""Extents of local files, read in the thread that asks or by others; see `reading_loop`."""

from __future__ import annotations

import contextlib
import ctypes
import os
import threading
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from headrace.kernels.cpu import reading_loop as loop
from headrace.kernels.cpu.decode.jpeg_scan import ScannedJpegs
from headrace.kernels.cpu.packed_names import PackedNames
from headrace.kernels.cpu.semaphores import semaphores
from headrace.tensors.rows import Rows

_TRIES = 4
"""Files may grow while they are looked at; not for ever."""
_POLL_SECONDS = 2e-3
"""A thread calls others when it has read a file and sees how long the rest will take. It may not
come to that: files may be far away.
"""
_NO_MEMORY = np.empty(0, np.uint8)


_SLASH = ord("/")
_EVERYTHING = np.iinfo(np.int64).max


class OpenFiles:
    """Files with many extents, which stay open as long as this is there, at a bounded number of
    places.

    Attributes
    ----------
    table
        int64: how many places there are, and `reading_loop.KEPT_NUMBERS` of each.
    """

    def __init__(self, files: int) -> None:
        places = min(files, loop.KEPT_FILES)
        self.table = np.zeros(1 + places * loop.KEPT_NUMBERS, np.int64)
        self.table[0] = places
        descriptors = self.table[1:].reshape(-1, loop.KEPT_NUMBERS)[:, loop.KEPT_DESCRIPTOR]
        descriptors[:] = -1
        weakref.finalize(self, _close_all, descriptors).atexit = False


def _close_all(descriptors: np.ndarray) -> None:
    for descriptor in descriptors.tolist():
        if descriptor >= 0:
            with contextlib.suppress(OSError):
                os.close(descriptor)


@dataclass(frozen=True, slots=True)
class FileExtents:
    """Local files, or parts of them, as they are handed to the system.

    `text`: uint8: the names of all files, each with a NUL after it. `begins`: int64: where in
    `text` each begins. `root`: uint8: what is to be put before names that do not begin with a
    slash. `longest`: how long a path may get, in bytes. `files`, `offsets`, `sizes`: int64, one for
    each extent: its file, and its place there in bytes; a size that is negative reaches to the end
    of the file. `None`: extent ``k`` is file ``k``; extents begin where the file does; they all
    reach to its end. `largest`: extents of more bytes are not read.
    """

    text: np.ndarray
    begins: np.ndarray
    root: np.ndarray
    longest: int
    files: np.ndarray | None = None
    offsets: np.ndarray | None = None
    sizes: np.ndarray | None = None
    largest: int = _EVERYTHING
    opened: OpenFiles | None = field(init=False)
    """The files, where they have many extents."""
    job: np.ndarray = field(init=False)
    """A job that is to be completed by `reading_loop.fill_in`."""

    def __post_init__(self) -> None:
        opened = None if self.files is None else OpenFiles(len(self.begins))
        object.__setattr__(self, "opened", opened)
        names = [part.ctypes.data for part in (self.text, self.begins, self.root)]
        places = [
            0 if part is None else part.ctypes.data
            for part in (self.files, self.offsets, self.sizes)
        ]
        job = np.zeros(loop.JOB_NUMBERS, np.int64)
        job[: loop.OPENED] = (*names, len(self.root), self.longest, *places, self.largest)
        if opened is not None:
            job[loop.OPENED] = opened.table.ctypes.data
        object.__setattr__(self, "job", job)

    @classmethod
    def of(cls, names: Sequence[str], root: str, **extents: Any) -> Self | None:
        """Extents of files with these names; `None` if there are others than local ones."""
        try:
            packed = names if isinstance(names, PackedNames) else PackedNames.of([names])
            begin = os.fsencode(root if not root or root.endswith("/") else f"{root}/")
        except UnicodeEncodeError:
            return None
        if not hasattr(os, "preadv") or packed.remote or "://" in root or "\0" in root:
            return None
        if len(packed) != len(names):
            return None  # a name has a NUL in it
        folder = np.frombuffer(begin, np.uint8)
        return cls(packed.text, packed.begins, folder, packed.longest + len(begin), **extents)

    @classmethod
    def joined(cls, parts: Sequence[Self | None]) -> Self | None:
        """The extents of several, one after another; `None` where one is not there, or has another
        limit to what is read.
        """
        known = [part for part in parts if part is not None]
        if len(known) < len(parts) or len({part.largest for part in known}) > 1:
            return None
        named = [part._complete_names() for part in known]
        texts = np.cumsum([0, *[len(text) for text, _ in named]])
        begins = [begin + at for (_, begin), at in zip(named, texts[:-1], strict=True)]
        files = np.cumsum([0, *[len(begin) for begin in begins]])
        plain = all(p.files is None and p.offsets is None and p.sizes is None for p in known)
        places: dict[str, np.ndarray] = {}
        if not plain:
            each = [part._places() for part in known]
            moved = [p[0] + at for p, at in zip(each, files[:-1], strict=True)]
            places = {
                "files": np.concatenate(moved),
                "offsets": np.concatenate([p[1] for p in each]),
                "sizes": np.concatenate([p[2] for p in each]),
            }
        longest = max(part.longest for part in known)
        text, nothing = np.concatenate([text for text, _ in named]), np.empty(0, np.uint8)
        return cls(
            text, np.concatenate(begins), nothing, longest, largest=known[0].largest, **places
        )

    def _complete_names(self) -> tuple[np.ndarray, np.ndarray]:
        """Text and beginnings of names that need no `root`."""
        firsts = self.text[self.begins]
        if not len(self.root) or (firsts == _SLASH).all():
            return self.text, self.begins
        root = self.root.tobytes()
        ends = np.flatnonzero(self.text == 0)
        starts = np.concatenate(([0], ends[:-1] + 1))
        relative = self.text[starts] != _SLASH
        names = self.text.tobytes()
        if relative.all():
            whole = root + names[:-1].replace(b"\0", b"\0" + root) + b"\0"
        else:
            each = zip(names.split(b"\0")[:-1], relative.tolist(), strict=True)
            whole = b"".join([(root if own else b"") + name + b"\0" for name, own in each])
        added = np.concatenate(([0], np.cumsum(relative)[:-1])) * len(root)
        moved = self.begins + added[np.searchsorted(starts, self.begins)]
        return np.frombuffer(whole, np.uint8), moved

    def _places(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Files, offsets and sizes of all extents."""
        given = [p for p in (self.files, self.offsets, self.sizes) if p is not None]
        count = len(given[0]) if given else len(self.begins)
        return (
            np.arange(count) if self.files is None else self.files,
            np.zeros(count, np.int64) if self.offsets is None else self.offsets,
            np.full(count, -1) if self.sizes is None else self.sizes,
        )


class BeingRead:
    """Extents that are being read, one after the other, into memory that they share.

    `numbers`: int64: which of them to read; so many that follow one another are `pieces` of one
    entry. `guess`: how much memory to take where their sizes are not known, in bytes.
    """

    def __init__(
        self,
        threads: ReadingThreads | None,
        extents: FileExtents,
        numbers: np.ndarray,
        empty: Callable[[tuple[int], type], np.ndarray],
        guess: int,
        scans: bool = False,
        pieces: int = 1,
    ) -> None:
        self._scans = scans
        self._threads = threads
        self._extents = extents
        self._numbers = numbers
        self._empty = empty
        known: int = -1 if extents.sizes is None else loop.memory_for(extents.job, numbers, pieces)
        size = guess if known < 0 else known
        self._memory = empty((size,), np.uint8) if size else _NO_MEMORY
        self._job, self._found, self._facts = self._begin(numbers, self._memory, pieces)

    def _begin(
        self, numbers: np.ndarray, memory: np.ndarray, pieces: int = 1
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        count = len(numbers)
        found = np.empty((count, 2), np.int64)
        facts = np.zeros((count if self._scans else 0, 5), np.int64)
        job = self._extents.job.copy()
        loop.fill_in(job, numbers, pieces, found, facts, memory)
        if self._threads is None:
            loop.read_now(job)
        else:
            self._threads.submit(job, (self._extents, numbers, found, facts, memory))
        return job, found, facts

    def stop(self) -> None:
        """Leave out what was not read yet."""
        if self._threads is not None:
            self._threads.stop(self._job)

    def _wait(self) -> None:
        if self._threads is not None:
            self._threads.wait(self._job)

    def wait(self) -> FilesRead:
        """Wait, without the interpreter, until nothing is being read any more."""
        found, facts, memory, numbers = self._found, self._facts, self._memory, self._numbers
        memories = [memory]
        of_memory = np.zeros(len(found), np.int64)
        addresses, sizes = np.empty((2, len(found)), np.int64)
        self._wait()
        counts = loop.sum_up(found, facts, addresses, sizes)
        tries = 0
        while counts[1] and tries < _TRIES:
            tries += 1
            left = np.flatnonzero(found[:, 0] == loop.TOO_LARGE)
            needed = int((-(-sizes[left] // 64) * 64).sum())
            try:
                memory = self._empty((needed,), np.uint8)
            except MemoryError:  # reading them one by one meets it again
                break
            self._job, more, told = self._begin(numbers[left], memory)
            self._wait()
            found[left] = more
            if self._scans:
                facts[left] = told
            of_memory[left] = len(memories)
            memories.append(memory)
            counts = loop.sum_up(found, facts, addresses, sizes)
        unread, _, empty, total, plain = counts
        scanned = None
        if self._scans:
            scanned = ScannedJpegs(addresses.view(np.uint64), sizes.view(np.uint64), facts, plain)
        return FilesRead(memories, of_memory, addresses, sizes, unread, empty, total, scanned)


@dataclass(frozen=True, slots=True)
class FilesRead:
    """Contents of files.

    `memories`: what they lie in: uint8. `of_memory`: for each file, in which of these. `addresses`:
    int64: where each begins; -1 where it could not be read. `sizes`: int64: its length, in bytes.
    `unread`, `empty`: how many could not be read, and how many of the others have no bytes.
    `size_bytes`: of all. `scanned`: what headers tell, where they were looked at; valid where all
    files are read.
    """

    memories: list[np.ndarray]
    of_memory: np.ndarray
    addresses: np.ndarray
    sizes: np.ndarray
    unread: int
    empty: int
    size_bytes: int
    scanned: ScannedJpegs | None

    def pieces(self, count: int) -> list[Rows] | None:
        """The files as columns: the first of each `count`, the second, and so on; `None` where one
        could not be read, or they are not in one memory.
        """
        if len(self.memories) > 1 or self.unread:
            return None
        (memory,) = self.memories
        begins = self.addresses - memory.__array_interface__["data"][0]
        shapes = self.sizes[:, np.newaxis]
        return [Rows.of_memory(memory, begins[k::count], shapes[k::count]) for k in range(count)]

    def rows(self) -> list[np.ndarray | None]:
        """Each file as an array; `None` where it could not be read."""
        bases = [memory.ctypes.data for memory in self.memories]
        return [
            None
            if address < 0
            else self.memories[k][address - bases[k] : address - bases[k] + size]
            for k, address, size in zip(
                self.of_memory.tolist(), self.addresses.tolist(), self.sizes.tolist(), strict=True
            )
        ]


class ReadingThreads:
    """Threads that read files for one owner, who has to `close` them."""

    def __init__(self, count: int, processors: Sequence[tuple[int, ...]] | None = None) -> None:
        self._board = np.zeros(loop.BOARD_NUMBERS, np.int64)
        self._board[loop.THREADS] = count
        semaphores().make(self._board[loop.WAKE :].ctypes.data)
        if ctypes.PyDLL(None).pthread_mutex_init(
            ctypes.c_void_p(self._board[loop.MUTEX :].ctypes.data), None
        ):
            raise RuntimeError("The system makes no mutexes.")
        self._kept: dict[int, object] = {}
        """Arrays that jobs point to, kept until they are done."""
        self.threads = [
            threading.Thread(
                target=_run,
                args=(self._board, self._kept, processors[k] if processors else ()),
                name=f"headrace-files-{k}",
                daemon=True,
            )
            for k in range(count)
        ]
        try:
            for thread in self.threads:
                thread.start()
        except BaseException:
            self.close()
            raise

    def submit(self, job: np.ndarray, keep: object) -> None:
        """Have the files of a job read; `keep` lives until that is done.

        Where there is no more place for jobs, or the threads were closed, none is read.
        """
        address = job.ctypes.data
        semaphores().make(address + 8 * loop.DONE)
        self._kept[address] = (job, keep)
        if not loop.put_up(self._board, address):
            semaphores().post(address + 8 * loop.DONE)

    def stop(self, job: np.ndarray) -> None:
        """Leave out files of a job that were not read yet."""
        loop.stop(self._board, job.ctypes.data)

    def wait(self, job: np.ndarray) -> None:
        """Wait, without the interpreter, until no file of a job is being read any more."""
        address = job.ctypes.data
        done = address + 8 * loop.DONE
        if not semaphores().wait_for(done, _POLL_SECONDS):
            loop.call_all(self._board, address)
            semaphores().wait(done)
        del self._kept[address]

    def close(self) -> None:
        """Stop all jobs and let the threads go, without waiting for them."""
        loop.close(self._board)


def _run(board: np.ndarray, kept: dict[int, object], processors: tuple[int, ...]) -> None:
    """Read until the board is closed; what is read into lives as long as the threads do."""
    if processors:
        with contextlib.suppress(OSError):  # taken away meanwhile
            os.sched_setaffinity(0, processors)
    loop.serve(board)
    del kept
