"""Largest and smallest values in windows: the GPU's side of `kernels.cpu.morphology`."""

from __future__ import annotations

import numpy as np

from headrace.kernels.gpu.perspective import BORDERS
from headrace.kernels.gpu.program import kernel
from headrace.kernels.gpu.records import THREADS, launch_records, quotient_up
from headrace.kernels.gpu.shared import record
from headrace.tensors.gpu.batch import DeviceBatch, volumes
from headrace.tensors.gpu.queue import Queue

_AXIS = record("""morphology:Slid {
    uint32 first_block;
    int32 window, before, extent;
    uint64 source, out;
    int64 size, inner;  // elements: all, and from one position along the axis to the next
}""")


def slide(
    queue: Queue,
    images: DeviceBatch,
    windows: np.ndarray,
    before: np.ndarray,
    out: DeviceBatch,
    *,
    largest: bool,
    border: str,
    planar: bool,
) -> None:
    """Fill `out` with the images; parameters are those of the CPU's kernel, ``(samples, 2)``."""
    between = queue.empty(out.extents, out.dtype, len(out))
    first = int(planar)
    name = kernel("morphology.cu", "slide", out.dtype, largest)
    for k, (source, target) in enumerate(((images, between), (between, out))):
        records = np.zeros(len(out), _AXIS)
        records["source"], records["out"] = source.pointers, target.pointers
        records["window"], records["before"] = windows[:, 1 - k], before[:, 1 - k]
        axis = first + 1 - k
        records["extent"] = out.shapes[:, axis]
        records["inner"] = volumes(out.shapes[:, axis + 1 :])
        records["size"] = sizes = out.sizes()
        launch_records(queue, name, records, quotient_up(sizes, THREADS), np.int32(BORDERS[border]))
