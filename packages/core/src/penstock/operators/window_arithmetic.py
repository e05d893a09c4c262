"""The arithmetic that all windows share: what a window is and how its coordinates are rounded."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

Window = tuple[tuple[int, ...], tuple[int, ...]]
"""Anchor and shape of a window, one entry an axis of the data."""


def slices(anchor: Sequence[int], shape: Sequence[int]) -> tuple[slice, ...]:
    """The index that selects a window inside the bounds as a view."""
    return tuple([slice(a, a + s) for a, s in zip(anchor, shape, strict=True)])


def round_half_away(value: float) -> int:
    """`value` rounded to the nearest integer, halves away from zero (C's ``llround``)."""
    whole = int(value)
    rest = value - whole
    if rest >= 0.5:
        return whole + 1
    if rest <= -0.5:
        return whole - 1
    return whole


def as_float32(value: float) -> float:
    """The nearest float32: DALI stores floating point arguments so, and computes in float64."""
    return float(np.float32(value))
