"""The audio of a video file: samples of any span of time, the same whatever was read before."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np

from headrace.errors import BadSampleError
from headrace.kernels.cpu.video.library import demuxed, pyav

_PREROLL_SECONDS = 0.25
"""Decoded and dropped before a span, for codecs whose packets lean on earlier ones."""
_QUALITY = 50.0
_LONGEST_PERIOD = 1 << 16
_MOST_SAMPLES = 1 << 30
_SCALES = {"s16": 1 << 15, "s32": 1 << 31, "s64": 1 << 63}


@dataclass
class SoundIndex:
    """Facts of an audio stream."""

    rate: int
    channels: int
    places: dict[int, int] | None = field(default=None)
    """First sample of frames by their times, where these are rounded to more than a sample."""


class Sound:
    """The first audio stream of a file.

    `open_container`: opens the file anew. `index`: that of the file where it is known.
    """

    def __init__(self, open_container: Callable[[], Any], index: SoundIndex | None = None) -> None:
        self._open = open_container
        self._start()
        context = self._stream.codec_context
        base = Fraction(self._stream.time_base or Fraction(1, context.sample_rate))
        self._ticks = base * context.sample_rate
        """Samples of a unit of time."""
        if index is None:
            index = SoundIndex(int(context.sample_rate), int(context.channels))
            if self._ticks > 1:
                index.places = self._scan()
                self._start()
        self.index = index

    def close(self) -> None:
        """Close the file."""
        self._container.close()

    def _start(self) -> None:
        self._container = self._open()
        streams = self._container.streams.audio
        if not streams:
            self._container.close()
            raise BadSampleError("The file has no audio in it, and `enable_audio` asks for it.")
        self._stream = streams[0]
        if self._stream.codec_context is None or not self._stream.codec_context.sample_rate:
            self._container.close()
            raise BadSampleError("FFmpeg has no decoder for the codec of the audio.")

    def _scan(self) -> dict[int, int]:
        """The first sample of each frame, all being decoded from the beginning."""
        places: dict[int, int] = {}
        for begin, data, pts in self._frames():
            if pts is not None:
                places[pts] = begin
            del data
        return places

    def read(self, begin: float, seconds: float, rate: float | None, limit: float) -> np.ndarray:
        """Samples from a time on, float32 ``(samples, channels)``; silence where there are none.

        `rate`: in Hz, that of the file if it is `None`. `limit`: time that silence begins at.
        """
        own = self.index.rate
        wanted = float(own if rate is None else rate)
        count = samples_of(seconds, wanted)
        first = round(begin * wanted)
        if wanted == own:
            found = self._span(first, first + count)
        else:
            found = self._resampled(first, count, wanted)
        silent = max(round(limit * wanted) - first, 0)
        found[silent:] = 0
        return found

    def _resampled(self, first: int, count: int, rate: float) -> np.ndarray:
        """Samples of another rate, whose grid begins at time 0."""
        from headrace.kernels.cpu.audio.resample import resample  # which needs Numba
        from headrace.kernels.cpu.audio.sinc_window import sinc_window

        window = sinc_window(_QUALITY)
        step = Fraction(self.index.rate) / Fraction(rate)
        margin = int(window.lobes / step) + 2
        start = first - margin
        if step.denominator <= _LONGEST_PERIOD:  # begin where both grids meet
            start -= start % step.denominator
        at = step * start
        whole = round(at)
        end = int(step * (first + count)) + window.lobes + 2
        source = self._span(whole, max(end, whole))
        out = np.zeros((first + count - start, source.shape[1]), np.float32)
        resample(source, float(step), window, out, np.empty, scaled=True)
        return out[first - start :]

    def _span(self, begin: int, end: int) -> np.ndarray:
        """Samples `begin` to `end` of the stream's own rate."""
        if end - begin > _MOST_SAMPLES:
            raise BadSampleError(f"A span of {end - begin} audio samples is too much to hold.")
        out = np.zeros((end - begin, self.index.channels), np.float32)
        if not out.size:
            return out
        self._seek(begin)
        for start, data, _ in self._frames():
            if start >= end:
                break
            low, high = max(start, begin), min(start + len(data), end)
            if low < high:
                out[low - begin : high - begin] = data[low - start : high - start]
        return out

    def _seek(self, begin: int) -> None:
        """Stand so far before sample `begin` that what is decoded from there on is right."""
        av, rate = pyav(), self.index.rate
        for back in (1, 8):
            target = begin - int(back * _PREROLL_SECONDS * rate)
            if target <= 0:
                break
            try:
                self._container.seek(int(target / self._ticks), stream=self._stream)
                packet = next(demuxed(self._container, self._stream))
                late = packet.pts is None or packet.pts * self._ticks > begin - back * rate // 10
                self._container.seek(int(target / self._ticks), stream=self._stream)
            except (av.FFmpegError, OSError, ValueError, StopIteration):
                break
            if not late:
                self._stream.codec_context.flush_buffers()
                return
        self._container.close()
        self._start()

    def _frames(self) -> Any:
        """First sample, samples and time of each frame from here on."""
        av = pyav()
        place: int | None = None
        index = getattr(self, "index", None)
        places = (index.places if index else None) or {}
        loose = max(2 * self._ticks, 1)
        context = self._stream.codec_context
        for packet in _packets(self._container, self._stream):
            try:
                decoded = context.decode(packet)
            except av.EOFError:
                return
            except av.FFmpegError as error:
                if packet is None:
                    return
                raise BadSampleError(f"The audio cannot be decoded: {error}.") from error
            for frame in decoded:
                data = _floats(frame)
                if index is not None and data.shape[1] != index.channels:
                    raise BadSampleError(
                        f"The audio has {data.shape[1]} channels at some time and "
                        f"{index.channels} before."
                    )
                if frame.pts is not None:
                    said = places.get(frame.pts)
                    if said is None:
                        said = round(frame.pts * self._ticks)
                        if place is not None and abs(said - place) <= loose:
                            said = place
                    place = said
                elif place is None:
                    place = 0
                yield place, data, frame.pts
                place += len(data)


def samples_of(seconds: float, rate: float) -> int:
    """Number of samples that a span of time has."""
    return max(round(seconds * rate), 0)


def _packets(container: Any, stream: Any) -> Any:
    av = pyav()
    with suppress(av.FFmpegError, OSError, ValueError):  # what is there counts
        yield from demuxed(container, stream)
    yield None


def _floats(frame: Any) -> np.ndarray:
    """The samples of a frame, float32 ``(samples, channels)`` from -1 to 1."""
    data = frame.to_ndarray()
    layout: str = frame.format.name
    kind = layout.removesuffix("p")
    data = data.T if frame.format.is_planar else data.reshape(-1, len(frame.layout.channels))
    if kind == "u8":
        return (data.astype(np.float32) - 128) / 128
    return data.astype(np.float32) / np.float32(_SCALES.get(kind, 1))
