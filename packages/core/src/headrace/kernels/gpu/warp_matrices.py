"""Matrices of warps that are on the GPU: the host does not wait for them."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from headrace.kernels.gpu.program import kernel
from headrace.tensors.gpu.batch import DeviceBatch
from headrace.tensors.gpu.faults import watched
from headrace.tensors.gpu.queue import Queue

if TYPE_CHECKING:
    from headrace.tensors.gpu.faults import Fault

_THREADS = 64


@dataclass(frozen=True, slots=True)
class DeviceMatrices:
    """Matrices of a batch.

    `batch`: contiguous float32 ``(rank, rank + 1)``; the memory stays as long as this object.
    `singular`: makes the error for a matrix without inverse; `None` for matrices that are not to be
    inverted.
    """

    batch: DeviceBatch
    singular: Fault | None

    def place(self, queue: Queue, samples: np.uint64, rank: int) -> None:
        """Put the matrices into the descriptors of samples on the device."""
        count = len(self.batch)
        report: AbstractContextManager[int] = nullcontext(0)
        if self.singular is not None:
            report = watched(queue, (self.singular,))
        with report as word:
            queue.launch(
                kernel("warp_matrices.cu", "warp_matrices", rank),
                (-(-count // _THREADS), 1, 1),
                (_THREADS, 1, 1),
                samples,
                queue.upload(self.batch.pointers),
                np.uint32(count),
                np.uint64(word),
            )
