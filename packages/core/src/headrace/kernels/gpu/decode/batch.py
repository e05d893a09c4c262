"""Decode a batch of images into device memory: who decodes which of them, and where to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from headrace.kernels.cpu.decode.pixels import PixelFormat
from headrace.kernels.gpu.decode.cache import Cached, DecodedCache
from headrace.kernels.gpu.decode.decoders import (
    Decoders,
    decoders_of,
    host_threads,
)
from headrace.kernels.gpu.decode.engines import JpegEngines
from headrace.kernels.gpu.decode.host import HostDecoding, Sample
from headrace.kernels.gpu.decode.job import Job
from headrace.kernels.gpu.decode.nvimagecodec import DeviceDecoder
from headrace.kernels.gpu.decode.options import DecoderOptions
from headrace.kernels.gpu.decode.plain import PlainJob, PlainJpegs
from headrace.tensors.gpu.batch import DeviceBatch
from headrace.tensors.gpu.queue import Queue

Finish = Callable[["Queue"], dict[int, Exception]]
"""Function that completes the decoding of a batch; see `begin_decoding`."""


def begin_decoding(
    queue: Queue,
    samples: list[Sample],
    count: int,
    wanted: PixelFormat,
    options: DecoderOptions,
    threads: int = 0,
    cached: Sequence[tuple[int, Cached]] = (),
    cache: DecodedCache | None = None,
    plain: PlainJpegs | None = None,
) -> tuple[DeviceBatch, Finish]:
    """Begin to decode a batch.

    Returns the batch, HWC, and a function to call before the batch is read, with a queue of the
    same stream: it waits for the JPEG engines, queues the rest, and returns errors by sample.
    """
    if plain is not None and len(plain.positions) == count:
        shapes = plain.shapes
    else:
        shapes = np.zeros((count, 3), np.int64)
    if samples:
        shapes[[s.position for s in samples]] = [s.shape for s in samples]
    if plain is not None and shapes is not plain.shapes:
        shapes[plain.positions] = plain.shapes
    for position, image in cached:
        shapes[position] = image.shape
    out = queue.empty(shapes, wanted.dtype, quiesced=True)
    if cache is not None and cached:
        places = out.pointers.tolist()
        cache.fetch(queue, [image for _, image in cached], [places[p] for p, _ in cached])
    decoders = decoders_of(queue.runtime, options, threads)
    decoders.begin(count)
    host = HostDecoding(queue, wanted, host_threads(queue.runtime, threads))
    work = _assigned(queue, samples, plain, wanted, decoders, out, host)
    queue.keep(work.for_engines)
    running = None
    if work.engines is not None and work.for_engines:
        running = work.engines.begin(work.for_engines, queue.stream, out)
    # Meanwhile:
    others = [(decoder, job, decoder.decode(queue, job)) for decoder, job in work.for_others]

    def finish(queue: Queue) -> dict[int, Exception]:
        done: list[tuple[DeviceDecoder | None, Job | PlainJob, Any]] = list(others)
        if running is not None:
            found = running.wait()
            done += [(None, *each) for each in zip(work.for_engines, found, strict=True)]
        rejected: list[tuple[DeviceDecoder | None, Sample]] = []
        for decoder, job, good in done:
            for sample in job.finish(queue, good, wanted):
                rejected.append((decoder, sample))
                host.submit(sample, int(out.pointers[sample.position]))
        failures = host.finish(queue)
        for decoder, sample in rejected:
            if decoder is not None and sample.position not in failures:
                decoder.note_rejected(sample.header.codec)
        return failures

    return out, finish


class _Assignment(NamedTuple):
    """Assignment of images to the device's decoders."""

    engines: JpegEngines | None
    for_engines: list[Job | PlainJob]
    for_others: list[tuple[DeviceDecoder, Job]]


def _assigned(
    queue: Queue,
    samples: list[Sample],
    plain: PlainJpegs | None,
    wanted: PixelFormat,
    decoders: Decoders,
    out: DeviceBatch,
    host: HostDecoding,
) -> _Assignment:
    """Choose a decoder for each image; what is for the CPU is submitted to `host`."""
    engines: JpegEngines | None = None
    for_engines: list[Job | PlainJob] = []
    for_others: list[tuple[DeviceDecoder, Job]] = []
    if plain is not None:
        engines, chosen = decoders.for_engines(plain)
        if chosen.any():
            images = plain.only(chosen)
            targets = out.pointers[images.positions]
            for_engines.append(PlainJob(images, targets, wanted.color))
        if not chosen.all():
            samples = samples + plain.only(~chosen).samples()
    addresses = out.pointers.tolist() if samples else []
    by_decoder: dict[tuple[JpegEngines | DeviceDecoder, str], list[Sample]] = {}
    for sample in samples:
        color = wanted.stored_color(sample.shape[2])
        decoder = decoders.choose(sample, color)
        if decoder is None:
            host.submit(sample, addresses[sample.position])
        else:
            by_decoder.setdefault((decoder, color), []).append(sample)
    for (decoder, color), some in by_decoder.items():
        job = Job.of(queue, some, color, wanted, addresses, cuts=decoder.cuts)
        if isinstance(decoder, JpegEngines):
            engines = decoder
            for_engines.append(job)
        else:
            for_others.append((decoder, job))
    return _Assignment(engines, for_engines, for_others)
