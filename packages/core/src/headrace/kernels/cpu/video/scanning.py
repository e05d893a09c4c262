"""Scans of files, and what does them one after the other in a process of its own."""

from __future__ import annotations

import io
import os
import signal
import sys
from multiprocessing.connection import Connection
from typing import Any

import numpy as np

from headrace.errors import BadSampleError
from headrace.kernels.cpu.video.frame_index import FrameIndex
from headrace.kernels.cpu.video.index_store import packed
from headrace.kernels.cpu.video.pool import open_video
from headrace.kernels.cpu.video.video import outlined


def tells(index: FrameIndex, sound: bool, orientation: bool) -> bool:
    """True if an index has what is wanted."""
    return not ((sound and index.sound is None) or (orientation and index.orientation is None))


def scanned(source: Any, index: FrameIndex | None, *, sound: bool, orientation: bool) -> FrameIndex:
    """The index of a file, which may be known but for its audio or its turn."""
    if index is None and not isinstance(source, (str, np.ndarray)):
        index = outlined(source)
    if index is not None and tells(index, sound, orientation):
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
