"""Decoding of a batch of videos into device memory: by the GPU's decoders, or by the CPU."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.errors import BadSampleError, BadSamplesError
from headrace.operators.support.video.fed_video import FedVideo

if TYPE_CHECKING:
    from headrace.kernels.cpu.video.colors import Colors
    from headrace.kernels.cpu.video.frame_index import FrameIndex
    from headrace.kernels.cpu.video.pool import Source
    from headrace.kernels.gpu.nvdec.decoding import HardwareDecoders
    from headrace.operators.support.operator import BatchContext
    from headrace.tensors.gpu.batch import DeviceBatch
    from headrace.tensors.gpu.queue import Queue
    from headrace.tensors.gpu.runtime import Runtime


@dataclass(frozen=True, slots=True)
class Wanted:
    """Frames that one sample is to have."""

    source: Source | FedVideo
    """Path of the video, its bytes, a file to be opened, or one that was fed."""
    numbers: np.ndarray
    """Of each frame; negative for those that are filled."""
    height: int
    width: int
    orientation: int
    """Turn of the pictures, which `height` and `width` are those after."""
    index: FrameIndex | None = None
    """That of the video, if it is no file's."""


class VideosToDevice:
    """Decodes batches of one operator.

    `colors`, `dtype`: colours of the frames, and their type. `fill`: colour of frames that are not
    there, uint8 ``(channels,)``.
    """

    def __init__(self, colors: Colors, dtype: np.dtype, fill: np.ndarray) -> None:
        self._colors, self._dtype = colors, dtype
        scale = colors.scale if dtype.kind == "f" else 1
        self._fill = (fill * scale).astype(dtype)
        self._lock = threading.Lock()
        self._decoders: HardwareDecoders | None = None

    def _with_decoders(self, threads: int) -> HardwareDecoders | None:
        """The GPU's decoders, one a thread; `None` where there are none, or the user has none."""
        from headrace.kernels.gpu.nvdec.session import is_wanted

        if not is_wanted():
            return None
        from headrace.kernels.gpu.nvdec.decoding import HardwareDecoders

        with self._lock:
            if self._decoders is None:
                self._decoders = HardwareDecoders(threads)
            return self._decoders

    def decode(self, c: BatchContext, wanted: list[Wanted | Exception]) -> DeviceBatch:
        """The frames of each sample, ``(F, H, W, channels)``; threads fill them in, and the batch
        is there once what this defers has run.
        """
        failures = {k: each for k, each in enumerate(wanted) if isinstance(each, Exception)}
        channels = self._colors.channels
        shapes = np.array(
            [
                (0, 1, 1, channels)
                if isinstance(each, Exception)
                else (len(each.numbers), each.height, each.width, channels)
                for each in wanted
            ],
            np.int64,
        ).reshape(len(wanted), 4)
        queue = c.queue
        out = queue.empty(shapes, self._dtype, quiesced=True)
        places = out.pointers.tolist()
        threads = max(c.threads, 1)
        decoders = self._with_decoders(threads)
        pool = ThreadPoolExecutor(threads, "headrace-video")
        running: dict[int, Future[None]] = {
            k: pool.submit(self._sample, decoders, queue, each, places[k])
            for k, each in enumerate(wanted)
            if not isinstance(each, Exception)
        }
        pool.shutdown(wait=False)

        def end(queue: Queue) -> None:
            for k, future in running.items():
                error = future.exception()
                if error is not None:
                    if not isinstance(error, Exception):
                        raise error
                    failures[k] = error
            if failures:
                found = {c.indices[k]: c.located(failures[k], k) for k in sorted(failures)}
                raise BadSamplesError(found)

        queue.defer(end)
        return out

    def _sample(
        self, decoders: HardwareDecoders | None, queue: Queue, wanted: Wanted, place: int
    ) -> None:
        """Fill memory at `place` with the frames of a sample."""
        runtime = queue.runtime
        with runtime.active():
            if decoders is None or not self._by_hardware(decoders, runtime, wanted, place):
                self._by_cpu(queue, wanted, place)

    def _by_hardware(
        self, decoders: HardwareDecoders, runtime: Runtime, wanted: Wanted, place: int
    ) -> bool:
        """Have the GPU decode; return False if the CPU is to try it."""
        from headrace.kernels.cpu.video.pool import POOL, key_of
        from headrace.kernels.gpu.video_colors import write_colors

        numbers = wanted.numbers
        there = numbers[numbers >= 0]
        if not there.size:
            return False
        key: Any = object()
        index, source = wanted.index, wanted.source
        if isinstance(source, FedVideo):
            index, key, source = source.index, ("fed", source.number), source.encoded
        elif not isinstance(source, np.ndarray):
            index, key = POOL.index(source), key_of(source)
        assert index is not None
        size = wanted.height * wanted.width * self._colors.channels * self._dtype.itemsize
        first = int(there.min())
        try:
            with decoders.video(runtime, source, key, index, first) as video:
                if video.size(wanted.orientation) != (wanted.height, wanted.width):
                    return False
                stream = video.session.stream
                self._fill_in(runtime, stream, wanted, place, size)
                for frame, at in video.frames(numbers.tolist()):
                    for number in at:
                        write_colors(
                            *(runtime, stream, frame.planes, self._colors, place + number * size),
                            self._dtype,
                            full=video.is_full,
                            colorspace=video.colorspace,
                            orientation=wanted.orientation,
                        )
                    runtime.synchronize(stream)  # the decoder's memory is written to again
        except Exception:  # whatever the decoder says, the CPU knows what is wrong with the file
            return False
        return True

    def _fill_in(
        self, runtime: Runtime, stream: int, wanted: Wanted, place: int, size: int
    ) -> None:
        """Write the frames that are not there."""
        missing = np.flatnonzero(wanted.numbers < 0).tolist()
        if not missing:
            return
        frame = np.empty((wanted.height, wanted.width, len(self._fill)), self._dtype)
        frame[:] = self._fill
        for number in missing:
            runtime.copy(place + number * size, frame.ctypes.data, size, stream, may_wait=True)
        runtime.synchronize(stream)

    def _by_cpu(self, queue: Queue, wanted: Wanted, place: int) -> None:
        from headrace.kernels.cpu.video.frame_reader import upright_colors
        from headrace.kernels.cpu.video.pool import opened

        numbers, runtime = wanted.numbers, queue.runtime
        shape = (len(numbers), wanted.height, wanted.width, self._colors.channels)
        out: np.ndarray = queue.pinned.empty(shape, self._dtype)
        out[numbers < 0] = self._fill
        first = int(numbers[0]) if len(numbers) else 0
        if isinstance(wanted.source, FedVideo):
            standing = wanted.source.opened(first)
        else:
            standing = opened(wanted.source, first, wanted.index)
        with standing as video:
            size = video.size(wanted.orientation)
            if size != (wanted.height, wanted.width):
                raise BadSampleError(has_changed(size, (wanted.height, wanted.width)))
            colors = upright_colors(self._colors, wanted.orientation)
            video.read(numbers.tolist(), out, colors)
        if not out.nbytes:
            return
        stream = runtime.acquire_stream()
        try:
            runtime.copy(place, out.ctypes.data, out.nbytes, stream)
            runtime.synchronize(stream)
        finally:
            runtime.release_stream(stream)


def has_changed(size: tuple[int, int], listed: tuple[int, int]) -> str:
    """Reason for which a video of `size` cannot be read, which had that of `listed`."""
    return (
        f"The video has {size[0]} x {size[1]} pixels, and had {listed[0]} x {listed[1]} when it "
        "was listed: the file has changed."
    )


def in_threads(c: BatchContext, function: Callable[[int], Any]) -> list[Any]:
    """Results of a function for the number of each sample; what it raises is a result."""

    def one(k: int) -> Any:
        try:
            return function(k)
        except Exception as error:
            return error

    with ThreadPoolExecutor(max(c.threads, 1)) as threads:
        return list(threads.map(one, range(c.size)))
