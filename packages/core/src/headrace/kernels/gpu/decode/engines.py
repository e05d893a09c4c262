"""The JPEG engines of a GPU: circuits that decode baseline JPEG while its multiprocessors compute.

They are driven through nvJPEG itself. nvImageCodec would drive them as well, but it takes several
objects and much of the interpreter's time for each image: an H200 decodes 30,000 photographs of 400
x 480 pixels a second this way, and 13,000 that way in batches of 64, 21,000 in batches of 256. And
where it has other decoders beside, it depends on the timing of threads which of them an image
meets, and so the last bits of its pixels.

What nvJPEG's documentation does not say, and measurements on an H200 did:

* A call queues images as long as the engines have room for them, two each, and keeps a processor
  busy meanwhile: 20 microseconds for an image, of which the engines take 25. What it queued last is
  still being decoded when it returns.
* A state must not be used again before what it was used for is decoded, or nvJPEG hangs for good.
* From page-locked memory, 40,000 photographs of 400 x 550 pixels a second are decoded, and 35,000
  from other memory.
* Threads and processes have to take turns (see `headrace.kernels.gpu.decode.engine_lock`).
* The outputs may be written without regard to the stream (see `headrace.tensors.gpu.pool`).
* Damaged scans are decoded to something, without an error, and harm no other image.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.kernels.cpu.decode.image_header import ImageHeader
from headrace.kernels.cpu.decode.jpeg_scan import KINDS, SAMPLINGS, kind_of
from headrace.kernels.gpu.decode import nvjpeg
from headrace.kernels.gpu.decode.engine_thread import Running, engine_thread
from headrace.kernels.gpu.decode.nvjpeg import Tables
from headrace.kernels.gpu.decode.options import DecoderOptions
from headrace.tensors.gpu.runtime import Runtime

if TYPE_CHECKING:
    from headrace.kernels.gpu.decode.job import Job
    from headrace.kernels.gpu.decode.plain import PlainJob, PlainJpegs


class JpegEngines:
    """Decodes batches by the JPEG engines of one device; used by one thread at a time.

    `cuts`: whether regions can be decoded. nvJPEG before 13.2 interpolates chroma wrongly at their
    edges.
    """

    def __init__(self, runtime: Runtime, options: DecoderOptions, batch_size: int) -> None:
        self.cuts = not options.fancy_upsampling
        self._thread = engine_thread(runtime)
        self._order = threading.Lock()
        self._known = np.zeros(KINDS, bool)
        """Kinds of images that the engines decode; to ask nvJPEG about each image takes 7
        microseconds.
        """
        driver = getattr(runtime, "driver", None)
        self._engines = self._thread.call(
            lambda: nvjpeg.Engines(
                interpolate=options.fancy_upsampling,
                batch_size=max(1, batch_size),
                width=max(1, options.preallocate_width),
                height=max(1, options.preallocate_height),
                events=None if driver is None else driver.event_functions(),
            )
        )

    def takes(self, data: np.ndarray, header: ImageHeader) -> bool:
        """True if the engines decode this JPEG image, which `jpeg_for_gpu` has accepted."""
        if not header.sampling:
            return self._ask(data)
        sampling = SAMPLINGS.index(header.sampling)
        kind = kind_of(header.height, header.width, sampling)
        return bool(self._known[kind]) or self._learn(kind, data)

    def take(self, images: PlainJpegs) -> np.ndarray:
        """For each of some plain images whether the engines decode it."""
        kinds = images.scanned.facts[images.positions, 4]
        taken: np.ndarray = self._known[kinds]
        if taken.all():
            return taken
        for kind in np.unique(kinds[~taken]).tolist():
            first = images.positions[np.argmax(kinds == kind)]
            self._learn(kind, images.encoded.rows[first])
        return self._known[kinds]  # type: ignore[no-any-return]

    def _learn(self, kind: int, data: np.ndarray) -> bool:
        taken = self._ask(data)
        if taken:
            self._known[kind] = True
        return taken

    def _ask(self, data: np.ndarray) -> bool:
        return self._engines.take(data.ctypes.data, data.size)

    def begin(self, jobs: Sequence[Job | PlainJob], stream: int, keep: Any = None) -> BeingDecoded:
        """Have images decoded as they are stored."""
        batches = []
        for color in {job.color for job in jobs}:
            numbers = [n for n, job in enumerate(jobs) if job.color == color]
            tables = [jobs[n].tables() for n in numbers]
            batches.append(
                (numbers, [len(table.sources) for table in tables], Tables.together(tables), color)
            )
        return BeingDecoded(
            self,
            [(*batch, self.submit(*batch[2:], stream, (jobs, keep))) for batch in batches],
            stream,
            len(jobs),
        )

    def decode(self, jobs: Sequence[Job | PlainJob], stream: int) -> list[np.ndarray]:
        """Decode images as they are stored; for each of each job, whether it went well."""
        return self.begin(jobs, stream).wait()

    def submit(self, tables: Tables, color: str, stream: int, keep: Any) -> Running:
        """Have the engines decode a batch."""
        with self._order:
            job, needed = self._engines.job(tables, color, stream)
            return self._thread.submit(job, (needed, keep))


class BeingDecoded:
    """Images that the engines decode."""

    def __init__(
        self,
        engines: JpegEngines,
        batches: list[tuple[list[int], list[int], Tables, str, Running]],
        stream: int,
        count: int,
    ) -> None:
        self._engines = engines
        self._batches = batches
        self._stream = stream
        self._count = count

    def wait(self) -> list[np.ndarray]:
        """Wait until all is queued; for each image of each job whether it is decoded."""
        found: list[np.ndarray] = [np.empty(0, bool)] * self._count
        for numbers, counts, tables, color, running in self._batches:
            good = self._result(tables, color, running)
            if len(numbers) == 1:
                found[numbers[0]] = good
                continue
            ends = np.cumsum(counts)
            for n, part in zip(numbers, np.split(good, ends[:-1]), strict=True):
                found[n] = part
        return found

    def _result(self, tables: Tables, color: str, running: Running) -> np.ndarray:
        """Result of a batch; if it failed, find the images that failed."""
        count = len(tables.sources)
        if not running.wait():
            return np.ones(count, bool)
        if count == 1:
            return np.zeros(1, bool)
        halves = tables.part(0, count // 2), tables.part(count // 2, count)
        return np.concatenate(
            [
                self._result(half, color, self._engines.submit(half, color, self._stream, self))
                for half in halves
            ]
        )
