"""Colours from what sensors behind colour filters measure."""

from __future__ import annotations

import numpy as np

from headrace.kernels.gpu.program import kernel
from headrace.kernels.gpu.records import THREADS, launch_records, quotient_up
from headrace.kernels.gpu.shared import record
from headrace.tensors.gpu.batch import DeviceBatch, volumes
from headrace.tensors.gpu.queue import Queue

_MOSAIC = record("""debayer:Mosaic {
    uint32 first_block;
    uint32 red_row;  // of the first red pixel
    uint32 red_column;
    uint64 source, out;
    int64 height, width;
}""")


def debayer(
    queue: Queue, images: DeviceBatch, blue_positions: np.ndarray, out: DeviceBatch
) -> None:
    """Fill `out`, RGB, with the colours of images of one channel, of even extents.

    `blue_positions` are those of `kernels.cpu.debayer`, ``(samples, 2)``. What is between
    pixels of a colour is their mean. Green is the mean along the axis along which red or blue
    changes less, as in NVIDIA's NPP; borders are reflected.
    """
    records = np.empty(len(out), _MOSAIC)
    records["source"], records["out"] = images.pointers, out.pointers
    records["height"], records["width"] = out.shapes[:, 0], out.shapes[:, 1]
    # Blue is counted from (1, 1), and red is diagonal to blue.
    records["red_row"], records["red_column"] = blue_positions[:, 0], blue_positions[:, 1]
    blocks = quotient_up(volumes(out.shapes[:, :2]), THREADS)
    launch_records(queue, kernel("debayer.cu", "debayer", images.dtype), records, blocks)
