"""Numbers that kernels need in every iteration, kept in device memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from penstock.tensors.gpu.batch import DeviceBatch
    from penstock.tensors.gpu.queue import Queue


class DeviceConstant:
    """An array that is uploaded once.

    Belongs to an instance of an operator, whose lifetime its memory has.

    Parameters
    ----------
    values
        The array; it does not change.
    """

    __slots__ = ("_memory", "_queue", "_values")

    def __init__(self, values: np.ndarray) -> None:
        self._values = values
        self._queue: Queue | None = None
        self._memory: DeviceBatch | None = None

    def address(self, queue: Queue) -> int:
        """Where it is, for work of `queue`."""
        if self._memory is None or self._queue is not queue:
            source = queue.pinned.copy_of(np.ascontiguousarray(self._values))
            queue.keep(source)
            self._memory = queue.empty((max(source.nbytes, 1),), np.uint8, 1)
            queue.runtime.copy(
                int(self._memory.pointers[0]), source.ctypes.data, source.nbytes, queue.stream
            )
            self._queue = queue
        return int(self._memory.pointers[0])
