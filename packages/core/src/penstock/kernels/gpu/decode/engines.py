"""The JPEG engines of a GPU: circuits that decode baseline JPEG while its multiprocessors compute.

They are driven through nvJPEG itself. nvImageCodec would drive them as well, but it takes several
objects and much of the interpreter's time for each image: an H200 decodes 30,000 photographs of 400
x 480 pixels a second this way, and 13,000 that way in batches of 64, 21,000 in batches of 256. And
where it has other decoders beside, it depends on the timing of threads which of them an image
meets, and so the last bits of its pixels.

What nvJPEG's documentation does not say, and measurements on an H200 did:

* A call takes as long as decoding takes, and keeps a processor busy meanwhile.
* Threads and processes have to take turns (see `penstock.kernels.gpu.decode.turns`).
* The outputs may be written without regard to the stream (see `penstock.tensors.gpu.pool`).
* Damaged scans are decoded to something, without an error, and harm no other image.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from penstock.kernels.cpu.decode.image_header import ImageHeader
from penstock.kernels.cpu.decode.jpeg_scan import SAMPLINGS
from penstock.kernels.gpu.decode import nvjpeg
from penstock.kernels.gpu.decode.nvjpeg import Tables
from penstock.kernels.gpu.decode.options import DecoderOptions
from penstock.kernels.gpu.decode.turns import turns_of

if TYPE_CHECKING:
    from penstock.kernels.gpu.decode.job import Job
    from penstock.kernels.gpu.decode.plain import PlainJob, PlainJpegs
    from penstock.tensors.gpu.runtime import Event, Runtime


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
    RuntimeError, OSError, ImportError
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
        self._turn = turns_of(_name(runtime))
        self._done: Event | None = None
        self._known: set[int] = set()
        """Kinds of images that the engines decode, by sampling and by the number of bits that
        height and width have; to ask nvJPEG about each image takes 7 microseconds.
        """
        with self._turn.threads:
            self._engines = nvjpeg.Engines(
                interpolate=options.fancy_upsampling,
                batch_size=max(1, batch_size),
                width=max(1, options.preallocate_width),
                height=max(1, options.preallocate_height),
            )

    def takes(self, data: np.ndarray, header: ImageHeader) -> bool:
        """Whether the engines decode this JPEG image, which `jpeg_for_gpu` has let pass."""
        if not header.sampling:
            return self._ask(data)
        sampling = SAMPLINGS.index(header.sampling)
        kind = (header.height.bit_length() * 64 + header.width.bit_length()) * 8 + sampling
        return kind in self._known or self._learn(kind, data)

    def take(self, images: PlainJpegs) -> np.ndarray:
        """For each of some plain images whether the engines decode it."""
        facts = images.scanned.facts[images.positions]
        lengths = np.frexp(facts[:, :2])[1]
        kinds = (lengths[:, 0] * 64 + lengths[:, 1]) * 8 + facts[:, 3]
        found, firsts, which = np.unique(kinds, return_index=True, return_inverse=True)
        taken = np.array(
            [
                kind in self._known or self._learn(kind, images.rows[images.positions[first]])
                for kind, first in zip(found.tolist(), firsts.tolist(), strict=True)
            ],
            bool,
        )
        return taken[which]

    def _learn(self, kind: int, data: np.ndarray) -> bool:
        taken = self._ask(data)
        if taken:
            self._known.add(kind)
        return taken

    def _ask(self, data: np.ndarray) -> bool:
        return self._engines.take(data.ctypes.data, data.size)

    def decode(self, jobs: Sequence[Job | PlainJob], stream: int) -> list[np.ndarray]:
        """Decode images as they are stored, and return for each of each job whether it went well.

        May run in another thread than where the engines were made, if the device is its own, too.
        """
        found: list[np.ndarray] = [np.empty(0, bool)] * len(jobs)
        with self._turn:
            if self._done is not None and not self._done.done():
                self._done.synchronize()  # what nvJPEG has in memory of its own is still read
            for color in {job.color for job in jobs}:
                numbers = [n for n, job in enumerate(jobs) if job.color == color]
                tables = [jobs[n].tables() for n in numbers]
                good = self._decode(Tables.together(tables), color, stream)
                ends = np.cumsum([len(table.sources) for table in tables])
                for n, part in zip(numbers, np.split(good, ends[:-1]), strict=True):
                    found[n] = part
            self._done = self._runtime.record(stream)
        return found

    def _decode(self, tables: Tables, color: str, stream: int) -> np.ndarray:
        """Decode a batch; where that fails, look for the culprits."""
        count = len(tables.sources)
        if self._engines.decode(tables, color, stream):
            return np.ones(count, bool)
        if count == 1:
            return np.zeros(1, bool)
        halves = tables.part(0, count // 2), tables.part(count // 2, count)
        return np.concatenate([self._decode(half, color, stream) for half in halves])


def _name(runtime: Runtime) -> str:
    """What the device is called in all processes: numbers of devices are a process's own."""
    try:
        name: str = runtime.xp.cuda.runtime.deviceGetPCIBusId(runtime.device_id)
    except AttributeError:
        return f"{runtime.name} {runtime.device_id}"
    return name
