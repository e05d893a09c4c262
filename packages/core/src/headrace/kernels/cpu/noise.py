"""Numbers of a Poisson distribution, and pixels that are given one of two values."""

from __future__ import annotations

import math

import numpy as np

from headrace.kernels.compilation import njit

_SUMMED = 64.0
"""Rates up to which probabilities are summed; above, one number in 30,000 is off by one."""
_ROOT_HALF = 0.5**0.5


@njit(nogil=True)
def salt_and_pepper(
    elements: np.ndarray, units: np.ndarray, limits: np.ndarray, values: np.ndarray, inner: int
) -> None:
    """Set the elements of some pixels.

    `elements`: those of a sample, 1-D, as unsigned words. `units`: float32, a number from 0 to 1
    for each pixel: those below ``limits[0]`` get ``values[0]``, others below ``limits[1]`` get
    ``values[1]``.
    """
    pixels, count = len(units), 0
    places = np.empty(pixels, np.int64)
    for p in range(pixels):  # without a branch, which would often be mispredicted
        places[count] = p
        count += units[p] < limits[1]
    for first in range(0, len(elements), pixels * inner):
        for p in places[:count]:
            value = values[0] if units[p] < limits[0] else values[1]
            for k in range(inner):
                elements[first + p * inner + k] = value


@njit(nogil=True)
def poisson(rates: np.ndarray, drawn: np.ndarray) -> None:
    """Turn numbers of the standard normal distribution into those of Poisson distributions.

    They are the quantiles of the same probability: by the sum of the probabilities of all numbers
    up to it or, of large rates, by M. B. Giles' expansion ("Algorithm 955: Approximation of the
    Inverse Poisson Cumulative Distribution Function", ACM TOMS 42(1), 2016).

    `rates`: float32 ``(elements,)``; where one is not positive or not finite, the number is 0.
    `drawn`: float32 ``(elements,)``, in place.
    """
    for e in range(len(rates)):
        rate, normal = np.float64(rates[e]), np.float64(drawn[e])
        number = 0.0
        if 0.0 < rate <= _SUMMED:
            target = 0.5 * math.erfc(-normal * _ROOT_HALF)
            share = math.exp(-rate)
            total = share
            while total < target and share > 0.0:
                number += 1.0
                share *= rate / number
                total += share
        elif 0.0 < rate < math.inf:
            root, square = math.sqrt(rate), normal * normal
            place = rate + root * normal + (2.0 + square) / 6.0
            place -= normal * (2.0 + square) / (72.0 * root)
            place += (3.0 * square * square + 7.0 * square - 16.0) / (810.0 * rate)
            number = max(math.floor(place), 0.0)
        drawn[e] = np.float32(number)
