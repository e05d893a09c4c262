"""A decoder of a GPU: encoded pictures in, frames in device memory out."""

from __future__ import annotations

import importlib
import importlib.util
import logging
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np

from headrace.config import VIDEO_DECODER
from headrace.kernels.gpu.video_colors import DevicePlanes
from headrace.tensors.gpu.runtime import Runtime

CODECS = {
    "h264": "H264",
    "hevc": "HEVC",
    "vp8": "VP8",
    "vp9": "VP9",
    "av1": "AV1",
    "libdav1d": "AV1",
    "mpeg1video": "MPEG1",
    "mpeg2video": "MPEG2",
}
"""FFmpeg's decoders, and PyNvVideoCodec's names for what they decode."""
_DEPTHS = {"yuv420p": 8, "yuvj420p": 8}
"""Bits of a sample by pixel format. Of 10 bits an H200's frames came out wrong (PyNvVideoCodec
2.2.4), so the CPU decodes them."""
_ROUND = 64


class NotDecodedError(Exception):
    """The hardware does not decode something; the CPU may."""


def is_wanted() -> bool:
    """Return True if PyNvVideoCodec is installed and the user has not turned hardware off."""
    return VIDEO_DECODER.value() == "auto" and _is_installed()


@cache
def _is_installed() -> bool:
    return importlib.util.find_spec("PyNvVideoCodec") is not None


@cache
def library() -> Any:
    """The module `PyNvVideoCodec`."""
    logging.getLogger("PyNvVideoCodec").setLevel(logging.ERROR)
    return importlib.import_module("PyNvVideoCodec")


Config = tuple[str, int]
"""A codec and the number of bits of a sample."""


def config_of(context: Any) -> Config | None:
    """Kind of decoder for a codec context of PyAV's; `None` for what none decodes."""
    codec = CODECS.get(context.name)
    depth = _DEPTHS.get(str(context.pix_fmt))
    return None if codec is None or depth is None else (codec, depth)


class DeviceFrame:
    """A decoded frame; its memory is good until the session decodes on."""

    is_corrupt = False
    __slots__ = ("height", "planes", "pts", "width")

    def __init__(self, pts: int, planes: DevicePlanes) -> None:
        self.pts = pts
        self.planes = planes
        self.height, self.width = planes.height, planes.width


class Session:
    """A decoder, for one video after another of one kind; used by one thread at a time.

    `runtime`: the device. `config`: codec and bits. `height`, `width`: extents of the first video.
    """

    def __init__(self, runtime: Runtime, config: Config, height: int, width: int) -> None:
        self.config = config
        self._runtime = runtime
        self._limit = [-(-n // _ROUND) * _ROUND for n in (height, width)]
        self._extents = height, width
        self.stream = runtime.acquire_stream()
        self.owner: Any = None
        """The video whose frames it decodes now."""
        self._is_used = False
        self._decoder: Any = None
        self._make()

    def _make(self) -> None:
        nv = library()
        high, wide = self._limit
        self._decoder = None  # before there is another
        self._decoder = nv.CreateDecoder(
            gpuid=self._runtime.device_id,
            codec=getattr(nv.cudaVideoCodec, self.config[0]),
            usedevicememory=True,
            maxwidth=wide,
            maxheight=high,
        )
        self._is_used = False

    def close(self) -> None:
        """Give the decoder and the stream back."""
        if self.owner is not None:
            self.owner.close()
        self._decoder = self.owner = None
        self._runtime.release_stream(self.stream)

    def begin(self, height: int, width: int) -> None:
        """Take another video."""
        self.flush()
        if self._extents == (height, width):
            return
        self._extents = height, width
        if height > self._limit[0] or width > self._limit[1]:
            self._limit = [
                max(-(-n // _ROUND) * _ROUND, most)
                for n, most in zip((height, width), self._limit, strict=True)
            ]
            self._make()
        else:
            self._decoder.setReconfigParams(width, height)

    def flush(self) -> None:
        """Forget what was handed over."""
        if self._is_used:
            for _ in self.decode(b"", 0):
                pass
            self._is_used = False

    def decode(self, data: bytes, number: int) -> Iterator[DeviceFrame]:
        """Frames that are done once a picture is handed over, or the end, which has no bytes.

        `number` comes back as the `pts` of its frame.
        """
        packet = library().PacketData()
        memory = np.frombuffer(data or b"\0", np.uint8)
        packet.bsl_data = memory.ctypes.data if data else 0
        packet.bsl = len(data)
        packet.pts = packet.dts = number
        frames = self._decoder.Decode(packet)
        self._is_used = True
        if frames:
            self._decoder.SyncOnCUStream()
        for frame in frames:
            yield DeviceFrame(int(frame.getPTS()), self._planes(frame))

    def _planes(self, frame: Any) -> DevicePlanes:
        height, width = self._extents
        views = [view.__cuda_array_interface__ for view in frame.cuda()]
        if len(views) != 2:
            raise NotDecodedError(f"its frames have {len(views)} planes, not 2")
        for view, down in zip(views, (1, 2), strict=True):
            shape = view["shape"]
            small = shape[0] < -(-height // down) or shape[1] < -(-width // down)
            if small or np.dtype(view["typestr"]).itemsize != 1:
                raise NotDecodedError(f"its frames are planes {shape} of {view['typestr']}")
        (luma, chroma) = (int(view["data"][0]) for view in views)
        across, other = map(_pitch, views)
        return DevicePlanes(luma, chroma, across, other, height, width)


def _pitch(view: dict[str, Any]) -> int:
    """Bytes from row to row of a plane."""
    strides = view.get("strides")
    return int(strides[0]) if strides else int(np.prod(view["shape"][1:]))
