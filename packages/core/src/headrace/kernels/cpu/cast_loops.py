"""Compiled loops of type conversions: from floating point to integers.

All take ``rows`` times ``width`` numbers, ``stride`` elements apart, and fill `out` without gaps.
Rows are sliced before their loops: an index that cannot be negative lets the loop be vectorised.
"""

from __future__ import annotations

import numpy as np

from headrace.kernels.compilation import njit


@njit(nogil=True)
def to_integers(
    source: np.ndarray,
    out: np.ndarray,
    rows: int,
    width: int,
    stride: int,
    numbers: np.ndarray,
    nan: np.ndarray,
) -> None:
    """float32 or float64 to integers of up to 32 bits."""
    half, low, high = numbers[0], numbers[1], numbers[2]
    no_number = nan[0]
    for row in range(rows):
        taken = source[row * stride : row * stride + width]
        given = out[row * width : (row + 1) * width]
        for i in range(width):
            value = numbers.dtype.type(taken[i])
            value += -half if value < 0 else half
            value = value if value > low else low
            value = value if value < high else high
            whole = nan.dtype.type(value)
            given[i] = whole if taken[i] == taken[i] else no_number


@njit(nogil=True)
def to_long_integers(
    source: np.ndarray,
    out: np.ndarray,
    rows: int,
    width: int,
    stride: int,
    half: float,
    low: float,
    high: float,
    limits: np.ndarray,
) -> None:
    """float32 or float64 to integers of 64 bits."""
    for row in range(rows):
        taken = source[row * stride : row * stride + width]
        given = out[row * width : (row + 1) * width]
        for i in range(width):
            value = float(taken[i])
            value += -half if value < 0 else half
            if value >= high:
                given[i] = limits[1]
            elif value <= low:
                given[i] = limits[0]
            elif value == value:
                given[i] = out.dtype.type(value)
            else:
                given[i] = limits[2]
