"""Equalization of histograms."""

from __future__ import annotations

import numpy as np

from headrace.kernels.gpu.program import kernel
from headrace.kernels.gpu.records import launch_records, quotient_up
from headrace.kernels.gpu.shared import constant, record
from headrace.tensors.gpu.batch import DeviceBatch, volumes
from headrace.tensors.gpu.queue import Queue

_PART = constant(__name__, "PART", 1 << 14, "uint32")
"""Pixels of one channel that a block counts and maps."""
_LEVELS = constant(__name__, "LEVELS", 256)
_IMAGES = record("""equalize:Images {
    uint32 first_block;
    uint32 channels;  // that lie side by side
    uint64 source, out;
    uint64 counts;  // uint32: of each level, for each part of each channel of each image
    int64 pixels;
    uint32 parts;  // that the pixels of an image are counted in
}""")


def equalize(queue: Queue, source: DeviceBatch, out: DeviceBatch, first_axis: int) -> None:
    """Fill `out` with `source`, uint8, each channel of each image equalized."""
    shapes = source.shapes
    records = np.empty(len(out), _IMAGES)
    records["source"], records["out"] = source.pointers, out.pointers
    records["pixels"] = pixels = volumes(shapes[:, first_axis : first_axis + 2])
    records["channels"] = channels = volumes(shapes[:, first_axis + 2 :])
    images = volumes(shapes[:, :first_axis])
    records["parts"] = parts = quotient_up(pixels, _PART)
    blocks = images * channels * parts
    counts = queue.empty(blocks[:, np.newaxis] * _LEVELS, np.dtype(np.uint32), len(out))
    records["counts"] = counts.pointers
    launch_records(queue, kernel("equalize.cu", "count_levels"), records, blocks)
    launch_records(queue, kernel("equalize.cu", "equalize"), records, blocks)
