"""Videos that are kept open from one sequence to the next, and what was found in files."""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np

from headrace.errors import BadSampleError
from headrace.kernels.cpu.video.frame_index import FrameIndex
from headrace.kernels.cpu.video.video import Video

_MOST_OPEN = 16
_MOST_INDEXED = 100_000

Key = tuple[str, int, int]


class VideoPool:
    """Opened videos of local files, of which each is used by one thread at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._idle: list[tuple[Key, Video]] = []
        self._indices: OrderedDict[Key, FrameIndex] = OrderedDict()

    @contextmanager
    def video(self, path: str, number: int = 0) -> Iterator[Video]:
        """A video that is open, of those the one that frame `number` is nearest to."""
        key = key_of(path)
        with self._lock:
            same = [k for k, (its, _) in enumerate(self._idle) if its == key]
            ahead = [k for k in same if self._idle[k][1].is_ahead(number)]
            chosen = (ahead or same)[-1:]
            found = self._idle.pop(chosen[0])[1] if chosen else None
            index = self._indices.get(key)
        if found is None:
            found = Video(path, index)
        try:
            yield found
        except BaseException:
            found.close()
            raise
        closed = []
        with self._lock:
            self._indices[key] = found.index
            while len(self._indices) > _MOST_INDEXED:
                self._indices.popitem(last=False)
            self._idle.append((key, found))
            while len(self._idle) > _MOST_OPEN:
                closed.append(self._idle.pop(0)[1])
        for video in closed:
            video.close()

    def index(self, path: str) -> FrameIndex:
        """The index of a file."""
        with self._lock:
            found = self._indices.get(key_of(path))
        if found is None:
            with self.video(path) as video:
                found = video.index
        return found

    def clear(self) -> None:
        """Forget all: after a fork, what is open shares its place in the file with the parent."""
        self.__init__()  # type: ignore[misc]


def key_of(path: str) -> Key:
    """Name, size and time of change of a file, which tell its versions apart."""
    try:
        found = os.stat(path)
    except OSError as error:
        raise BadSampleError(
            f"The video {path!r} cannot be opened: {error.strerror or error}."
        ) from error
    return path, found.st_size, found.st_mtime_ns


POOL = VideoPool()
os.register_at_fork(after_in_child=POOL.clear)


@contextmanager
def opened(
    source: str | np.ndarray, number: int = 0, index: FrameIndex | None = None
) -> Iterator[Video]:
    """A video of the pool, or that of bytes, whose `index` may be known."""
    if isinstance(source, str):
        with POOL.video(source, number) as video:
            yield video
        return
    video = Video(source, index)
    try:
        yield video
    finally:
        video.close()
