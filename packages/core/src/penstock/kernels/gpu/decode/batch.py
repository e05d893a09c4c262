"""Decode a batch of images into device memory: who decodes which of them, and where to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from penstock.kernels.cpu.decode.exif import UPRIGHT, stored_region, turned
from penstock.kernels.cpu.decode.pixels import Wanted
from penstock.kernels.gpu.decode.cache import Cached, DecodedCache
from penstock.kernels.gpu.decode.convert import Decoded, convert
from penstock.kernels.gpu.decode.host import HostDecoding, Sample
from penstock.kernels.gpu.decode.nvimagecodec import (
    DeviceDecoder,
    DeviceMemory,
    decoder_of,
    host_threads,
)
from penstock.kernels.gpu.decode.options import DecoderOptions

if TYPE_CHECKING:
    from penstock.tensors.gpu.batch import DeviceBatch
    from penstock.tensors.gpu.queue import Queue

_ALIGNMENT = 64


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
    decoder = decoder_of(queue.runtime, options, threads, count)
    host = HostDecoding(queue, wanted, host_threads(queue.runtime, threads))
    by_color: dict[str, list[Sample]] = {}
    for sample in samples:
        _, data, header, region, shape = sample
        color = wanted.stored_color(shape[2])
        if decoder is not None and decoder.takes(data, header, color, region):
            by_color.setdefault(color, []).append(sample)
        else:
            host.submit(sample, addresses[sample.position])
    rejected: list[Sample] = []
    for color, group in by_color.items():
        assert decoder is not None
        rejected += _decode_on_device(queue, decoder, group, color, wanted, addresses)
    for sample in rejected:
        host.submit(sample, addresses[sample.position])
    failures = host.finish()
    for sample in rejected:
        if sample.position not in failures:
            assert decoder is not None
            decoder.note_rejected(sample.header.codec)
    return out, failures


class _Plan(NamedTuple):
    """How one image reaches its place."""

    region: tuple[int, int, int, int] | None
    """Of the image as it is stored."""
    shape: tuple[int, int, int]
    """Of the image as it is stored, or of `region`."""
    dtype: np.dtype
    orientation: int
    """What is still to be undone."""
    is_final: bool
    """Whether decoded pixels need no conversion."""


def _plan(sample: Sample, wanted: Wanted, channels: int) -> _Plan:
    _, _, header, region, (height, width, _) = sample
    native = header.dtype
    assert native is not None
    orientation = header.orientation if wanted.adjust_orientation else UPRIGHT
    final = orientation == UPRIGHT and native == wanted.dtype and wanted.color != "YCbCr"
    if orientation != UPRIGHT:
        if region is not None:
            region = stored_region(region, *header.size(True), orientation)
        if turned(orientation):
            height, width = width, height
    return _Plan(region, (height, width, channels), native, orientation, final)


def _decode_on_device(
    queue: Queue,
    decoder: DeviceDecoder,
    samples: list[Sample],
    color: str,
    wanted: Wanted,
    addresses: list[int],
) -> list[Sample]:
    """Decode samples to `color`, and what has to follow; return those that are refused."""
    channels = 1 if color == "GRAY" else 3
    plans = [_plan(sample, wanted, channels) for sample in samples]
    places = [addresses[sample.position] for sample in samples]
    unfinished = [i for i, plan in enumerate(plans) if not plan.is_final]
    if unfinished:
        sizes = np.array([_bytes(plans[i]) for i in unfinished], np.int64)
        sizes = -(-sizes // _ALIGNMENT) * _ALIGNMENT
        between = queue.empty(sizes[:, np.newaxis], np.uint8, settled=True)
        queue.keep(between)
        for i, place in zip(unfinished, between.pointers.tolist(), strict=True):
            places[i] = place
    targets: list[Any]
    if decoder.on_host:
        targets = [queue.pinned.empty(plan.shape, plan.dtype) for plan in plans]
    else:
        stream = queue.stream
        targets = [
            DeviceMemory(place, plan.shape, plan.dtype.str, stream)
            for place, plan in zip(places, plans, strict=True)
        ]
    good, kept = decoder.decode(
        [sample.data for sample in samples],
        [plan.region for plan in plans],
        [plan.shape for plan in plans],
        targets,
        color,
        queue.stream,
    )
    queue.keep(kept)
    if decoder.on_host:
        queue.keep(targets)
        for array, place in zip(targets, places, strict=True):
            queue.runtime.copy(place, array.ctypes.data, array.nbytes, queue.stream)
    waiting: dict[np.dtype, list[Decoded]] = {}
    for i in unfinished:
        if good[i]:
            plan = plans[i]
            target = addresses[samples[i].position]
            image = Decoded(places[i], target, *plan.shape, plan.orientation)
            waiting.setdefault(plan.dtype, []).append(image)
    for native, images in waiting.items():
        convert(queue, images, native, wanted.dtype, ycbcr=wanted.color == "YCbCr")
    for codec in {sample.header.codec for sample, well in zip(samples, good, strict=True) if well}:
        decoder.note_success(codec)
    if all(good):
        return []
    return [sample for sample, well in zip(samples, good, strict=True) if not well]


def _bytes(plan: _Plan) -> int:
    height, width, channels = plan.shape
    return height * width * channels * plan.dtype.itemsize
