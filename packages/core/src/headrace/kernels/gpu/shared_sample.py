"""One sample in device memory that all samples of all batches share: a constant."""

from __future__ import annotations

import numpy as np

from headrace.kernels.gpu.transfer import to_device
from headrace.tensors.gpu.batch import DeviceBatch, note_use
from headrace.tensors.gpu.queue import Queue


class SharedSample:
    """A copy of an array on the device, made once."""

    def __init__(self, queue: Queue, array: np.ndarray) -> None:
        self._one = to_device(queue, [array])
        self._stream = queue.stream
        self._event = queue.runtime.record(queue.stream)

    def batch(self, queue: Queue, size: int) -> DeviceBatch:
        """A batch of `size` such samples, for work of `queue`."""
        one = self._one
        if queue.stream != self._stream:
            queue.runtime.wait(queue.stream, self._event)
            note_use(one.owners, queue.stream)
        return DeviceBatch(
            one.runtime,
            one.owners,
            np.repeat(one.pointers, size),
            np.broadcast_to(one.shapes, (size, one.ndim)),
            one.dtype,
        )
