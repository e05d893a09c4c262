"""PyNvVideoCodec for the emulated GPU: its decoders, with FFmpeg behind."""

from __future__ import annotations

import ctypes
import importlib.machinery
from types import ModuleType, SimpleNamespace

import numpy as np

CODECS = {"H264": "h264", "HEVC": "hevc", "VP8": "vp8", "VP9": "vp9", "AV1": None}


class UnsupportedError(Exception):
    """``PyNvVCExceptionUnsupported``."""


class PacketData:
    """An encoded picture, or the end."""

    def __init__(self):
        self.bsl = self.bsl_data = self.pts = self.dts = 0


class Plane:
    """A plane of a frame, as ``CAIMemoryView``."""

    def __init__(self, address, shape, dtype):
        strides = (*np.cumprod([dtype.itemsize, *shape[:0:-1]])[::-1].tolist(),)
        self.__cuda_array_interface__ = {
            "data": (address, False),
            "shape": shape,
            "strides": strides,
            "typestr": dtype.str,
            "version": 3,
        }


class Frame:
    """``DecodedFrame``."""

    def __init__(self, pts, planes):
        self._pts, self._planes = pts, planes

    def getPTS(self):
        return self._pts

    def cuda(self):
        return self._planes


class Decoder:
    """``PyNvDecoder``: what it returns is overwritten by the next call."""

    def __init__(self, library, codec, maxwidth, maxheight):
        self._library, self._codec = library, codec
        self._limit = maxheight, maxwidth
        self._lent: list[tuple[int, int]] = []
        self._context = None
        self._last = -1
        self.is_synchronized = True

    def setReconfigParams(self, width, height):
        assert (height, width) <= self._limit
        self._library.reconfigured.append((width, height))

    def SyncOnCUStream(self):
        self.is_synchronized = True

    def Decode(self, packet):
        import av

        name = CODECS[self._codec]
        if name is None:
            raise UnsupportedError("HandleVideoSequence : \nCodec not supported on this GPU")
        for address, size in self._lent:
            ctypes.memset(address, 0x55, size)
        self._library.decoded += 1
        if self._context is None:
            self._context = av.CodecContext.create(name, "r")
            self._context.thread_count = 1
        encoded = None
        if packet.bsl:
            encoded = av.Packet(ctypes.string_at(packet.bsl_data, packet.bsl))
            encoded.pts = packet.pts
        try:
            frames = self._context.decode(encoded)
        except av.FFmpegError as error:
            raise RuntimeError(f"decode error: {error}") from error
        self.is_synchronized = not frames
        found = [self._placed(frame, self._time_of(frame)) for frame in frames]
        if encoded is None:
            self._context, self._last = None, -1
        return found

    def _time_of(self, frame):
        """The time of a frame, as NVIDIA's parser tells it: one that does not rise is made up."""
        self._last = frame.pts if frame.pts > self._last else self._last + 333333
        return self._last

    def _placed(self, frame, time):
        assert (frame.height, frame.width) <= self._limit
        dtype = np.dtype(np.uint8)
        y, u, v = [
            np.frombuffer(p, dtype).reshape(-1, p.line_size // dtype.itemsize)[
                : p.height, : p.width
            ]
            for p in frame.planes
        ]
        found = []
        half = frame.height // 2, frame.width // 2  # odd ones lose a row
        for plane in (y[..., None], np.stack([u, v], -1)[: half[0], : half[1]]):
            data = np.ascontiguousarray(plane)
            address = self._library.runtime.allocate(data.nbytes)
            ctypes.memmove(address, data.ctypes.data, data.nbytes)
            self._lent.append((address, data.nbytes))
            found.append(Plane(address, data.shape, dtype))
        return Frame(time, found)

    def __del__(self):
        for address, _ in self._lent:
            self._library.runtime.free(address)


def library(runtime):
    """The module, whose decoders put frames into memory of `runtime`."""
    module = ModuleType("PyNvVideoCodec")
    module.__spec__ = importlib.machinery.ModuleSpec("PyNvVideoCodec", None)
    module.runtime, module.made, module.reconfigured, module.decoded = runtime, [], [], 0
    module.PacketData = PacketData
    module.PyNvVCExceptionUnsupported = UnsupportedError
    module.cudaVideoCodec = SimpleNamespace(**{name: name for name in (*CODECS, "MPEG1", "MPEG2")})

    def create(*, gpuid, codec, usedevicememory, maxwidth, maxheight):
        assert gpuid == runtime.device_id
        assert usedevicememory
        module.made.append(codec)
        return Decoder(module, codec, maxwidth, maxheight)

    module.CreateDecoder = create
    return module
