"""Squares of a grid, set to zero."""

from __future__ import annotations

import numpy as np

from headrace.kernels.gpu.program import kernel
from headrace.kernels.gpu.records import THREADS, fill_fields, launch_records, quotient_up
from headrace.kernels.gpu.shared import constant, record
from headrace.tensors.gpu.batch import DeviceBatch, volumes
from headrace.tensors.gpu.queue import Queue

_EACH = constant(__name__, "EACH", 4, "uint32")
"""Pixels that a thread makes."""
_NUMBERS = ("cosine", "sine", "shift_x", "shift_y", "ratio")
_IMAGE = record(f"""grid_mask:Image {{
    uint32 first_block;
    float {", ".join(_NUMBERS)};
    uint64 source, out;
    int64 pixels, width, channels;
}}""")


def mask_grid(
    queue: Queue, images: DeviceBatch, numbers: tuple[np.ndarray, ...], out: DeviceBatch
) -> None:
    """Fill `out` with `images`, the pixels in squares of a grid set to zero.

    `numbers`: float32 ``(samples,)`` each, as `headrace.kernels.cpu.grid_mask.mask_grid` takes
    them.
    """
    records = np.empty(len(out), _IMAGE)
    fill_fields(records[list(_NUMBERS)], *numbers)
    records["source"], records["out"] = images.pointers, out.pointers
    records["pixels"] = pixels = volumes(out.shapes[:, :2])
    records["width"], records["channels"] = out.shapes[:, 1], out.shapes[:, 2]
    launch_records(
        queue,
        kernel("grid_mask.cu", "mask_grid", np.dtype(f"u{out.dtype.itemsize}")),
        records,
        quotient_up(pixels, THREADS * _EACH),
    )
