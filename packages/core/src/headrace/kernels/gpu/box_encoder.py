"""Targets of default boxes: matching by intersection over union."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.kernels.gpu.program import kernel
from headrace.kernels.gpu.records import THREADS, launch_records, quotient_up
from headrace.kernels.gpu.shared import record
from headrace.tensors.gpu.batch import DeviceBatch
from headrace.tensors.gpu.queue import Queue

_SAMPLE = record("""box_encoder:Boxes {
    uint32 first_block;
    int32 count;
    uint64 boxes, labels, best, encoded, classes;
}""")


def encode(
    queue: Queue,
    boxes: DeviceBatch,
    labels: DeviceBatch,
    how: Any,
    encoded: DeviceBatch,
    classes: DeviceBatch,
) -> None:
    """Fill `encoded` and `classes` with the boxes that anchors stand for, and their labels.

    `how`: the operator, with `anchors` and `encoded`, float32 ``(anchors, 4)``, `means` and `stds`.
    """
    counts = labels.sizes()
    best = queue.empty(np.maximum(counts, 1)[:, None], np.int32)
    records = np.empty(len(boxes), _SAMPLE)
    records["count"], records["boxes"], records["labels"] = counts, boxes.pointers, labels.pointers
    records["best"] = best.pointers
    records["encoded"], records["classes"] = encoded.pointers, classes.pointers
    anchors = np.vstack([how.anchors, how.encoded, how.means[None], how.stds[None]])
    numbers = queue.upload(anchors)
    count = np.int32(len(how.anchors))
    launch_records(queue, kernel("box_encoder.cu", "find_best"), records, counts, numbers, count)
    launch_records(
        queue,
        kernel("box_encoder.cu", "encode"),
        records,
        np.full(len(boxes), quotient_up(int(count), THREADS), np.int64),
        numbers,
        count,
        np.float32(how.args.criteria),
        np.float32(how.args.scale),
        np.int32(how.args.offset),
    )
