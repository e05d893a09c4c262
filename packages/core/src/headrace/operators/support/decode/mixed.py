"""Decoding of a batch from bytes on the host to pixels on the GPU.

Plain JPEG images that are wanted as they are, whole or cut at random, go through no loop. Headers
and windows of the others come from the code of the CPU's side, sample by sample: some 5
microseconds each. The rest is `headrace.kernels.gpu.decode`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.errors import BadSamplesError
from headrace.kernels.cpu.decode.pixels import PixelFormat
from headrace.operators.support.decode.encoded import open_encoded
from headrace.operators.support.operator import BatchContext, HostBatch
from headrace.operators.support.planning import SampleContexts, sample_of
from headrace.tensors.gpu.batch import DeviceBatch
from headrace.tensors.gpu.queue import Queue

if TYPE_CHECKING:
    from headrace.kernels.gpu.decode.cache import Cached, CacheOptions
    from headrace.kernels.gpu.decode.options import DecoderOptions
    from headrace.kernels.gpu.decode.plain import PlainJpegs
    from headrace.operators.support.decode.image_decoder import ImageDecoder


def decode_mixed(
    op: ImageDecoder, c: BatchContext, wanted: PixelFormat, encoded: HostBatch, *others: HostBatch
) -> DeviceBatch:
    """Decode a batch onto the GPU; what waits for decoders is deferred."""
    from headrace.kernels.cpu.decode.jpeg_scan import scan_jpegs
    from headrace.kernels.gpu.decode.batch import begin_decoding
    from headrace.kernels.gpu.decode.cache import cache_of
    from headrace.kernels.gpu.decode.host import Sample, without_frames
    from headrace.kernels.gpu.decode.plain import plain_jpegs

    alone = SampleContexts(op, c)
    samples: list[Sample] = []
    failures: dict[int, Exception] = {}
    options, caching = op.gpu_options
    cache = None if caching is None else cache_of(op, c.queue, caching)
    cached: list[tuple[int, Cached]] = []
    scanned = encoded.scanned  # as soon as the files were read
    if scanned is None:
        scanned = scan_jpegs(encoded.rows)
    plain = None
    if cache is None:
        regions = None
        # Where chroma is interpolated, windows are cut from whole images.
        if op.has_window and not options.fancy_upsampling:
            regions = op.regions_of_unknown(c, scanned.facts[:, :2])
        if not op.has_window or regions is not None:
            plain = plain_jpegs(encoded, scanned, wanted, regions)
    large = op.too_large(c, scanned.facts) if scanned.plain else {}
    if large and plain is not None:
        failures.update({k: without_frames(error) for k, error in large.items()})
        plain = plain.only(~np.isin(plain.positions, list(large)))
    headers = scanned.headers() if op.has_window and plain is None else None
    for index in _others(plain, c.size):
        if index in failures:
            continue
        row = encoded.rows[index]
        if cache is not None and (image := cache.find(c.source(index))) is not None:
            cached.append((index, image))
            continue
        try:
            data, header = row, headers[index] if headers is not None else None
            if header is None:
                data, header = open_encoded(row)
            height, width, channels = wanted.shape(header)
            size = np.array([[height, width]], np.int64)
            for error in op.too_large(alone.context(index), size).values():
                raise error
            found = op.regions(alone.context(index), size, *(sample_of(o, index) for o in others))
            region = None if found is None else tuple(found[0].tolist())
        except Exception as error:
            failures[index] = without_frames(error)
            continue
        if region is not None:
            if region == (0, 0, height, width):
                region = None
            else:
                height, width = region[2] - region[0], region[3] - region[1]
        samples.append(Sample(index, data, header, region, (height, width, channels)))
    batch, finish = begin_decoding(
        c.queue, samples, c.size, wanted, options, c.threads, cached, cache, plain
    )

    def end(queue: Queue) -> None:
        failures.update(finish(queue))
        if cache is not None:
            places = batch.pointers.tolist()
            sizes = (batch.sizes() * batch.dtype.itemsize).tolist()
            decoded = [
                (c.source(i), places[i], shape, sizes[i])
                for i, *_, shape in samples
                if i not in failures
            ]
            cache.store(queue, decoded)
        if failures:
            located = {c.indices[i]: _located(c, failures[i], i) for i in sorted(failures)}
            raise BadSamplesError(located)

    if cache is None:
        c.queue.defer(end)
    else:
        end(c.queue)  # what it stores must be found by the next batch
    return batch


def _others(plain: PlainJpegs | None, count: int) -> Iterable[int]:
    """Indices of the images that are not plain."""
    if plain is None:
        return range(count)
    if len(plain.positions) == count:
        return ()
    alone = np.ones(count, bool)
    alone[plain.positions] = False
    found: list[int] = np.flatnonzero(alone).tolist()
    return found


def decoder_options(args: Any) -> DecoderOptions:
    """Options for decoding on the GPU, from a decoder's arguments."""
    from headrace.kernels.gpu.decode.options import DecoderOptions

    return DecoderOptions(
        hardware_load=args.hw_decoder_load,
        fancy_upsampling=args.jpeg_fancy_upsampling,
        hybrid_huffman_threshold=args.hybrid_huffman_threshold,
        preallocate_width=args.preallocate_width_hint,
        preallocate_height=args.preallocate_height_hint,
        device_padding_bytes=args.device_memory_padding,
        host_padding_bytes=args.host_memory_padding,
        device_padding_jpeg2k_bytes=args.device_memory_padding_jpeg2k,
        host_padding_jpeg2k_bytes=args.host_memory_padding_jpeg2k,
    )


def cache_options(args: Any) -> CacheOptions | None:
    """Options for caching decoded images, from a decoder's arguments; `None` without a cache."""
    size = getattr(args, "cache_size", 0)
    if size <= 0:
        return None
    from headrace.kernels.gpu.decode.cache import CacheOptions

    return CacheOptions(
        size_bytes=size << 20,
        threshold_bytes=args.cache_threshold,
        largest=args.cache_type == "largest",
        batch_copy=args.cache_batch_copy,
        debug=args.cache_debug,
    )


def _located(c: BatchContext, error: Exception, index: int) -> BaseException:
    found = c.located(error, index)
    found.__cause__ = error
    return found
