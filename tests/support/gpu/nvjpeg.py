"""nvJPEG for the emulated GPU: the functions that drive JPEG engines, with libjpeg-turbo behind."""

from __future__ import annotations

import ctypes
import threading
from typing import Any

import numpy as np

from headrace.kernels.cpu.decode import nvimagecodec
from headrace.kernels.cpu.decode.header import read_header
from headrace.kernels.gpu.decode import nvjpeg

_BAD_JPEG = 3
_ARCH_MISMATCH = 7
_COLORS = {number: color for color, number in nvjpeg.FORMATS.items()}


def _bytes(address: int, size: int) -> np.ndarray:
    return np.frombuffer(memoryview((ctypes.c_ubyte * size).from_address(address)), np.uint8)


class EmulatedNvJpeg:
    """The library as `headrace.kernels.gpu.decode.nvjpeg.Functions` has it.

    It writes its outputs when it is called, as the engines do.

    `engines`: how many there are; 0 for a GPU without. `broken`: lengths of files that make a whole
    batch fail.

    `batches`: lengths of the files of each batch that was to be decoded. `regions`: those that were
    set: offsets to the right and down, width, height; the latter -1 for all. `threads`, `states`:
    names of the threads that decoded, and with which states. `asked`: how often it was asked
    whether it knows the kind of an image. `alive`: what has been made and not destroyed.
    """

    def __init__(self, engines: int = 7, broken: tuple[int, ...] = ()) -> None:
        self._number_of_engines = engines
        self.broken = broken
        self.batches: list[list[int]] = []
        self.regions: list[tuple[int, ...]] = []
        self.threads: list[str] = []
        self.states: list[int] = []
        self.flags: list[int] = []
        self.alive: dict[int, str] = {}
        self._owners: dict[int, int] = {}
        self._next = 100
        self._parsed: dict[int, np.ndarray] = {}
        self._rois: dict[int, tuple[int, int, int, int]] = {}
        self.asked = 0
        self._format = self._count = 0

    def _new(self, kind: str, out: Any, owner: Any = None) -> int:
        self._next += 1
        out._obj.value = self._next
        self.alive[self._next] = kind
        self._owners[self._next] = 0 if owner is None else owner.value
        return 0

    def _gone(self, kind: str, made: Any) -> int:
        assert self.alive.pop(made.value) == kind
        del self._owners[made.value]
        assert made.value not in self._owners.values(), "something still needs it"
        return 0

    def nvjpegCreateEx(self, backend: int, a: Any, b: Any, flags: int, out: Any) -> int:
        assert backend == 3
        self.flags.append(flags)
        return self._new("handle", out) if self._number_of_engines else _ARCH_MISMATCH

    def nvjpegDestroy(self, handle: Any) -> int:
        return self._gone("handle", handle)

    def nvjpegGetHardwareDecoderInfo(self, handle: Any, engines: Any, cores: Any) -> int:
        engines._obj.value, cores._obj.value = self._number_of_engines, 1
        return 0

    def nvjpegJpegStateCreate(self, handle: Any, out: Any) -> int:
        return self._new("state", out, handle)

    def nvjpegJpegStateDestroy(self, state: Any) -> int:
        return self._gone("state", state)

    def nvjpegJpegStreamCreate(self, handle: Any, out: Any) -> int:
        return self._new("stream", out, handle)

    def nvjpegJpegStreamDestroy(self, stream: Any) -> int:
        return self._gone("stream", stream)

    def nvjpegDecodeParamsCreate(self, handle: Any, out: Any) -> int:
        return self._new("params", out, handle)

    def nvjpegDecodeParamsDestroy(self, params: Any) -> int:
        return self._gone("params", params)

    def nvjpegDecodeBatchedPreAllocate(self, *args: Any) -> int:
        assert min(args[2:5]) >= 1
        return 0

    def nvjpegJpegStreamParseHeader(self, handle: Any, address: int, size: int, stream: Any) -> int:
        self._parsed[stream.value] = _bytes(address, size)
        return 0

    def nvjpegDecodeBatchedSupported(self, handle: Any, stream: Any, answer: Any) -> int:
        self.asked += 1
        data = self._parsed[stream.value].tobytes()
        frame = max(data.find(b"\xff\xc0"), data.find(b"\xff\xc2"))
        wide = data[frame + 11] >> 4 == 4  # 4:1:1
        answer._obj.value = int(data[frame + 1] != 0xC0 or wide)
        return 0

    def nvjpegDecodeParamsSetROI(self, params: int, x: int, y: int, width: int, height: int) -> int:
        self._rois[params] = (y, x, height, width)
        self.regions.append((x, y, width, height))
        return 0

    def nvjpegDecodeBatchedInitialize(
        self, handle: Any, state: Any, count: int, threads: int, output: int
    ) -> int:
        self._format = output
        self._count = count
        self.states.append(state)
        return 0

    def nvjpegDecodeBatched(
        self, handle: Any, state: Any, sources: int, sizes: int, targets: int, stream: int
    ) -> int:
        return self._decode(sources, sizes, targets, [None] * self._count)

    def nvjpegDecodeBatchedEx(
        self,
        handle: Any,
        state: Any,
        sources: int,
        sizes: int,
        targets: int,
        params: int,
        stream: int,
    ) -> int:
        handles = _bytes(params, 8 * self._count).view(np.uint64).tolist()
        # Each is good for one image of one batch.
        return self._decode(sources, sizes, targets, [self._rois.pop(p) for p in handles])

    def _decode(self, sources: int, sizes: int, targets: int, regions: list[Any]) -> int:
        count = self._count
        addresses, lengths = (
            _bytes(a, 8 * count).view(np.uint64).tolist() for a in (sources, sizes)
        )
        images = _bytes(targets, nvjpeg.IMAGE.itemsize * count).view(nvjpeg.IMAGE)
        self.batches.append(lengths)
        self.threads.append(threading.current_thread().name)
        if set(lengths) & set(self.broken):
            return _BAD_JPEG
        color = _COLORS[self._format]
        channels = 1 if color == "GRAY" else 3
        for address, length, image, region in zip(addresses, lengths, images, regions, strict=True):
            pixels = _decoded(_bytes(address, length), color)
            if region is not None and region[2] >= 0:
                y, x, height, width = region
                pixels = pixels[y : y + height, x : x + width]
            rows, columns = pixels.shape[:2]
            assert int(image["pitch"][0]) == columns * channels
            target = _bytes(int(image["channel"][0]), rows * columns * channels)
            target[:] = pixels.reshape(-1)
        return 0


def _decoded(data: np.ndarray, color: str) -> np.ndarray:
    header = read_header(data.data)
    out = np.empty((header.height, header.width, 1 if color == "GRAY" else 3), np.uint8)
    assert nvimagecodec.decode_into(out, data, header, color, fast_idct=False, region=None)
    return out
