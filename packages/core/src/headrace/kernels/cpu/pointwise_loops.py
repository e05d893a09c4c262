"""Compiled loops of functions of single elements."""

from __future__ import annotations

import numpy as np

from headrace.kernels.cpu.saturate import saturate


def scale_and_shift(
    source: np.ndarray,
    rows: int,
    width: int,
    stride: int,
    out: np.ndarray,
    scale: float,
    offset: float,
) -> None:
    """Fill `out` with one linear function of `source`.

    `scale`, `offset`: numbers of float32.
    """
    elements, to = source.reshape(-1), out.reshape(-1)
    factor, added = np.float32(scale), np.float32(offset)
    for row in range(rows):
        taken = elements[row * stride : row * stride + width]
        given = to[row * width : (row + 1) * width]
        for i in range(width):
            given[i] = saturate(np.float32(taken[i]) * factor + added, out)
