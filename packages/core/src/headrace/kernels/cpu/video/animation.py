"""Animated WebP, which FFmpeg does not decode: frames by number, as of `Video`, by Pillow."""

from __future__ import annotations

import io
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from headrace._optional import import_optional
from headrace.errors import BadSampleError
from headrace.kernels.cpu.decode.exif import UPRIGHT
from headrace.kernels.cpu.video.frame_index import FrameIndex, Packets
from headrace.kernels.cpu.video.frame_reader import FrameReader, places_of
from headrace.kernels.cpu.video.kept_frames import KeptFrames
from headrace.kernels.cpu.video.library import pyav

HEAD_BYTES = 21
_ANIMATED = 2
_MOST_PIXELS = 1 << 28


def is_animated_webp(head: bytes) -> bool:
    """Return True if a file that begins so is an animated WebP."""
    kinds = head[:4], head[8:12], head[12:16]
    return kinds == (b"RIFF", b"WEBP", b"VP8X") and bool(head[20:21] and head[20] & _ANIMATED)


class AnimatedImage(FrameReader):
    """An animated WebP; attributes and methods are those of `Video`."""

    missing = 0
    keeps = False
    orientation = UPRIGHT

    def __init__(self, data: bytes, index: FrameIndex | None = None) -> None:
        module = import_optional(
            "PIL.Image", purpose="Decoding of animated WebP", install="headrace[images]"
        )
        self._image: Any = None
        durations, whole = _durations(data)
        if index is None and not durations:
            raise BadSampleError("The animated WebP has no frame in it.")
        if not whole:
            self.missing = 1
        try:
            self._image = module.open(io.BytesIO(data), formats=["WEBP"])
            self.width, self.height = self._image.size
        except Exception as error:  # Pillow raises what it meets
            raise BadSampleError(f"It cannot be opened as a video: {error}") from error
        if not 0 < self.height * self.width <= _MOST_PIXELS:
            raise BadSampleError(
                f"The video announces frames of {self.height} x {self.width} pixels."
            )
        self.index = _index(durations) if index is None else index
        self.index.height, self.index.width = self.height, self.width
        self.index.orientation = self.orientation
        self._next = 0
        self.kept = KeptFrames()

    def close(self) -> None:
        """Close it."""
        if self._image is not None:
            self._image.close()
            self._image = None

    def is_ahead(self, number: int) -> bool:
        """True if frame `number` is ahead."""
        return number >= self._next

    @property
    def sound(self) -> Any:
        """Never there."""
        raise BadSampleError("The file has no audio in it, and `enable_audio` asks for it.")

    def frames(self, numbers: Sequence[int]) -> Iterator[tuple[Any, list[int]]]:
        """The frames of these numbers, rising, and where each is wanted."""
        places = places_of(numbers)
        for number in sorted(places):
            try:
                self._image.seek(number)
                pixels = np.asarray(self._image.convert("RGB"))
            except Exception as error:  # Pillow raises what it meets
                raise BadSampleError(f"Frame {number} cannot be decoded: {error}.") from error
            self._next = number + 1
            if pixels.shape[:2] != (self.height, self.width):
                raise BadSampleError(f"Frame {number} has another size: {pixels.shape[:2]}.")
            yield pyav().VideoFrame.from_ndarray(pixels, "rgb24"), places[number]


def _durations(data: bytes) -> tuple[list[int], bool]:
    """Milliseconds of each frame, and whether the file is as long as it says."""
    announced = 8 + int.from_bytes(data[4:8], "little")
    at, found = 12, []
    while at + 8 <= len(data):
        kind, size = data[at : at + 4], int.from_bytes(data[at + 4 : at + 8], "little")
        if at + 8 + size > len(data):
            break
        if kind == b"ANMF" and size >= 16:
            found.append(int.from_bytes(data[at + 20 : at + 23], "little"))
        at += 8 + size + size % 2
    return found, len(data) >= announced


def _index(durations: list[int]) -> FrameIndex:
    begins = np.cumsum([0, *durations])[:-1]
    if len(set(begins.tolist())) < len(begins):  # frames that are shown for no time
        begins = begins + np.arange(len(begins))
    keys = np.arange(len(begins)) == 0
    packets = Packets(keys, np.ones(len(begins), bool), begins, begins, np.zeros(len(begins)))
    mean = max(sum(durations), 1) / len(durations)
    return FrameIndex(packets, np.arange(len(begins)), Fraction(1, 1000), 1000 / mean)
