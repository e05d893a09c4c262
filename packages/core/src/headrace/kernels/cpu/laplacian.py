"""Sums of second derivatives."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from headrace.kernels.cpu.cast import converter
from headrace.kernels.cpu.filter import filter_separably


@lru_cache(maxsize=1024)
def window(size: int, derivative: bool, scale: float = 1.0) -> np.ndarray:
    """Right half, centre first, of a binomial window of `size` weights, or of the second
    differences of one of `size` - 2 weights; times `scale`, float32.
    """
    if derivative:
        row = [math.comb(size - 3, k) for k in range(size - 2)]
        whole = np.convolve(np.array(row, np.float64), [1.0, -2.0, 1.0])
    else:
        whole = np.array([math.comb(size - 1, k) for k in range(size)], np.float64)
    weights = (whole[size // 2 :] * scale).astype(np.float32)
    weights.flags.writeable = False
    return weights


def laplacian(
    source: np.ndarray,
    first_axis: int,
    sizes: Sequence[Sequence[int]],
    scales: Sequence[float],
    out: np.ndarray,
) -> None:
    """Fill `out` with the sum of second derivatives of `source`."""
    if source.dtype not in (np.uint8, np.float32):
        single = np.empty(source.shape, np.float32)
        converter(source.dtype, single.dtype)(source, single)
        source = single
    total = out if out.dtype == np.float32 else np.empty(out.shape, np.float32)
    term = total
    for axis, (own, scale) in enumerate(zip(sizes, scales, strict=True)):
        windows = [
            window(size, True, scale) if k == axis else window(size, False)
            for k, size in enumerate(own)
        ]
        if axis == 1:
            term = np.empty_like(total)
        filter_separably(source, term, first_axis, windows)
        if axis:
            total += term
    if total is not out:
        converter(total.dtype, out.dtype)(total, out)
