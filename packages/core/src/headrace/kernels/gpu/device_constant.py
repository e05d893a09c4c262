"""Numbers that kernels need in every iteration, kept in device memory."""

from __future__ import annotations

from weakref import WeakKeyDictionary

import numpy as np

from headrace.tensors.gpu.batch import DeviceBatch
from headrace.tensors.gpu.queue import Queue


class DeviceConstant:
    """An array that is uploaded once for each queue.

    Belongs to an instance of an operator, whose lifetime its memory has. Several threads may run
    the operator at a time, each with a queue of its own.
    """

    __slots__ = ("_memories", "_values")

    def __init__(self, values: np.ndarray) -> None:
        self._values = values
        # Memory is that of one stream: what another drops, or takes, must not be what this reads.
        self._memories: WeakKeyDictionary[Queue, DeviceBatch] = WeakKeyDictionary()

    def address(self, queue: Queue) -> int:
        """Address in device memory, for work of `queue`."""
        memory = self._memories.get(queue)
        if memory is None:
            source = queue.pinned.copy_of(np.ascontiguousarray(self._values))
            queue.keep(source)
            memory = queue.empty((max(source.nbytes, 1),), np.uint8, 1)
            queue.runtime.copy(
                int(memory.pointers[0]), source.ctypes.data, source.nbytes, queue.stream
            )
            self._memories[queue] = memory
        return int(memory.pointers[0])
