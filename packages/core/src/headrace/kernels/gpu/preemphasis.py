"""The preemphasis filter: a difference of neighbours."""

from __future__ import annotations

import numpy as np

from headrace.kernels.gpu.program import kernel
from headrace.kernels.gpu.records import THREADS, fill_fields, launch_records, quotient_up
from headrace.kernels.gpu.shared import constant, record
from headrace.tensors.gpu.batch import DeviceBatch
from headrace.tensors.gpu.queue import Queue

_EACH = constant(__name__, "EACH", 8, "uint32")
"""Elements that a thread makes."""
_SIGNAL = record("""preemphasis:Signal {
    uint32 first_block;
    float coefficient;
    uint64 source, out;
    int64 size;
}""")


def preemphasize(
    queue: Queue, source: DeviceBatch, coefficients: np.ndarray, border: int, out: DeviceBatch
) -> None:
    """Fill `out` with ``source[t] - coefficient * source[t - 1]``.

    `coefficients`: float32 ``(samples,)``.
    """
    records = np.empty(len(out), _SIGNAL)
    sizes = source.sizes()
    filled = records[["coefficient", "source", "out", "size"]]
    fill_fields(filled, coefficients, source.pointers, out.pointers, sizes)
    wide = np.dtype(np.float64 if source.dtype == np.float64 else np.float32)
    launch_records(
        queue,
        kernel("preemphasis.cu", "preemphasize", source.dtype, out.dtype, wide),
        records,
        quotient_up(sizes, THREADS * _EACH),
        np.int32(border),
    )
