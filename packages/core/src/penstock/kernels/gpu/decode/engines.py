"""The JPEG engines of a GPU: circuits that decode baseline JPEG while its multiprocessors compute.

They are driven through nvJPEG itself. nvImageCodec would drive them as well, but hands each image
through objects and thread pools of its own, which takes longer than decoding it: an H200 decodes
32,000 photographs of 400 x 500 pixels a second this way, and at most 17,700 that way. And where it
has several decoders, it depends on the timing of threads which of them an image meets.

What nvJPEG's documentation does not say, and measurements on an H200 did:

* A call takes as long as decoding takes, and keeps a processor busy meanwhile.
* Two threads that decode at once are slower than one, so they take turns.
* The outputs are written without regard to the stream (see `penstock.tensors.gpu.pool`).
"""

from __future__ import annotations

import threading
from collections import defaultdict
from typing import TYPE_CHECKING

import numpy as np

from penstock.kernels.cpu.decode.image_header import ImageHeader
from penstock.kernels.gpu.decode import nvjpeg
from penstock.kernels.gpu.decode.options import DecoderOptions

if TYPE_CHECKING:
    from penstock.kernels.gpu.decode.job import Job
    from penstock.tensors.gpu.runtime import Event, Runtime

_turns: defaultdict[int, threading.Lock] = defaultdict(threading.Lock)
"""By device: who decodes holds the lock."""


class JpegEngines:
    """Decodes batches by the JPEG engines of one device; used by one thread at a time.

    Parameters
    ----------
    runtime
        The device, which is the calling thread's.
    options
        How to decode.
    batch_size
        How many images to expect at once.

    Raises
    ------
    RuntimeError, OSError, AttributeError
        If the device has none, or nvJPEG is not there.

    Attributes
    ----------
    cuts
        Whether regions can be decoded. nvJPEG before 13.2 interpolates chroma wrongly at their
        edges.
    """

    def __init__(self, runtime: Runtime, options: DecoderOptions, batch_size: int) -> None:
        self.cuts = not options.fancy_upsampling
        self._runtime = runtime
        self._turn = _turns[runtime.device_id]
        self._done: Event | None = None
        self._known: set[tuple[str, int, int]] = set()
        """Kinds of images that the engines decode; to ask nvJPEG takes 7 microseconds."""
        with self._turn:
            self._engines = nvjpeg.Engines(
                interpolate=options.fancy_upsampling,
                batch_size=max(1, batch_size),
                width=max(1, options.preallocate_width),
                height=max(1, options.preallocate_height),
            )

    def takes(self, data: np.ndarray, header: ImageHeader) -> bool:
        """Whether the engines decode this JPEG image, which `jpeg_for_gpu` has let pass."""
        kind = header.sampling, header.height.bit_length(), header.width.bit_length()
        if kind in self._known:
            return True
        taken = self._engines.take(data.ctypes.data, data.size)
        if taken and header.sampling:
            self._known.add(kind)
        return taken

    def decode(self, job: Job, stream: int) -> list[bool]:
        """Decode images as they are stored, and return for each whether that went well.

        May run in another thread than where the engines were made, if the device is its own, too.
        """
        count = len(job.plans)
        sources = np.array([s.data.ctypes.data for s in job.samples], np.uint64)
        sizes = np.array([s.data.size for s in job.samples], np.uint64)
        targets = np.zeros(count, nvjpeg.IMAGE)
        targets["channel"][:, 0] = job.places
        targets["pitch"][:, 0] = [p.shape[1] * p.shape[2] for p in job.plans]
        regions = [p.region for p in job.plans]
        good = np.ones(count, bool)

        def decode(begin: int, end: int) -> None:
            """Decode these; where that fails, look for the culprit."""
            some = slice(begin, end)
            if self._engines.decode(
                sources[some], sizes[some], targets[some], regions[some], job.color, stream
            ):
                return
            if end - begin == 1:
                good[begin] = False
                return
            middle = (begin + end) // 2
            decode(begin, middle)
            decode(middle, end)

        with self._turn:
            if self._done is not None:
                self._done.synchronize()  # what nvJPEG has in memory of its own is still read
            decode(0, count)
            self._done = self._runtime.record(stream)
        return good.tolist()
