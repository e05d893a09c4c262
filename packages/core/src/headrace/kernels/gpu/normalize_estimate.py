"""Normalisation of long rows by moments that are estimated in the same launch."""

from __future__ import annotations

import numpy as np

from headrace.kernels.gpu.normalize import Launch, Parameter, mean_type
from headrace.kernels.gpu.normalize_blocks import ROW_THREADS, Blocks, in_rows
from headrace.kernels.gpu.normalize_moments import (
    MOMENTS_BYTES,
    allocated,
    place_parameters,
)
from headrace.kernels.gpu.program import kernel
from headrace.kernels.gpu.shared import record
from headrace.tensors.gpu.batch import DeviceBatch
from headrace.tensors.gpu.queue import Queue

_MOST_ROWS = 1 << 16
"""Each has a counter, which the host sets to 0."""
_SAMPLE = record("""normalize_estimate:Sample {
    uint64 source;
    uint64 moments;  // of chunks: (outer, chunks, columns)
    uint64 done;  // of each row, the number of chunks that are; zeros at first
    uint64 mean, factor;  // to be written, (outer, columns); 0 for none
    uint64 centre;  // a given mean; 0 for none
    normalize_blocks:Rows rows;
    int32 blocks;
    int32 centre_is_single;  // else it is (outer, columns)
}""")


def suits(blocks: Blocks) -> bool:
    """True if `estimate_rows` fits: few long rows, each with moments of its own."""
    return blocks.columns > 0 and not blocks.runs and int(blocks.outer.sum()) <= _MOST_ROWS


def estimate_rows(
    queue: Queue,
    data: DeviceBatch,
    blocks: Blocks,
    mean: Parameter | None,
    factor: Parameter | None,
    *,
    ddof: int,
    epsilon: float,
    scale: float,
) -> tuple[Launch, Parameter, Parameter]:
    """`moments` and `estimated` together, of which these are parameters and results.

    The work is still to be queued, with ``queue.launch(*launch)``: what is prepared before goes
    over to the device together.
    """
    samples = np.zeros(len(data), _SAMPLE)
    samples["blocks"] = counts = in_rows(blocks, samples["rows"], 16 // data.dtype.itemsize, 16)
    samples["source"] = data.pointers
    samples["moments"] = allocated(queue, counts * blocks.columns, MOMENTS_BYTES)
    rows = blocks.outer
    counters = queue.upload(np.zeros(int(rows.sum()), np.uint32))
    samples["done"] = counters + ((np.cumsum(rows) - rows) * 4).astype(np.uint64)
    mean, factor = place_parameters(queue, samples, blocks, mean_type(data.dtype), mean, factor)
    most = int(counts.max())
    launch = (
        kernel("normalize_estimate.cu", "estimate_rows", data.dtype, blocks.columns),
        (most * len(data), 1, 1),
        (ROW_THREADS, 1, 1),
        queue.upload(samples),
        np.uint32(most),
        np.float64(ddof),
        np.float64(epsilon),
        np.float64(scale),
    )
    return launch, mean, factor
