"""Labels as vectors with one element set."""

from __future__ import annotations

import numpy as np

from headrace.kernels.gpu.program import kernel
from headrace.kernels.gpu.records import THREADS, launch_records, quotient_up
from headrace.kernels.gpu.shared import constant, record
from headrace.tensors.gpu.batch import DeviceBatch
from headrace.tensors.gpu.queue import Queue

_EACH = constant(__name__, "EACH", 8, "uint32")
"""Elements that a thread makes."""
_LABELS = record("one_hot:Labels { uint32 first_block; uint64 labels, out; int64 size, inner; }")


def set_classes(
    queue: Queue,
    labels: DeviceBatch,
    inner: np.ndarray,
    classes: int,
    off: np.ndarray,
    on: np.ndarray,
    out: DeviceBatch,
) -> None:
    """Fill `out` with ``off[0]``, and with ``on[0]`` where a label says.

    `inner`: int64 ``(samples,)``: how many elements lie between one class and the next.
    """
    records = np.empty(len(out), _LABELS)
    records["labels"], records["out"] = labels.pointers, out.pointers
    records["size"], records["inner"] = sizes, _ = out.sizes(), inner
    word = np.dtype(f"u{out.dtype.itemsize}")
    launch_records(
        queue,
        kernel("one_hot.cu", "set_classes", labels.dtype, word),
        records,
        quotient_up(sizes, THREADS * _EACH),
        np.int32(classes),
        off.view(word)[0],
        on.view(word)[0],
    )
