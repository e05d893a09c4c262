"""Source pixels, and their weights, of filters that end at the edge of the image.

That is how Pillow and PyTorch resample: weights of pixels outside are left out, and the others
scaled to a sum of 1, where `headrace.kernels.cpu.resample_taps` has the outermost pixels stand for
them. With antialiasing a filter is as wide as the reduction; without, PyTorch's has a fixed width,
and the outermost pixels stand for those outside.
"""

from __future__ import annotations

import enum
import math
from functools import lru_cache

import numpy as np

from headrace.kernels.compilation import njit
from headrace.kernels.cpu.resample_taps import Taps


class ClippedFilter(enum.IntEnum):
    """Filters of Pillow."""

    BILINEAR = 0
    BICUBIC = 1
    LANCZOS = 2
    BOX = 3
    HAMMING = 4


_RADIUS = (1.0, 2.0, 3.0, 0.5, 1.0)


@njit(nogil=True)
def _sinc(x: float) -> float:
    return 1.0 if x == 0.0 else math.sin(x * math.pi) / (x * math.pi)


@njit(nogil=True)
def _cubic(x: float, a: float) -> float:
    if x < 1.0:
        return ((a + 2.0) * x - (a + 3.0)) * x * x + 1
    return (((x - 5) * x + 8) * x - 4) * a if x < 2.0 else 0.0


@njit(nogil=True)
def _weight(kind: int, x: float) -> float:
    if kind == 3:
        return 1.0 if -0.5 < x <= 0.5 else 0.0
    x = abs(x)
    if kind == 0:
        return max(1.0 - x, 0.0)
    if kind == 1:
        return _cubic(x, -0.5)
    if kind == 2:
        return _sinc(x) * _sinc(x / 3) if x < 3.0 else 0.0
    return _sinc(x) * (0.54 + 0.46 * math.cos(x * math.pi)) if x < 1.0 else 0.0


@njit(nogil=True)
def _antialiased(
    kind: int, radius: float, in_size: int, first: np.ndarray, weights: np.ndarray
) -> None:
    out_size, taps = weights.shape
    scale = in_size / out_size
    wide = max(scale, 1.0)
    support = radius * wide
    for i in range(out_size):
        centre = (i + 0.5) * scale
        low = max(int(centre - support + 0.5), 0)
        high = min(int(centre + support + 0.5), in_size)
        begin = min(low, in_size - taps)  # the row of weights ends within the image
        first[i] = begin
        row = weights[i]
        row[:] = 0
        total = 0.0
        for k in range(low, high):
            weight = _weight(kind, (k - centre + 0.5) / wide)
            row[k - begin] = weight
            total += weight
        if total != 0.0:
            for k in range(taps):
                row[k] /= total


@njit(nogil=True)
def _interpolated(kind: int, in_size: int, first: np.ndarray, weights: np.ndarray) -> None:
    out_size, taps = weights.shape
    scale = in_size / out_size
    reach = 0 if kind == 0 else 1
    for i in range(out_size):
        at = (i + 0.5) * scale - 0.5
        if kind == 0:
            at = max(at, 0.0)
        left = math.floor(at)
        part = at - left
        begin = min(max(left - reach, 0), in_size - taps)
        first[i] = begin
        row = weights[i]
        row[:] = 0
        for k in range(-reach, 2 + reach):
            distance = abs(part - k)
            weight = 1.0 - distance if kind == 0 else _cubic(distance, -0.75)
            row[min(max(left + k, 0), in_size - 1) - begin] += weight


@lru_cache(maxsize=1024)
def clipped_taps(
    in_size: int,
    out_size: int,
    kind: ClippedFilter,
    *,
    antialias: bool = True,
    start: int = 0,
    mirror: bool = False,
) -> Taps:
    """Taps of `out_size` pixels made of `in_size` ones, which begin with number `start`.

    With `mirror` they come in the opposite order. Without `antialias`, only of the first two kinds.
    """
    radius = _RADIUS[kind]
    if antialias:
        widest = int(2 * radius * max(in_size / out_size, 1.0) + 1e-6) + 1
    else:
        widest = 2 if kind == ClippedFilter.BILINEAR else 4
    first = np.empty(out_size, np.int64)
    weights = np.empty((out_size, min(widest, in_size)), np.float32)
    if antialias:
        _antialiased(int(kind), radius, in_size, first, weights)
    else:
        _interpolated(int(kind), in_size, first, weights)
    first += start
    if mirror:
        first, weights = first[::-1].copy(), weights[::-1].copy()
    low, high = sorted((int(first[0]), int(first[-1])))
    return Taps(first, weights, low, high + weights.shape[1])
