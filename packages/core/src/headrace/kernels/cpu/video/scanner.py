"""Scans of files in processes of their own, so that a library that crashes at one ends no program.

A process is handed the path of a local file, or its bytes. Remote ones are read in the program,
which alone may know how to: the process asks for what it needs of them.
"""

from __future__ import annotations

import io
import os
import queue
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing.connection import Connection, Pipe
from typing import Any

import numpy as np

from headrace._forking import no_fork
from headrace._interpreter import start_interpreter
from headrace.config import WORKERS
from headrace.errors import BadSampleError
from headrace.kernels.cpu.video.frame_index import FrameIndex
from headrace.kernels.cpu.video.index_store import packed, unpacked
from headrace.kernels.cpu.video.library import pyav
from headrace.kernels.cpu.video.pool import POOL, key_of, open_video
from headrace.kernels.cpu.video.video import outlined

_TRIES = 2
"""A process may end for a reason that has nothing to do with the file, as of a lack of memory."""


class _LostError(Exception):
    """The process has ended; the text says how."""


class _Process:
    """A process that scans one file after another."""

    def __init__(self) -> None:
        ours, theirs = Pipe()
        with theirs, no_fork:
            self._process = start_interpreter(__name__, theirs.fileno())
        self._ours = ours

    def close(self) -> None:
        """End it."""
        self._ours.close()
        self._process.kill()
        self._process.wait()

    def scan(self, source: Any, sound: bool, orientation: bool) -> FrameIndex:
        """Results and errors of `scanned`."""
        handed = source if isinstance(source, (str, np.ndarray)) else None
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


def _started() -> _Process | None:
    """A new process, as far as the system has one."""
    if not sys.executable or getattr(sys, "frozen", False):
        return None
    try:
        return _Process()
    except OSError:
        return None


class Scanner:
    """Scans of files that are not known yet, each of which is done by an idle process.

    `most`: how many processes there may be.
    """

    def __init__(self, most: int) -> None:
        self._idle: queue.SimpleQueue[_Process | None] = queue.SimpleQueue()
        for _ in range(most):
            self._idle.put(None)
        self._most = most

    def close(self) -> None:
        """End the processes. No thread is scanning."""
        for _ in range(self._most):
            process = self._idle.get()
            if process is not None:
                process.close()

    def index(self, source: Any, *, sound: bool, orientation: bool) -> FrameIndex:
        """The index of a file, and in it what is wanted of its audio and its turn.

        Raises `BadSampleError` if it is no video, or the library crashes at it.
        """
        key = None if isinstance(source, np.ndarray) else key_of(source)
        found = None if key is None else POOL.known(key)
        if found is not None and _tells(found, sound, orientation):
            return found
        pyav()  # the error if there is none
        if WORKERS.value() == "threads":
            found = scanned(source, found, sound=sound, orientation=orientation)
        else:
            found = self._apart(source, sound, orientation)
        if key is not None:
            POOL.keep(key, source, found)
        return found

    def _apart(self, source: Any, sound: bool, orientation: bool) -> FrameIndex:
        how = ""
        for _ in range(_TRIES):
            try:
                with self._process() as process:
                    if process is None:
                        return scanned(source, None, sound=sound, orientation=orientation)
                    return process.scan(source, sound, orientation)
            except _LostError as error:
                how = str(error)
        raise BadSampleError(
            f"It cannot be scanned: the process that scans it ended ({how}) each time, since a "
            "library that it calls has crashed, or memory was short."
        )

    @contextmanager
    def _process(self) -> Iterator[_Process | None]:
        """An idle process; `None` where none can be started."""
        process = self._idle.get()
        kept = None
        try:
            process = process or _started()
            yield process
            kept = process
        except BadSampleError:
            kept = process
            raise
        finally:
            if process is not kept and process is not None:
                process.close()
            self._idle.put(kept)


def _tells(index: FrameIndex, sound: bool, orientation: bool) -> bool:
    """True if an index has what is wanted."""
    return not ((sound and index.sound is None) or (orientation and index.orientation is None))


def scanned(source: Any, index: FrameIndex | None, *, sound: bool, orientation: bool) -> FrameIndex:
    """The index of a file, which may be known but for its audio or its turn."""
    if index is None and not isinstance(source, (str, np.ndarray)):
        index = outlined(source)
    if index is not None and _tells(index, sound, orientation):
        return index
    video = open_video(source, index)
    try:
        if sound:
            _ = video.sound
        if orientation:
            _ = video.orientation
        found: FrameIndex = video.index
    finally:
        video.close()
    return found


class _AskedSource:
    """A file that the program reads for this process."""

    key = ("", 0, 0)

    def __init__(self, channel: Connection) -> None:
        self._channel = channel

    def open(self) -> _AskedFile:
        """Open it anew."""
        return _AskedFile(self._channel, _asked(self._channel, "open"))

    def outline(self) -> _AskedFile | None:
        """The same without the packets' contents."""
        number = _asked(self._channel, "outline")
        return None if number is None else _AskedFile(self._channel, number)


class _AskedFile(io.RawIOBase):
    """An open file of the program."""

    def __init__(self, channel: Connection, number: int) -> None:
        self._channel, self._number = channel, number

    def readable(self) -> bool:
        """True."""
        return True

    def seekable(self) -> bool:
        """True."""
        return True

    def read(self, size: int = -1) -> bytes:
        """Up to so many bytes."""
        found: bytes = _asked(self._channel, "read", self._number, size)
        return found

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Go to a position."""
        return int(_asked(self._channel, "seek", self._number, offset, whence))

    def tell(self) -> int:
        """Position."""
        return int(_asked(self._channel, "tell", self._number))


def _asked(channel: Connection, *request: Any) -> Any:
    """Have the program do something with a file."""
    channel.send(request)
    how, found = channel.recv()
    if how == "failed":
        raise OSError(found)
    return found


def main(file: int) -> None:
    """Scan files until the program closes its end of the connection `file`."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the program decides what becomes of a Ctrl-C
    with Connection(file) as channel:
        while True:
            try:
                handed, sound, orientation = channel.recv()
            except (EOFError, OSError):
                os._exit(0)
            source = _AskedSource(channel) if handed is None else handed
            try:
                index = scanned(source, None, sound=sound, orientation=orientation)
                answer: tuple[str, Any] = ("found", packed(index))
            except BadSampleError as error:
                answer = ("failed", BadSampleError(str(error)))
            except Exception as error:
                answer = ("failed", RuntimeError(f"{type(error).__name__}: {error}"))
                sys.excepthook(*sys.exc_info())
            channel.send(answer)
