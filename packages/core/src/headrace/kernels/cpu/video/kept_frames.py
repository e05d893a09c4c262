"""Decoded frames that are kept, because sequences overlap: the next ones have them, too."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

LIMIT_BYTES = 64 << 20
"""Of the frames of one video, and of those of all that wait for their next use."""


class KeptFrames:
    """The frames of a video that were decoded last, by number."""

    def __init__(self) -> None:
        self._frames: OrderedDict[int, Any] = OrderedDict()
        self.nbytes = 0
        """Bytes of their planes."""

    def __contains__(self, number: int) -> bool:
        return number in self._frames

    def get(self, number: int) -> Any:
        """A frame; `None` if it is not kept."""
        found = self._frames.get(number)
        if found is not None:
            self._frames.move_to_end(number)
        return found

    def keep(self, number: int, frame: Any) -> None:
        """Keep a frame, in place of those whose last use is longest ago."""
        if number in self._frames:
            return
        self._frames[number] = frame
        self.nbytes += _nbytes(frame)
        while self.nbytes > LIMIT_BYTES:
            self.nbytes -= _nbytes(self._frames.popitem(last=False)[1])

    def clear(self) -> None:
        """Forget all."""
        self._frames.clear()
        self.nbytes = 0


def _nbytes(frame: Any) -> int:
    return sum(plane.buffer_size for plane in frame.planes)
