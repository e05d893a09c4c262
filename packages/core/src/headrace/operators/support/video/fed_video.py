"""A video that was fed, which batches of its sequences share until the last of them is decoded."""

from __future__ import annotations

import itertools
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from headrace.kernels.cpu.video.frame_index import FrameIndex
    from headrace.kernels.cpu.video.video import Video

_NUMBERS = itertools.count()


class FedVideo:
    """The bytes of a video, and decoders that stand at frames of it.

    `number` tells it from all others. Whoever has an array of `held` keeps it alive, and `of`
    finds it.
    """

    def __init__(self, encoded: np.ndarray) -> None:
        self.encoded = encoded
        self.number = next(_NUMBERS)
        self.index: FrameIndex | None = None
        """Its frames, once it was opened."""
        self._lock = threading.Lock()
        self._idle: list[Video] = []
        _alive[self.number] = self

    @contextmanager
    def opened(self, number: int = 0) -> Iterator[Video]:
        """The video, open, for one thread; as near to frame `number` as there is one.

        Raises `BadSampleError` if it is no video.
        """
        from headrace.kernels.cpu.video.pool import open_video

        with self._lock:
            ahead = [video for video in self._idle if video.is_ahead(number)]
            found: Any = None
            if self._idle:
                found = (ahead or self._idle)[-1]
                self._idle.remove(found)
        if found is None:
            found = open_video(self.encoded, self.index)
        try:
            yield found
        except BaseException:
            found.close()
            raise
        with self._lock:
            self.index = found.index
            self._idle.append(found)

    def __del__(self) -> None:
        for video in self._idle:
            video.close()

    def held(self, description: np.ndarray) -> np.ndarray:
        """A copy of bytes that keeps the video alive as long as any view of it is there."""
        memory = _Memory(description.tobytes())
        memory.video = self
        return np.frombuffer(memory, np.uint8)

    @staticmethod
    def of(number: int) -> FedVideo:
        """The video with this number."""
        return _alive[number]


class _Memory(bytearray):
    """Bytes that hold on to a video."""

    video: FedVideo


_alive: weakref.WeakValueDictionary[int, FedVideo] = weakref.WeakValueDictionary()
