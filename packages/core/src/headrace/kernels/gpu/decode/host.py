"""Decode on the CPU, in threads, what no decoder of the device takes, and upload it."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import NamedTuple

import numpy as np

from headrace.errors import HeadraceError
from headrace.kernels.cpu.decode.image_header import ImageHeader
from headrace.kernels.cpu.decode.pixels import PixelFormat, decode
from headrace.kernels.cpu.decode.stored import Region
from headrace.tensors.gpu.pinned import is_pinned
from headrace.tensors.gpu.queue import Queue
from headrace.tensors.pool import HOST_POOL


class Sample(NamedTuple):
    """One encoded image of a batch."""

    position: int
    """In the batch."""
    data: np.ndarray
    """The encoded image: contiguous 1-D uint8."""
    header: ImageHeader
    region: Region | None
    """Region of the upright image to decode; `None` for all of it."""
    shape: tuple[int, int, int]
    """Of the output, HWC."""


def without_frames(error: Exception) -> Exception:
    """`error`; if it is one of ours, without its traceback, whose frames keep the batch alive."""
    return error.with_traceback(None) if isinstance(error, HeadraceError) else error


class HostDecoding:
    """Samples of one batch that are decoded on the CPU.

    `queue`: what has page-locked memory.
    """

    def __init__(
        self, queue: Queue, wanted: PixelFormat, threads: ThreadPoolExecutor | None
    ) -> None:
        self._queue = queue
        self._wanted = wanted
        self._threads = threads
        self._running: list[tuple[Sample, int, Callable[[], np.ndarray]]] = []

    def submit(self, sample: Sample, target: int) -> None:
        """Let `sample` be decoded, and be copied to the address `target` by `finish`."""
        result: Callable[[], np.ndarray] = partial(self._decode, sample)
        if self._threads is not None:
            result = self._threads.submit(result).result
        self._running.append((sample, target, result))

    def finish(self, queue: Queue) -> dict[int, Exception]:
        """Queue the uploads of all that was submitted; return what failed, and why.

        `queue` is one for the stream that images are to be read on.
        """
        failures: dict[int, Exception] = {}
        for sample, target, result in self._running:
            try:
                pixels = result()
            except Exception as error:
                failures[sample.position] = without_frames(error)
                continue
            queue.keep(pixels)
            queue.runtime.copy(target, pixels.ctypes.data, pixels.nbytes, queue.stream)
        self._running = []
        return failures

    def _decode(self, sample: Sample) -> np.ndarray:
        """The pixels of `sample`, contiguous, in page-locked memory."""
        pinned = self._queue.pinned.empty
        pixels = decode(
            sample.data, sample.header, self._wanted, sample.region, pinned, HOST_POOL.empty
        )
        if pixels.flags.c_contiguous and is_pinned(pixels):
            return pixels
        copied = pinned(pixels.shape, pixels.dtype)
        np.copyto(copied, pixels)
        return copied
