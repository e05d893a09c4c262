"""The preemphasis filter: a difference of neighbours."""

from __future__ import annotations

import numpy as np

from penstock.kernels.gpu.program import kernel
from penstock.kernels.gpu.records import THREADS, launch_records, quotient_up
from penstock.kernels.gpu.shared import constant, record
from penstock.tensors.gpu.batch import DeviceBatch
from penstock.tensors.gpu.queue import Queue

_EACH = constant(__name__, "EACH", 8, np.uint32)
"""Elements that a thread makes."""
_SIGNAL = record(
    __name__,
    "Signal",
    [
        ("first_block", np.uint32),
        ("coefficient", np.float32),
        ("source", np.uint64),
        ("out", np.uint64),
        ("size", np.int64),
    ],
)


def preemphasize(
    queue: Queue, source: DeviceBatch, coefficients: np.ndarray, border: int, out: DeviceBatch
) -> None:
    """Fill `out` with ``source[t] - coefficient * source[t - 1]``.

    Parameters
    ----------
    coefficients
        float32 ``(samples,)``.
    border
        A `penstock.kernels.cpu.audio.border.Border`.
    """
    records = np.empty(len(out), _SIGNAL)
    records["coefficient"] = coefficients
    records["source"], records["out"] = source.pointers, out.pointers
    records["size"] = sizes = source.sizes()
    wide = np.dtype(np.float64 if source.dtype == np.float64 else np.float32)
    launch_records(
        queue,
        kernel("preemphasis.cu", "preemphasize", source.dtype, out.dtype, wide),
        records,
        quotient_up(sizes, THREADS * _EACH),
        np.int32(border),
    )
