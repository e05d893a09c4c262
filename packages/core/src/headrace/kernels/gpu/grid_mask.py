"""Squares of a grid, set to zero."""

from __future__ import annotations

import numpy as np

from headrace.kernels.gpu.program import kernel
from headrace.kernels.gpu.records import THREADS, launch_records, quotient_up
from headrace.kernels.gpu.shared import constant, record
from headrace.tensors.gpu.batch import DeviceBatch
from headrace.tensors.gpu.queue import Queue

_EACH = constant(__name__, "EACH", 8, "uint32")
"""Elements that a thread makes."""
_NUMBERS = ("cosine", "sine", "shift_x", "shift_y", "ratio")
_IMAGE = record(f"""grid_mask:Image {{
    uint32 first_block;
    float {", ".join(_NUMBERS)};
    uint64 source, out;
    int64 size, width, channels;
}}""")


def mask_grid(
    queue: Queue, images: DeviceBatch, numbers: tuple[np.ndarray, ...], out: DeviceBatch
) -> None:
    """Fill `out` with `images`, the pixels in squares of a grid set to zero.

    `numbers`: float32 ``(samples,)`` each, as `headrace.kernels.cpu.grid_mask.mask_grid` takes
    them.
    """
    records = np.empty(len(out), _IMAGE)
    for name, column in zip(_NUMBERS, numbers, strict=True):
        records[name] = column
    records["source"], records["out"] = images.pointers, out.pointers
    records["size"] = sizes = out.sizes()
    records["width"], records["channels"] = out.shapes[:, 1], out.shapes[:, 2]
    launch_records(
        queue,
        kernel("grid_mask.cu", "mask_grid", np.dtype(f"u{out.dtype.itemsize}")),
        records,
        quotient_up(sizes, THREADS * _EACH),
    )
