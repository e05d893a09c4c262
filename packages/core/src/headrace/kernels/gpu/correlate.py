"""Weighted sums of neighbourhoods."""

from __future__ import annotations

import numpy as np

from headrace.kernels.gpu.program import kernel
from headrace.kernels.gpu.records import THREADS, launch_records, quotient_up
from headrace.kernels.gpu.shared import constant, numbered, record
from headrace.tensors.gpu.batch import DeviceBatch, volumes
from headrace.tensors.gpu.queue import Queue

_EACH = constant(__name__, "EACH", 4)
"""Elements that a thread makes."""
_BORDERS = numbered(
    __name__, "Border", ("reflect_101", "reflect_1001", "clamp", "wrap", "constant")
)
_IMAGE = record("""correlate:Image {
    uint32 first_block;
    int32 channels;  // that lie side by side
    uint64 source, out, weights;
    uint64 fill;  // address of what is outside; 0 for zeros
    int64 size;  // elements of `out`
    int32 extents[3], out_extents[3], window[3], anchor[3];
}""")


def correlate(
    queue: Queue,
    source: DeviceBatch,
    weights: DeviceBatch,
    fill: DeviceBatch | None,
    anchors: np.ndarray,
    border: str,
    first: int,
    count: int,
    out: DeviceBatch,
) -> None:
    """Fill `out` with sums of `source` times `weights`.

    Parameters are those of `headrace.kernels.cpu.correlate.correlate`, for each sample.
    """
    records = np.empty(len(out), _IMAGE)
    records["source"], records["out"] = source.pointers, out.pointers
    records["weights"] = weights.pointers
    records["fill"] = 0 if fill is None else fill.pointers
    records["channels"] = volumes(source.shapes[:, first + count :])
    records["size"] = sizes = out.sizes()
    axes = slice(first, first + count)
    for field, values, missing in (
        ("extents", source.shapes[:, axes], 1),
        ("out_extents", out.shapes[:, axes], 1),
        ("window", weights.shapes, 1),
        ("anchor", anchors, 0),
    ):
        records[field][:, : 3 - count] = missing
        records[field][:, 3 - count :] = values
    launch_records(
        queue,
        kernel("correlate.cu", "correlate", source.dtype, out.dtype),
        records,
        quotient_up(sizes, THREADS * _EACH),
        np.int32(_BORDERS[border]),
    )
