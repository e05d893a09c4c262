"""Decibels: logarithms of ratios to a reference."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from headrace.kernels.gpu.program import kernel
from headrace.kernels.gpu.records import THREADS, fill_fields, launch_evenly
from headrace.kernels.gpu.shared import constant, record
from headrace.tensors.gpu.batch import DeviceBatch
from headrace.tensors.gpu.queue import Queue
from headrace.tensors.gpu.traced import traced

if TYPE_CHECKING:
    from headrace.kernels.cpu.decibels import DecibelScale

_EACH = constant(__name__, "EACH", 8)
"""Elements that a thread makes."""
DECIBEL_SCALE = record("""decibels:DecibelScale {
    float reference;  // 0 for the largest number
    float smallest, factor;
}""")
_SAMPLE = record("decibels:Sample { uint64 source, out, largest; int64 size; }")


def zeros(queue: Queue, count: int) -> np.ndarray:
    """Addresses of `count` float32 zeros for work that is queued from the next kernel on."""
    # They go over with what else that kernel is told: no call of its own.
    first = queue.upload(np.zeros(count, np.float32))
    return first + _places(count)


@lru_cache(maxsize=256)
def _places(count: int) -> np.ndarray:
    return 4 * np.arange(count, dtype=np.uint64)


def to_decibels(
    queue: Queue,
    data: DeviceBatch,
    scale: DecibelScale,
    out: DeviceBatch,
    largest: np.ndarray | None = None,
) -> None:
    """Fill `out` with `data` in decibels.

    `largest`: uint64 ``(samples,)``: where the largest number of each sample is, if that is known.
    """
    sizes = out.sizes()
    if not sizes.any():
        return
    samples = np.zeros(len(data), _SAMPLE)
    fill_fields(samples[["source", "out", "size"]], data.pointers, out.pointers, sizes)
    most = -(-_most(sizes) // (THREADS * _EACH))
    if largest is not None:
        samples["largest"] = largest
    elif scale.reference == 0:
        samples["largest"] = zeros(queue, len(data))
        launch_evenly(queue, kernel("decibels.cu", "largest"), samples, most)
    launch_evenly(queue, kernel("decibels.cu", "decibels"), samples, most, *scale)


@traced
def _most(sizes: np.ndarray) -> int:
    return int(sizes.max())
