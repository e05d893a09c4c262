"""Functions of single elements."""

from __future__ import annotations

import numpy as np

from penstock.kernels.cpu import pointwise_loops
from penstock.kernels.cpu.rows import as_rows


def scale_and_shift(source: np.ndarray, out: np.ndarray, scale: float, offset: float) -> None:
    """Fill `out` with ``source * scale + offset``.

    Parameters
    ----------
    source
        uint8, int16, int32 or float32; any shape and strides.
    out
        Contiguous, of the shape of `source` and any of these types. The arithmetic is float32;
        integers are rounded, halves away from zero, and saturate.
    """
    flat, rows, width, stride = as_rows(source)
    if rows:
        pointwise_loops.scale_and_shift(flat, rows, width, stride, out.reshape(-1), scale, offset)
