"""The windowed sinc that audio is resampled with.

A sample between two others is a sum of its neighbours, weighted by ``sinc(d) * hann(d)`` of their
distances d: the reconstruction of a band-limited signal, shortened by a window (Oppenheim and
Schafer, "Discrete-Time Signal Processing"). The function is known at 32 places for each lobe and
interpolated in between. Nothing is filtered out when the rate becomes lower. All that is DALI's
choice, found out by resampling impulses.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

PHASES = 32
"""Places between two samples at which the window is known."""


class SincWindow(NamedTuple):
    """The weights of all neighbours of a place between two samples.

    `lobes`: how far neighbours may be, in samples. `taps`: how many weights a place has, with the
    zeros at the end. `weights`: float32 ``(PHASES + 1) * taps`` in one row: those number p are for
    places ``p / PHASES`` after a sample, and begin with the neighbour `lobes` before that sample.
    `steps`: float32, as large: what each weight gains if the place moves by ``1 / PHASES`` *back*.
    """

    lobes: int
    taps: int
    weights: np.ndarray
    steps: np.ndarray


@lru_cache(maxsize=64)
def sinc_window(quality: float) -> SincWindow:
    """The window for a quality of 0 (3 lobes) to 100 (64 lobes); 50 gives 16."""
    lobes = int(np.floor(0.007 * quality * quality - 0.09 * quality + 3.5))
    taps = -(-2 * (lobes + 1) // 16) * 16
    neighbours = np.arange(taps) - lobes
    places = neighbours * PHASES - np.arange(PHASES + 1)[:, None]
    weights = _at(places, lobes)
    # One place further on towards the neighbour, which is where the interpolation goes.
    steps = _at(places + 1, lobes) - weights
    weights = weights.astype(np.float32).reshape(-1)
    steps = steps.astype(np.float32).reshape(-1)
    weights.flags.writeable = steps.flags.writeable = False
    return SincWindow(lobes, taps, weights, steps)


def _at(places: np.ndarray, lobes: int) -> np.ndarray:
    """The windowed sinc at multiples of ``1 / PHASES``."""
    distance = places / PHASES
    # The window reaches half a place beyond the last lobe.
    envelope = 0.5 + 0.5 * np.cos(np.pi * places / (PHASES * lobes + 0.5))
    inside = np.abs(places) <= PHASES * lobes
    return np.where(inside, np.sinc(distance) * envelope, 0.0)
