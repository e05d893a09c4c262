"""Videos decoded by hardware: the frames of `Video`, found in the same way, in device memory."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from headrace.errors import BadSampleError
from headrace.kernels.cpu.video.frame_index import FrameIndex
from headrace.kernels.cpu.video.library import pyav
from headrace.kernels.cpu.video.pool import Source
from headrace.kernels.cpu.video.video import Video
from headrace.kernels.gpu.nvdec.session import Config, NotDecodedError, Session, config_of
from headrace.tensors.gpu.runtime import Runtime

_FILTERS = {"h264": "h264_mp4toannexb,dump_extra", "hevc": "hevc_mp4toannexb,dump_extra"}
"""Filters that bring packets into the form that decoders take: start codes, and the parameter
sets in front of every key frame, since decoding begins at any of them.
"""
_FULL = 2
_MOST_FAILURES = 3


class HardwareVideo(Video):
    """A video whose packets go to a decoder of a GPU, which it is given before frames are read.

    `config`: what kind of decoder it takes; `None` if there is none. `is_full`, `colorspace`: range
    of its samples, and the matrix that it names.
    """

    _leaves_out = False

    def __init__(self, source: Source, index: FrameIndex) -> None:
        self.session: Any = None
        self._filter: Any = None
        super().__init__(source, index)
        context = self._stream.codec_context
        # Of an odd height a row of chroma is not handed over.
        is_odd = self.height % 2 or self.width % 2
        self.config = None if is_odd else config_of(context)
        self.is_full = context.color_range == _FULL or str(context.pix_fmt).startswith("yuvj")
        self.colorspace = int(context.colorspace or 2)

    def _open(self) -> None:
        super()._open()
        if self.session is not None:
            self.session.flush()
        name = _FILTERS.get(self._stream.codec_context.name)
        self._filter = name and pyav().bitstream.BitStreamFilterContext(name, self._stream)

    def _decode(self, packet: Any) -> Iterable[Any]:
        order = self.index.order
        data, number = b"", 0
        if packet is not None:
            # Times of frames that do not rise as they are shown are replaced by the parser.
            number = self.index.numbers.get(packet.pts, 0)
            parts = [packet] if not self._filter else self._filter.filter(packet)
            data = b"".join(map(bytes, parts))
        frames = list(self.session.decode(data, number))
        for frame in frames:
            frame.pts = int(order[frame.pts]) if 0 <= frame.pts < len(order) else -1
        return frames

    def _flush(self) -> None:
        self.session.flush()
        if self._filter:
            self._filter.flush()

    def _scan_decoded(self) -> FrameIndex:
        raise NotDecodedError("a frame does not come out of the decoder")


class HardwareDecoders:
    """The decoders of a device that a pipeline has.

    A video stays at its decoder, so that the next sequence of it goes on where the last one ended.

    `most`: how many there may be.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._room = threading.BoundedSemaphore(most)
        self._lock = threading.Lock()
        self._idle: list[tuple[Any, Session]] = []
        self._failed: dict[Config, int] = {}
        """Number of failures of kinds of video of which none was ever decoded."""
        self._known: set[Config] = set()

    def close(self) -> None:
        """Give all decoders back."""
        with self._lock:
            idle, self._idle = self._idle, []
        for _, session in idle:
            session.close()

    def __del__(self) -> None:
        self.close()

    @contextmanager
    def video(
        self, runtime: Runtime, source: Source, key: Any, index: FrameIndex, number: int
    ) -> Iterator[HardwareVideo]:
        """A video at a decoder; `key` tells it from others, `number` is the first frame wanted.

        Raises `NotDecodedError` if the hardware cannot decode it.
        """
        with self._room:
            session = self._of_same(key, number)
            if session is None:
                session = self._of_kind(runtime, source, key, index)
            try:
                yield session.owner
            except BaseException as error:
                session.close()
                if isinstance(error, Exception) and not isinstance(error, BadSampleError):
                    self._note_failure(session.config, error)
                raise
            with self._lock:
                self._known.add(session.config)
                self._idle.append((key, session))

    def _of_same(self, key: Any, number: int) -> Session | None:
        with self._lock:
            for place, (its, session) in enumerate(self._idle):
                if its == key and session.owner.is_ahead(number):
                    return self._idle.pop(place)[1]
        return None

    def _of_kind(self, runtime: Runtime, source: Source, key: Any, index: FrameIndex) -> Session:
        video = HardwareVideo(source, index)
        config = video.config
        with self._lock:
            if config is None or self._failed.get(config, 0) >= _MOST_FAILURES:
                video.close()
                raise NotDecodedError("the hardware does not know its codec")
            # The video that was used longest ago gives way, to one of its kind if there is one.
            alike = [k for k, (_, s) in enumerate(self._idle) if s.config == config]
            found = self._idle.pop(alike[0])[1] if alike else None
            others = [] if alike or len(self._idle) < self._most else [self._idle.pop(0)[1]]
        for other in others:
            other.close()
        try:
            if found is None:
                found = Session(runtime, config, video.height, video.width)
            else:
                found.begin(video.height, video.width)
        except Exception as error:
            video.close()
            if found is not None:
                found.close()
            self._note_failure(config, error)
            raise NotDecodedError(str(error)) from error
        if found.owner is not None:
            found.owner.close()
        found.owner, video.session = video, found
        return found

    def _note_failure(self, config: Config, error: Exception) -> None:
        """Count failures, so that what the hardware cannot do is not tried again and again."""
        with self._lock:
            if config in self._known:
                return
            self._failed[config] = count = self._failed.get(config, 0) + 1
        if count == 1:
            codec, depth = config
            warnings.warn(
                f"The GPU's decoder cannot decode {codec} of {depth} bits ({_reason(error)}); "
                "the CPU decodes it.",
                UserWarning,
                stacklevel=2,
            )


def _reason(error: Exception) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return next((line for line in lines if "not supported" in line), lines[0]).strip(" .:")
