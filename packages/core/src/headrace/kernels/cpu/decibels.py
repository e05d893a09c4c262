"""Decibels: logarithms of ratios to a reference."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from headrace.kernels.cpu import decibel_loops
from headrace.kernels.cpu.rows import read_only


class DecibelScale(NamedTuple):
    """Reference, scale and lower bound of a conversion to decibels."""

    reference: np.float32
    """0 stands for the largest value of a sample."""
    smallest: np.float32
    """Smaller ratios count as this one."""
    factor: np.float32
    """Factor of natural logarithms."""


NO_DECIBELS = DecibelScale(np.float32(1), np.float32(1), np.float32(0))


def decibel_scale(reference: float | None, cutoff_db: float, multiplier: float) -> DecibelScale:
    """A scale where a ratio of 10 is `multiplier` and nothing is below `cutoff_db`."""
    with np.errstate(all="ignore"):
        exponent = np.float32(cutoff_db) / np.float32(multiplier)
        smallest = np.float32(np.power(10.0, np.float64(exponent)))
        given = np.float32(0) if reference is None else np.float32(reference)
        factor = np.float32(multiplier / math.log(10.0))
    # 0 would have a logarithm that is no number.
    least = np.nextafter(np.float32(0), np.float32(1))
    return DecibelScale(given, smallest if smallest != 0 else least, factor)


def to_decibels(data: np.ndarray, scale: DecibelScale, out: np.ndarray) -> None:
    """Fill `out` with `data` in decibels."""
    if out.size == 0:
        return
    decibel_loops.decibels(
        read_only(np.ascontiguousarray(data).reshape(-1)), out.reshape(-1), *scale
    )
