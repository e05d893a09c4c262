"""Boxes of images that are put on larger canvases."""

from __future__ import annotations

import numba
import numpy as np

from headrace.kernels.compilation import njit
from headrace.kernels.cpu.pointers import elements


@njit(error_model="numpy")  # keeps the interpreter: boxes are few
def paste_boxes(
    addresses: np.ndarray,
    counts: np.ndarray,
    ratios: np.ndarray,
    x: np.ndarray,
    y: np.ndarray,
    corners: bool,
    out: np.ndarray,
    begins: np.ndarray,
) -> None:
    """Fill `out` with boxes over `ratios`, moved by `x` and `y`.

    `addresses`, `counts`: uint64 and int64 ``(samples,)``: where the boxes of a sample are, four
    float32 numbers each, and how many. `out`, `begins`: the output, flat, and the element with
    which each sample begins.
    """
    for k in range(len(addresses)):
        source = numba.carray(elements(addresses[k], out), counts[k] * 4)
        for i in range(counts[k] * 4):
            offset = x[k] if i % 2 == 0 else y[k]
            moved = corners or i % 4 < 2
            out[begins[k] + i] = source[i] / ratios[k] + (offset if moved else np.float32(0))
