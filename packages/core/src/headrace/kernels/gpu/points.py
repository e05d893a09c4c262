"""Points mapped by affine maps: the GPU's side of `headrace.kernels.cpu.points`."""

from __future__ import annotations

import numpy as np

from headrace.kernels.gpu.program import kernel
from headrace.kernels.gpu.records import THREADS, launch_records, quotient_up
from headrace.kernels.gpu.shared import record
from headrace.tensors.gpu.batch import DeviceBatch
from headrace.tensors.gpu.queue import Queue

_POINTS = record("""points:Points {
    uint32 first_block;
    int32 axes, out_axes;
    uint64 source, out;
    int64 elements;  // of the output
    float matrix[6][7];  // the last of `axes` + 1 columns is added
}""")


def map_points(queue: Queue, points: DeviceBatch, matrices: np.ndarray, out: DeviceBatch) -> None:
    """Queue filling `out` with the images of `points`.

    `matrices`: float32 ``(samples, 6, 7)``, or one for all; see
    `headrace.kernels.cpu.points.map_points`.
    """
    records = np.zeros(len(out), _POINTS)
    records["axes"], records["out_axes"] = points.shapes[:, -1], out.shapes[:, -1]
    records["source"], records["out"] = points.pointers, out.pointers
    records["matrix"] = matrices
    records["elements"] = sizes = out.sizes()
    name = kernel("map_points.cu", "map_points", points.dtype, out.dtype)
    launch_records(queue, name, records, quotient_up(sizes, THREADS))
