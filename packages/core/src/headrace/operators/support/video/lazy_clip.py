"""Frames of a video that are decoded and converted when their consumer asks for them."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headrace.operators.support.lazy_image import Allocator, LazyImage, LazyPixels

if TYPE_CHECKING:
    from headrace.operators.support.operator import SampleContext


class ClipSource(NamedTuple):
    """The video of a clip."""

    c: SampleContext
    """Context of the operator that reads it, which its errors belong to."""
    opened: Callable[[int], AbstractContextManager[Any]]
    """Opens it, about to read frames from a number on."""
    colors: Any
    """Writer of frames' pixels, as `Colors`."""
    fill: np.ndarray
    """Pixel of frames that are not there."""
    size: tuple[int, int]
    """Height and width of its frames."""


class LazyClip(LazyPixels):
    """Frames of a video, FHWC, or a window of each; no more than that is converted.

    `numbers`: those of the frames; negative for frames that are not there.
    """

    __slots__ = ("_at", "_numbers", "_source")

    layout = "FHWC"

    def __init__(
        self,
        source: ClipSource,
        numbers: np.ndarray,
        at: tuple[int, int],
        shape: tuple[int, ...],
        dtype: np.dtype,
    ) -> None:
        self._source, self._numbers, self._at = source, numbers, at
        self.shape, self.dtype = shape, dtype

    def cut(self, anchor: Sequence[int], shape: Sequence[int]) -> LazyClip:
        """Fewer frames, and a window of each."""
        first, top, left = anchor[:3]
        y, x = self._at
        numbers = self._numbers[first : first + shape[0]]
        at, shape = (y + top, x + left), (*shape[:3], self.shape[3])
        return LazyClip(self._source, numbers, at, shape, self.dtype)

    def pixels(self, empty: Allocator | None = None) -> np.ndarray:
        """All frames."""
        out = (empty or self._source.c.temp)(self.shape, self.dtype)
        for image, (first, *others) in self.frames():
            image.write(out[first])
            for place in others:
                out[place] = out[first]
        return out

    def frames(self) -> Generator[tuple[FrameImage, list[int]]]:
        """Images of the frames, in the order they are decoded, and where in the clip each is.

        An image is valid until the next one, and so is scratch memory that is taken meanwhile.
        """
        source, numbers = self._source, self._numbers
        image = FrameImage(source, self._at, self.shape[1:], self.dtype)
        arena = source.c.arena
        mark = arena.mark()
        missing = np.flatnonzero(numbers < 0).tolist()
        if missing:
            yield image, missing
            arena.release(mark)
        if len(missing) == len(numbers):
            return
        try:
            with source.opened(int(numbers[0])) as video:
                for image.frame, places in video.frames(numbers.tolist()):
                    yield image, places
                    arena.release(mark)
        except Exception as error:
            # The consumer asks; it is the reader that failed.
            raise source.c.located(error) from error


class FrameImage(LazyImage):
    """A decoded frame, or a window of it, whose colours are not converted yet.

    `frame`: the one of FFmpeg's, which may be exchanged for another; `None` for one that is filled.
    """

    __slots__ = ("_at", "_source", "frame")

    def __init__(
        self, source: ClipSource, at: tuple[int, int], shape: tuple[int, ...], dtype: np.dtype
    ) -> None:
        self._source, self._at = source, at
        self.shape, self.dtype = (shape[0], shape[1], shape[2]), dtype
        self.frame: Any = None

    def region(
        self, y0: int, x0: int, y1: int, x1: int, empty: Allocator | None = None
    ) -> np.ndarray:
        """Pixels of rows ``y0 <= y < y1`` and columns ``x0 <= x < x1``."""
        shape = (max(y1 - y0, 0), max(x1 - x0, 0), self.shape[2])
        out = (empty or self._source.c.temp)(shape, self.dtype)
        self.write(out, y0, x0)
        return out

    def write(self, out: np.ndarray, y0: int = 0, x0: int = 0) -> None:
        """Fill `out`, ``(H, W, C)``, with the window that starts at (y0, x0)."""
        source = self._source
        if self.frame is None:
            out[:] = source.fill
        elif out.size:
            y, x = self._at
            try:
                source.colors.write(self.frame, out, source.size, (y + y0, x + x0))
            except Exception as error:
                raise source.c.located(error) from error
