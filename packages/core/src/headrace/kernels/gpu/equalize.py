"""Equalization of histograms."""

from __future__ import annotations

import numpy as np

from headrace.kernels.gpu.program import kernel
from headrace.kernels.gpu.records import launch_records
from headrace.kernels.gpu.shared import record
from headrace.tensors.gpu.batch import DeviceBatch, volumes
from headrace.tensors.gpu.queue import Queue

_IMAGES = record("""equalize:Images {
    uint32 first_block;
    uint32 channels;  // that lie side by side
    uint64 source, out;
    int64 pixels;
}""")


def equalize(queue: Queue, source: DeviceBatch, out: DeviceBatch, first_axis: int) -> None:
    """Fill `out` with `source`, uint8, each channel of each image equalized."""
    shapes = source.shapes
    records = np.empty(len(out), _IMAGES)
    records["source"], records["out"] = source.pointers, out.pointers
    records["pixels"] = pixels = volumes(shapes[:, first_axis : first_axis + 2])
    records["channels"] = channels = volumes(shapes[:, first_axis + 2 :])
    images = volumes(shapes[:, :first_axis])
    blocks = np.where(pixels > 0, images * channels, 0)
    launch_records(queue, kernel("equalize.cu", "equalize"), records, blocks)
