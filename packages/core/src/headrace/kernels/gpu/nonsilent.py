"""Detection of the part of signals that is not silent: their short-term power against a
threshold.
"""

from __future__ import annotations

import numpy as np

from headrace.kernels.gpu.program import kernel
from headrace.kernels.gpu.records import launch_counted, launch_records, quotient_up
from headrace.kernels.gpu.shared import record
from headrace.tensors.gpu.batch import DeviceBatch
from headrace.tensors.gpu.queue import Queue

_SIGNAL = record("""nonsilent:Signal {
    uint32 first_block, intervals;
    uint64 source;
    uint64 powers;  // float, of each window
    uint64 largest;  // uint32: the bits of the largest power
    uint64 begin, length;
    int64 count;  // windows
    int64 window;
    int64 first_end;  // windows of the first interval
    int64 interval;  // of each other
}""")


def nonsilent_regions(
    queue: Queue,
    source: DeviceBatch,
    window: int,
    cutoff: float,
    reference: float | None,
    reset: int,
    begin: DeviceBatch,
    length: DeviceBatch,
) -> None:
    """First sample and length of what is not silent in each signal of a batch.

    Arguments are those of `headrace.kernels.cpu.audio.nonsilent.nonsilent_region`, which gives the
    same numbers.

    `begin`, `length`: int32 scalars, filled.
    """
    sizes = source.shapes[:, 0]
    exact = source.dtype.kind != "f" and source.dtype.itemsize <= 2
    sums = np.float32 if source.dtype.kind == "f" else np.int64 if exact else np.float64
    interval = np.maximum(sizes, window) if exact or reset < 0 else np.full_like(sizes, reset)
    windows = np.minimum(sizes, window)
    count = np.where(sizes > 0, sizes - windows + 1, 0)
    first_end = np.minimum(np.maximum(interval - windows + 1, 1), count)
    records = np.empty(len(sizes), _SIGNAL)
    records["intervals"] = intervals = np.where(
        count > 0, 1 + quotient_up(count - first_end, interval), 0
    )
    records["source"] = source.pointers
    records["count"], records["window"] = count, windows
    records["first_end"], records["interval"] = first_end, interval
    ends = np.cumsum(count)
    scratch = np.uint64(queue.scratch(int(ends[-1]) * 4 if len(ends) else 0))
    records["powers"] = scratch + (4 * (ends - count)).astype(np.uint64)
    numbers = np.arange(len(sizes), dtype=np.uint64) * np.uint64(4)
    records["begin"], records["length"] = begin.pointers, length.pointers
    records["largest"] = queue.upload(np.zeros(max(len(sizes), 1), np.uint32)) + numbers
    launch_records(
        queue,
        kernel("nonsilent.cu", "short_term_powers", source.dtype, np.dtype(sums)),
        records,
        intervals,
    )
    of_largest = reference is None
    limit = cutoff if reference is None else reference * cutoff
    launch_counted(
        queue,
        kernel("nonsilent.cu", "nonsilent_ends"),
        records,
        len(records),
        1,
        np.float32(limit),
        np.int32(of_largest),
    )
