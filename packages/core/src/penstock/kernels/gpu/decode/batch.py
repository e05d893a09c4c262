"""Decode a batch of images into device memory: who decodes which of them, and where to."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import wait
from typing import TYPE_CHECKING

import numpy as np

from penstock.kernels.cpu.decode.pixels import Wanted
from penstock.kernels.gpu.decode.cache import Cached, DecodedCache
from penstock.kernels.gpu.decode.decoders import decoders_of, host_threads, thread_of_engines
from penstock.kernels.gpu.decode.engines import JpegEngines
from penstock.kernels.gpu.decode.host import HostDecoding, Sample
from penstock.kernels.gpu.decode.job import Job
from penstock.kernels.gpu.decode.nvimagecodec import DeviceDecoder
from penstock.kernels.gpu.decode.options import DecoderOptions

if TYPE_CHECKING:
    from penstock.tensors.gpu.batch import DeviceBatch
    from penstock.tensors.gpu.queue import Queue


def decode_batch(
    queue: Queue,
    samples: list[Sample],
    count: int,
    wanted: Wanted,
    options: DecoderOptions,
    threads: int = 0,
    cached: Sequence[tuple[int, Cached]] = (),
    cache: DecodedCache | None = None,
) -> tuple[DeviceBatch, dict[int, Exception]]:
    """Queue the decoding of a batch. Waits for the decoders' work on the CPU.

    Parameters
    ----------
    queue
        Where the work goes.
    samples
        The images, in the order of the batch. What has no image stays empty.
    count
        Number of samples of the batch.
    wanted, options
        What the pixels are to be like, and how the device decodes.
    threads
        How many threads of the CPU may take part; 0 for as many as there are processors.
    cached, cache
        Samples that have been decoded before, with their places in the batch, and where they are.

    Returns
    -------
    The batch, HWC, and for each sample that no decoder could decode its error. Those samples hold
    arbitrary values.
    """
    shapes = np.zeros((count, 3), np.int64)
    if samples:
        shapes[[s.position for s in samples]] = [s.shape for s in samples]
    for position, image in cached:
        shapes[position] = image.shape
    out = queue.empty(shapes, wanted.dtype, settled=True)
    addresses = out.pointers.tolist()
    if cache is not None and cached:
        cache.fetch(queue, [image for _, image in cached], [addresses[p] for p, _ in cached])
    decoders = decoders_of(queue.runtime, options, threads)
    decoders.begin(count)
    host = HostDecoding(queue, wanted, host_threads(queue.runtime, threads))
    by_decoder: dict[tuple[JpegEngines | DeviceDecoder, str], list[Sample]] = {}
    for sample in samples:
        color = wanted.stored_color(sample.shape[2])
        decoder = decoders.choose(sample, color)
        if decoder is None:
            host.submit(sample, addresses[sample.position])
        else:
            by_decoder.setdefault((decoder, color), []).append(sample)
    by_engines, by_others = [], []
    for (decoder, color), some in by_decoder.items():
        job = Job.of(queue, some, color, wanted, addresses, cuts=decoder.cuts)
        if isinstance(decoder, JpegEngines):
            by_engines.append((decoder, job))
        else:
            by_others.append((decoder, job))
    rejected: list[tuple[DeviceDecoder | None, Sample]] = []
    for decoder, job, good in _decode(queue, by_engines, by_others):
        for sample in job.finish(queue, good, wanted):
            rejected.append((decoder, sample))
            host.submit(sample, addresses[sample.position])
    failures = host.finish()
    for decoder, sample in rejected:
        if decoder is not None and sample.position not in failures:
            decoder.note_rejected(sample.header.codec)
    return out, failures


def _decode(
    queue: Queue,
    by_engines: list[tuple[JpegEngines, Job]],
    by_others: list[tuple[DeviceDecoder, Job]],
) -> Iterator[tuple[DeviceDecoder | None, Job, list[bool]]]:
    """Decode, by engines and others at the same time.

    Yields
    ------
    Decoder (`None` for engines) and job, and for each image whether it was decoded.
    """
    queue.keep(by_engines)
    if not by_others:
        for engines, job in by_engines:
            yield None, job, engines.decode(job, queue.stream)
        return
    beside = thread_of_engines(queue.runtime)
    waiting = [beside.submit(engines.decode, job, queue.stream) for engines, job in by_engines]
    try:
        for decoder, job in by_others:
            yield decoder, job, decoder.decode(queue, job)
    finally:
        wait(waiting)  # they write to memory that is let go of otherwise
    for (_, job), found in zip(by_engines, waiting, strict=True):
        yield None, job, found.result()
