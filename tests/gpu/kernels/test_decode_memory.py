"""Decoders do not write to memory that is still being read: the hardware decoder does not wait."""

from __future__ import annotations

import numpy as np

from headrace.kernels.cpu.decode.header import read_header
from headrace.kernels.cpu.decode.pixels import PixelFormat
from headrace.kernels.gpu.decode.host import Sample
from headrace.kernels.gpu.decode.options import DecoderOptions
from headrace.tensors.gpu.device import get_device
from tests.support.encoded_images import jpegs
from tests.support.gpu.decoding import decode_batch

COUNT = 32


def test_memory_that_is_dropped_while_work_reads_it(gpu_runtime):
    device = get_device(0)
    stream = gpu_runtime.acquire_stream()
    queue = device.queue(stream)
    wanted = PixelFormat("RGB", np.dtype(np.uint8))
    data = np.frombuffer(jpegs()["jpeg-200x300"], np.uint8)
    header = read_header(data.data)
    samples = [Sample(i, data, header, None, wanted.shape(header)) for i in range(COUNT)]
    options = DecoderOptions(hardware_load=1.0)

    def decoded():
        return decode_batch(queue, samples, COUNT, wanted, options, 2)[0]

    decoded()  # what a decoder prepares must not hide what is looked for
    gpu_runtime.synchronize(stream)
    queue.finish()
    large = queue.empty([[256 << 20]], np.uint8)
    begin = int(large.pointers[0])
    for _ in range(5):
        batch = decoded()
        gpu_runtime.synchronize(stream)
        place, size = int(batch.pointers[0]), int(batch.sizes().sum())
        gpu_runtime.fill(place, 7, size, stream)
        # Some tens of milliseconds of work, and behind it the only reader of the batch.
        for _ in range(100 if gpu_runtime.xp is not np else 1):
            gpu_runtime.copy(begin, begin + (128 << 20), 128 << 20, stream)
        copy = queue.pinned.empty(size, np.uint8)
        gpu_runtime.copy(copy.ctypes.data, place, size, stream)
        del batch
        again = decoded()
        gpu_runtime.synchronize(stream)
        assert (copy == 7).all()
        del again
        queue.finish()
    gpu_runtime.release_stream(stream)
