"""Points and boxes that are mirrored: the GPU's side of `headrace.kernels.cpu.flip_points`."""

from __future__ import annotations

import numpy as np

from headrace.kernels.gpu.program import kernel
from headrace.kernels.gpu.records import THREADS, launch_records, quotient_up
from headrace.kernels.gpu.shared import record
from headrace.tensors.gpu.batch import DeviceBatch
from headrace.tensors.gpu.queue import Queue

_FLIPPED = record("""flip_points:Flipped {
    uint32 first_block;
    int32 axes;
    uint64 source, out;
    int64 threads;
    float factors[3];  // of boxes, 1 where they are mirrored
    float offsets[3];
}""")


def flip_points(
    queue: Queue, points: DeviceBatch, factors: np.ndarray, offsets: np.ndarray, out: DeviceBatch
) -> None:
    """Fill `out` with points whose coordinates are multiplied and moved, numbers as on the CPU."""
    records = _records(points, out, 1)
    records["axes"] = out.shapes[:, -1]
    records["factors"], records["offsets"] = factors, offsets
    _launch(queue, "flip_points", records)


def flip_boxes(
    queue: Queue, boxes: DeviceBatch, flips: np.ndarray, corners: bool, out: DeviceBatch
) -> None:
    """Fill `out` with mirrored boxes, `flips` and `corners` as on the CPU."""
    records = _records(boxes, out, 2)
    records["factors"][:, :2] = flips
    _launch(queue, "flip_boxes", records, corners)


def _records(data: DeviceBatch, out: DeviceBatch, elements: int) -> np.ndarray:
    records = np.zeros(len(out), _FLIPPED)
    records["source"], records["out"] = data.pointers, out.pointers
    records["threads"] = out.sizes() // elements
    return records


def _launch(queue: Queue, function: str, records: np.ndarray, *arguments: bool) -> None:
    blocks = quotient_up(records["threads"], THREADS)
    launch_records(queue, kernel("flip_points.cu", function, *arguments), records, blocks)
