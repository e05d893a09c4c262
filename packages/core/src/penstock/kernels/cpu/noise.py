"""Pixels that are given one of two values."""

from __future__ import annotations

import numpy as np

from penstock.kernels.compilation import njit


@njit(nogil=True)
def salt_and_pepper(
    elements: np.ndarray, units: np.ndarray, limits: np.ndarray, values: np.ndarray, inner: int
) -> None:
    """Set the elements of some pixels.

    Parameters
    ----------
    elements
        Those of a sample, 1-D, as unsigned words.
    units
        float32, a number from 0 to 1 for each pixel: those below ``limits[0]`` get ``values[0]``,
        others below ``limits[1]`` get ``values[1]``.
    inner
        How many elements of a pixel follow one another; if it has more, they begin again behind
        those of all pixels.
    """
    pixels = len(units)
    for first in range(0, len(elements), pixels * inner):
        for p in range(pixels):
            if units[p] < limits[1]:
                value = values[0] if units[p] < limits[0] else values[1]
                for k in range(inner):
                    elements[first + p * inner + k] = value
