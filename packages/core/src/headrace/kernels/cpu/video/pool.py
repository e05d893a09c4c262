"""Videos that are kept open from one sequence to the next, and what was found in files."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from headrace.errors import BadSampleError
from headrace.kernels.cpu.video.animation import HEAD_BYTES, AnimatedImage, is_animated_webp
from headrace.kernels.cpu.video.frame_index import FrameIndex
from headrace.kernels.cpu.video.index_store import Key, is_settled, store
from headrace.kernels.cpu.video.kept_frames import LIMIT_BYTES
from headrace.kernels.cpu.video.video import FileSource, Video, outlined

_MOST_OPEN = 16
_MOST_INDEXED = 100_000

Source = str | np.ndarray | FileSource
"""The path of a local file, the bytes of a video, or a file to be opened."""


class VideoPool:
    """Opened videos of files, of which each is used by one thread at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[tuple[Key, Video]] = []
        self._indices: OrderedDict[Key, FrameIndex] = OrderedDict()

    @contextmanager
    def video(
        self, source: str | FileSource, number: int = 0, *, keeps: bool = False
    ) -> Iterator[Video]:
        """A video that is open, of those the one that frame `number` is nearest to.

        `keeps`: whether it keeps frames, for sequences that overlap.
        """
        key = key_of(source)
        with self._lock:
            same = [k for k, (its, _) in enumerate(self._idle) if its == key]
            ahead = [k for k in same if self._idle[k][1].is_ahead(number)]
            chosen = (ahead or same)[-1:]
            found = self._idle.pop(chosen[0])[1] if chosen else None
        if found is None:
            known = self._known(key, source)
            found = open_video(source, known)
            if known is None:
                self.keep(key, source, found.index)
        found.keeps = keeps
        before = found.index.sound, found.index.orientation
        try:
            yield found
        except BaseException:
            found.close()
            raise
        if (found.index.sound, found.index.orientation) != before:
            self.keep(key, source, found.index)
        closed = []
        with self._lock:
            self._idle.append((key, found))
            while len(self._idle) > _MOST_OPEN:
                closed.append(self._idle.pop(0)[1])
            held = 0
            for _, video in reversed(self._idle):
                held += video.kept.nbytes
                if held > LIMIT_BYTES and video is not found:
                    video.kept.clear()
        for video in closed:
            video.close()

    def index(self, source: str | FileSource) -> FrameIndex:
        """The index of a file, which is not opened where that is known."""
        found = self._known(key_of(source), source)
        if found is None:
            with self.video(source) as video:
                found = video.index
        return found

    def _known(self, key: Key, source: str | FileSource) -> FrameIndex | None:
        """The index as far as it is in memory, on disk, or told by the file in one place."""
        found = self.known(key)
        if found is None and not isinstance(source, str):
            found = outlined(source)
            if found is not None:
                self.keep(key, source, found)
        return found

    def known(self, key: Key) -> FrameIndex | None:
        """The index as far as it is in memory or on disk."""
        with self._lock:
            found = self._indices.get(key)
        kept = None if found is not None else store()
        if kept is not None:
            found = kept.get(key)
            if found is not None:
                self._note(key, found)
        return found

    def keep(self, key: Key, source: str | FileSource, index: FrameIndex) -> None:
        """Note an index, also for later runs."""
        self._note(key, index)
        kept = store()
        if kept is not None and (not isinstance(source, str) or is_settled(key)):
            kept.put(key, index)

    def _note(self, key: Key, index: FrameIndex) -> None:
        with self._lock:
            self._indices[key] = index
            while len(self._indices) > _MOST_INDEXED:
                self._indices.popitem(last=False)

    def clear(self) -> None:
        """Forget all: after a fork, what is open shares its place in the file with the parent."""
        self.__init__()  # type: ignore[misc]


def key_of(source: str | FileSource) -> Key:
    """Name, size and time of change of a file, which tell its versions apart."""
    if not isinstance(source, str):
        return source.key
    try:
        found = os.stat(source)
    except (OSError, ValueError) as error:
        why = getattr(error, "strerror", None) or error
        raise BadSampleError(f"The video {source!r} cannot be opened: {why}.") from error
    return os.path.abspath(source), found.st_size, found.st_mtime_ns


def open_video(source: Source, index: FrameIndex | None = None) -> Any:
    """A `Video`, or what has its methods, of a file whose `index` may be known."""
    if isinstance(source, np.ndarray):
        if is_animated_webp(source[:HEAD_BYTES].tobytes()):
            return AnimatedImage(source.tobytes(), index)
    elif isinstance(source, str) and source.lower().endswith(".webp"):
        try:
            with open(source, "rb") as file:
                head = file.read(HEAD_BYTES)
                if is_animated_webp(head):
                    return AnimatedImage(head + file.read(), index)
        except OSError as error:
            raise BadSampleError(f"The video {source!r} cannot be read: {error}.") from error
    return Video(source, index)


POOL = VideoPool()
os.register_at_fork(after_in_child=POOL.clear)


@contextmanager
def opened(
    source: Source, number: int = 0, index: FrameIndex | None = None, *, keeps: bool = False
) -> Iterator[Video]:
    """A video of the pool, or that of bytes, whose `index` may be known."""
    if not isinstance(source, np.ndarray):
        with POOL.video(source, number, keeps=keeps) as video:
            yield video
        return
    video = open_video(source, index)
    try:
        yield video
    finally:
        video.close()
