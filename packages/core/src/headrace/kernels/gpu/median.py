"""Medians in windows: the GPU's side of `kernels.cpu.median`."""

from __future__ import annotations

import numpy as np

from headrace.kernels.gpu.program import kernel
from headrace.kernels.gpu.records import THREADS, launch_records, quotient_up
from headrace.kernels.gpu.shared import record
from headrace.tensors.gpu.batch import DeviceBatch
from headrace.tensors.gpu.queue import Queue

_IMAGE = record("""median:Windowed {
    uint32 first_block;
    int32 high, wide, height, width, channels;
    uint64 source, out;
    int64 size;
}""")


def median_blur(
    queue: Queue, images: DeviceBatch, windows: np.ndarray, out: DeviceBatch, *, planar: bool
) -> None:
    """Fill `out` with the images; parameters are those of the CPU's kernel, ``(samples, 2)``."""
    records = np.zeros(len(out), _IMAGE)
    records["source"], records["out"] = images.pointers, out.pointers
    records["high"], records["wide"] = windows.T
    first = int(planar)
    records["height"], records["width"] = out.shapes[:, first], out.shapes[:, first + 1]
    records["channels"] = 1 if planar or out.shapes.shape[1] == 2 else out.shapes[:, 2]
    records["size"] = sizes = out.sizes()
    name = kernel("median.cu", "median_blur", out.dtype)
    launch_records(queue, name, records, quotient_up(sizes, THREADS))
