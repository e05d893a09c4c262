"""Scans of files in processes of their own, so that a library that crashes at one ends no program.

A process is handed the path of a local file, or its bytes. Remote ones are read in the program,
which alone may know how to: the process asks for what it needs of them.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Pipe
from typing import Any

import numpy as np

from headrace._forking import no_fork
from headrace._interpreter import start_interpreter
from headrace.config import WORKERS
from headrace.errors import BadSampleError
from headrace.kernels.cpu.video import scanning
from headrace.kernels.cpu.video.frame_index import FrameIndex
from headrace.kernels.cpu.video.index_store import unpacked
from headrace.kernels.cpu.video.library import pyav
from headrace.kernels.cpu.video.pool import POOL, key_of
from headrace.kernels.cpu.video.scanning import scanned, tells

MOST_AT_ONCE = 4
"""Files that a reader has scanned at once."""
_TRIES = 2
"""A process may end for a reason that has nothing to do with the file, as of a lack of memory."""
_IDLE_SECONDS = 10.0
"""Time that an idle process is kept for the next reader."""


class _LostError(Exception):
    """The process has ended; the text says how."""


class _Process:
    """A process that scans one file after another. The caller is inside `no_fork`."""

    def __init__(self) -> None:
        ours, theirs = Pipe()
        with theirs:
            self._process = start_interpreter(scanning.__name__, theirs.fileno())
        self._ours = ours

    def close(self) -> None:
        """End it."""
        self._ours.close()
        self._process.kill()
        self._process.wait()

    def has_ended(self) -> bool:
        """True if something has ended it."""
        return self._process.poll() is not None

    def forget(self) -> None:
        """Leave it to the process of which this one is a fork."""
        self._ours.close()
        self._process.returncode = 0  # not ours to wait for

    def scan(self, source: Any, sound: bool, orientation: bool) -> FrameIndex:
        """Results and errors of `scanned`."""
        handed: Any = source if isinstance(source, np.ndarray) else None
        if isinstance(source, str):
            handed = os.path.abspath(source)  # the program may have gone to another folder since
        files: list[Any] = []
        try:
            self._ours.send((handed, sound, orientation))
            while True:
                name, *content = self._ours.recv()
                if name in ("found", "failed"):
                    _raise_failure(files)
                if name == "found":
                    return unpacked(content[0])
                if name == "failed":
                    raise content[0]
                self._ours.send(_called(source, files, name, content))
        except (EOFError, OSError) as error:
            code = self._process.wait()
            with suppress(ValueError):
                raise _LostError(signal.Signals(-code).name) from error
            raise _LostError(f"exit status {code}") from error
        finally:
            for file in files:
                file.close()


def _called(source: Any, files: list[Any], name: str, content: list[Any]) -> tuple[str, Any]:
    """Do what the process asks for with a file."""
    try:
        if name in ("open", "outline"):
            file = getattr(source, name)()
            if file is None:
                return "done", None
            files.append(file)
            return "done", len(files) - 1
        number, *args = content
        return "done", getattr(files[number], name)(*args)
    except Exception as error:  # each kind of file system raises its own
        return "failed", str(error)


def _raise_failure(files: list[Any]) -> None:
    """Raise the error that reading a file ended with, which is not where the file ends."""
    for file in files:
        failure = getattr(file, "failure", None)
        if failure is not None:
            raise BadSampleError(f"It cannot be read: {failure!r}.") from failure


class _Processes:
    """The processes of this program that scan, which all readers share.

    One that is idle is kept for a while: a program that builds pipelines has a few to scan for
    each, and a new interpreter takes longer than most scans.
    """

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._changed = threading.Condition()
        """Guards all else."""
        self._idle: list[tuple[float, _Process]] = []
        """Idle ones and since when, the one used last at the end."""
        self._alive: set[_Process] = set()
        self._ender: threading.Thread | None = None
        """Thread that ends those that were idle for long; there while some are idle."""

    @contextmanager
    def lent(self, *, anew: bool = False) -> Iterator[_Process | None]:
        """A process for this thread, with `anew` a new one; `None` where none can be started."""
        process = (None if anew else self._taken()) or self._started()
        try:
            yield process
        except BadSampleError:
            self._give_back(process)
            raise
        except BaseException:
            self._end(process)
            raise
        self._give_back(process)

    def close(self) -> None:
        """End all that are idle."""
        with self._changed:
            idle, self._idle = self._idle, []
            self._changed.notify_all()
        for _, process in idle:
            self._end(process)

    def _taken(self) -> _Process | None:
        """An idle one."""
        while True:
            with self._changed:
                if not self._idle:
                    return None
                _, process = self._idle.pop()
            if not process.has_ended():
                return process
            self._end(process)

    def _started(self) -> _Process | None:
        """A new one, as far as the system has one."""
        if not sys.executable or getattr(sys, "frozen", False):
            return None
        with no_fork:
            try:
                process = _Process()
            except OSError:
                return None
            self._alive.add(process)
        return process

    def _give_back(self, process: _Process | None) -> None:
        if process is None:
            return
        with self._changed:
            keeps = len(self._idle) < MOST_AT_ONCE and self._has_ender()
            if keeps:
                self._idle.append((time.monotonic(), process))
        if not keeps:
            self._end(process)

    def _has_ender(self) -> bool:
        """Start the thread that ends idle ones, if there is none and the system has room for it.

        The caller holds the lock.
        """
        if self._ender is None:
            ender = threading.Thread(target=self._end_idle, name="headrace-scanners", daemon=True)
            try:
                ender.start()
            except RuntimeError:
                return False
            self._ender = ender
        return True

    def _end(self, process: _Process | None) -> None:
        if process is not None:
            self._alive.discard(process)
            process.close()

    def _end_idle(self) -> None:
        """End processes as they have been idle for long enough, until there is none."""
        while True:
            with self._changed:
                if not self._idle:
                    self._ender = None
                    return
                since, process = self._idle[0]
                left = since + _IDLE_SECONDS - time.monotonic()
                if left > 0:
                    self._changed.wait(left)
                    continue
                del self._idle[0]
            self._end(process)

    def forget(self) -> None:
        """Leave all to the process of which this one is a fork."""
        for process in self._alive:
            process.forget()
        self._begin()


PROCESSES = _Processes()
atexit.register(PROCESSES.close)
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=PROCESSES.forget)


def index_of(source: Any, *, sound: bool, orientation: bool) -> FrameIndex:
    """The index of a file, and in it what is wanted of its audio and its turn.

    Of one that is not known yet, another process makes it. Raises `BadSampleError` if it is no
    video, or the library crashes at it.
    """
    key = None if isinstance(source, np.ndarray) else key_of(source)
    found = None if key is None else POOL.known(key)
    if found is not None and tells(found, sound, orientation):
        return found
    pyav()  # the error if there is none
    if WORKERS.value() == "threads":
        found = scanned(source, found, sound=sound, orientation=orientation)
    else:
        found = _scanned_apart(source, sound, orientation)
    if key is not None:
        POOL.keep(key, source, found)
    return found


def _scanned_apart(source: Any, sound: bool, orientation: bool) -> FrameIndex:
    how = ""
    for _ in range(_TRIES):
        try:
            # What one scanned before may have damaged it.
            with PROCESSES.lent(anew=bool(how)) as process:
                if process is None:
                    return scanned(source, None, sound=sound, orientation=orientation)
                return process.scan(source, sound, orientation)
        except _LostError as error:
            how = str(error)
    raise BadSampleError(
        f"It cannot be scanned: the process that scans it ended ({how}) each time, since a "
        "library that it calls has crashed, or memory was short."
    )
