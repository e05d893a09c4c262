"""Compiled loops of type conversions: from floating point to integers.

All take ``rows`` times ``width`` numbers, ``stride`` elements apart, and fill `out` without gaps.
Rows are sliced before their loops: an index that cannot be negative lets the loop be vectorised.
"""

from __future__ import annotations

import numpy as np

from penstock.kernels.compilation import njit


@njit(nogil=True)
def to_small_integers(
    source: np.ndarray,
    out: np.ndarray,
    rows: int,
    width: int,
    stride: int,
    half: float,
    low: float,
    high: float,
) -> None:
    """float32 to integers of 8 or 16 bits; not-a-numbers become 0.

    Parameters
    ----------
    half
        0 to drop fractions; the largest number below one half to round, halves away from zero:
        adding one half itself would carry 0.49999997 to 1.
    low, high
        Smallest and largest integer of the target.
    """
    half32, low32, high32 = np.float32(half), np.float32(low), np.float32(high)
    for row in range(rows):
        taken = source[row * stride : row * stride + width]
        given = out[row * width : (row + 1) * width]
        for i in range(width):
            value = taken[i]
            value += -half32 if value < 0 else half32
            value = value if value > low32 else low32
            value = value if value < high32 else high32
            # A not-a-number has become `low` by now.
            value = value if taken[i] == taken[i] else np.float32(0)
            given[i] = np.int32(value)


@njit(nogil=True)
def to_integers(
    source: np.ndarray,
    out: np.ndarray,
    rows: int,
    width: int,
    stride: int,
    half: float,
    low: float,
    high: float,
    nan: int,
) -> None:
    """float32 or float64 to integers of up to 32 bits; not-a-numbers become `nan`."""
    for row in range(rows):
        taken = source[row * stride : row * stride + width]
        given = out[row * width : (row + 1) * width]
        for i in range(width):
            value = float(taken[i])
            value += -half if value < 0 else half
            value = value if value > low else low
            value = value if value < high else high
            whole = np.int64(value)
            given[i] = whole if taken[i] == taken[i] else nan


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
    """float32 or float64 to integers of 64 bits.

    Parameters
    ----------
    low, high
        Values at or below and at or above which `limits` apply; `high` is no integer of the
        target, being a power of two.
    limits
        Smallest integer, largest integer, and the one for not-a-numbers, in the target's type.
    """
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
