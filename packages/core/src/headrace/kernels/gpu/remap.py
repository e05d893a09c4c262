"""Images looked up where maps say: the GPU's side of `kernels.cpu.remap`."""

from __future__ import annotations

import numpy as np

from headrace.kernels.gpu.perspective import KINDS
from headrace.kernels.gpu.program import kernel
from headrace.kernels.gpu.records import THREADS, launch_records, quotient_up
from headrace.kernels.gpu.shared import record
from headrace.tensors.gpu.batch import DeviceBatch, volumes
from headrace.tensors.gpu.queue import Queue

_IMAGE = record("""remap:Mapped {
    uint32 first_block;
    uint64 source, x, y, out;
    int64 height, width, channels;
}""")


def remap(
    queue: Queue,
    images: DeviceBatch,
    x: DeviceBatch,
    y: DeviceBatch,
    interpolation: str,
    shift: float,
    out: DeviceBatch,
) -> None:
    """Fill `out` with the images; parameters are those of the CPU's kernel."""
    records = np.zeros(len(out), _IMAGE)
    records["source"], records["out"] = images.pointers, out.pointers
    records["x"], records["y"] = x.pointers, y.pointers
    records["height"], records["width"], records["channels"] = out.shapes.T
    name = kernel("remap.cu", "remap", images.dtype, KINDS[interpolation])
    blocks = quotient_up(volumes(out.shapes[:, :2]), THREADS)
    launch_records(queue, name, records, blocks, np.float32(shift))
