"""The arithmetic that all windows share: what a window is and how its coordinates are rounded."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

Windows = tuple[np.ndarray, np.ndarray]
"""Anchors and shapes of windows, int64 ``(samples, ndim)`` each, one entry an axis of the data."""

FARTHEST = 1 << 61
"""Coordinates of batches are cut off here: sums of two are no larger than int64 can be."""


def slices(anchor: Sequence[int], shape: Sequence[int]) -> tuple[slice, ...]:
    """The index that selects a window inside the bounds as a view."""
    return tuple([slice(a, a + s) for a, s in zip(anchor, shape, strict=True)])


def round_each(values: np.ndarray) -> np.ndarray:
    """Each rounded to the nearest integer, halves away from zero (C's ``llround``), as int64.

    Integers stay, what is huge is cut off, and NaN is 0.
    """
    values = _limited(values)
    if values.dtype.kind == "i":
        return values
    whole = np.trunc(values)
    rest = values - whole
    rounded: np.ndarray = (whole + (rest >= 0.5) - (rest <= -0.5)).astype(np.int64)
    return rounded


def whole_each(values: np.ndarray) -> np.ndarray:
    """Each of an array without its fraction, as int64; what is huge is cut off, NaN is 0."""
    whole: np.ndarray = _limited(values).astype(np.int64)
    return whole


def _limited(values: np.ndarray) -> np.ndarray:
    if values.dtype.kind == "f":
        values = np.where(np.isnan(values), 0.0, values)
    limited: np.ndarray = np.clip(values, -FARTHEST, FARTHEST)
    return limited


def as_float32(value: float) -> float:
    """The nearest float32: DALI stores floating point arguments so, and computes in float64."""
    return float(np.float32(value))
