"""Compiled loops of functions of single elements."""

from __future__ import annotations

import numba
import numpy as np

from headrace.kernels.cpu.pointers import elements
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


def scale_and_shift_rows(
    sources: np.ndarray,
    sizes: np.ndarray,
    like: np.ndarray,
    targets: np.ndarray,
    out: np.ndarray,
    numbers: np.ndarray,
) -> None:
    """The same for several contiguous samples, each with its own ``(scale, offset)``.

    `sources`, `targets`: addresses, uint64 ``(samples,)``, of elements of the types of `like` and
    `out`. `sizes`: how many each has, int64. `numbers`: float32 ``(samples, 2 or more)``.
    """
    for k in range(len(sources)):
        taken = numba.carray(elements(sources[k], like), sizes[k])
        given = numba.carray(elements(targets[k], out), sizes[k])
        factor, added = numbers[k, 0], numbers[k, 1]
        for i in range(sizes[k]):
            given[i] = saturate(np.float32(taken[i]) * factor + added, out)
