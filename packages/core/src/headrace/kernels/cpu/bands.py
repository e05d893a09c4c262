"""Linear maps along one axis: filter banks of the mel scale, and cosine transforms."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from headrace.kernels.cpu import bands_loops
from headrace.kernels.cpu.rows import read_only

_LANES = 16


class Bands(NamedTuple):
    """Weighted sums of neighbours."""

    ranges: np.ndarray
    """int64 ``(sums, 3)``: first element, number of elements, where the weights begin."""
    weights: np.ndarray
    """float32, of all sums."""

    @property
    def sums(self) -> int:
        """Number of sums."""
        return len(self.ranges)


def _bands(ranges: np.ndarray, weights: np.ndarray) -> Bands:
    # Never without weights: compiled loops and the GPU want an address.
    whole = np.append(weights.astype(np.float32, copy=False), np.float32(0))
    return Bands(read_only(ranges.astype(np.int64, copy=False)), read_only(whole))


NO_BANDS = _bands(np.zeros((0, 3)), np.zeros(0))


def _as_bands(matrix: np.ndarray) -> Bands:
    """Bands of a matrix ``(sums, elements)``, without the zeros at the ends of its rows."""
    ranges = np.zeros((len(matrix), 3), np.int64)
    weights = []
    at = 0
    for n, row in enumerate(matrix.astype(np.float32)):
        used = np.flatnonzero(row)
        if used.size:
            first, last = int(used[0]), int(used[-1]) + 1
            ranges[n] = first, last - first, at
            weights.append(row[first:last])
            at += last - first
    return _bands(ranges, np.concatenate(weights) if weights else np.zeros(0))


# DALI's corners are float32 numbers, and narrow filters show it: each step below is rounded to
# float32. Logarithms and exponentials are those of float64, rounded, and so the same everywhere.


def _log(value: np.float32) -> np.float32:
    return np.float32(np.log(np.float64(value)))


def _exp(value: np.float32) -> np.float32:
    return np.float32(np.exp(np.float64(value)))


_LINEAR = np.float32(200 / 3)
_BREAK_HERTZ = np.float32(1000)
_BREAK_MEL = _BREAK_HERTZ / _LINEAR
_LOG_STEP = np.float32(math.log(6.4) / 27)


def _slaney(frequency: np.float32) -> np.float32:
    """Mel of Slaney's Auditory Toolbox (1998): linear below 1 kHz, logarithmic above."""
    if frequency < _BREAK_HERTZ:
        return frequency / _LINEAR
    return _BREAK_MEL + _log(frequency / _BREAK_HERTZ) / _LOG_STEP


def _of_slaney(mel: np.float32) -> np.float32:
    if mel < _BREAK_MEL:
        return mel * _LINEAR
    return _BREAK_HERTZ * _exp(_LOG_STEP * (mel - _BREAK_MEL))


def _htk(frequency: np.float32) -> np.float32:
    """Mel of O'Shaughnessy (1987), as in the HTK book."""
    return np.float32(1127) * _log(np.float32(1) + frequency / np.float32(700))


def _of_htk(mel: np.float32) -> np.float32:
    return np.float32(700) * (_exp(mel / np.float32(1127)) - np.float32(1))


_Scale = tuple[Callable[[np.float32], np.float32], Callable[[np.float32], np.float32]]
MEL_SCALES: dict[str, _Scale] = {"slaney": (_slaney, _of_slaney), "htk": (_htk, _of_htk)}
"""By name: from hertz to mel, and back."""


@lru_cache(maxsize=256)
def mel_bands(
    bins: int,
    count: int,
    sample_rate: float,
    low: float,
    high: float,
    formula: str,
    normalize: bool,
) -> Bands:
    """Triangular filters whose corners are as far apart as their neighbours' on the mel scale.

    `sample_rate`, `low`, `high`: hertz; the filters cover frequencies from `low` to `high`.
    `normalize`: true if each filter's triangle has an area of 1, in hertz, instead of a height of
    1.
    """
    to_mel, to_hertz = MEL_SCALES[formula]
    first, last = float(to_mel(np.float32(low))), float(to_mel(np.float32(high)))
    mels = first + np.arange(count + 2) * ((last - first) / (count + 1))
    corners = np.array([to_hertz(mel) for mel in mels.astype(np.float32)], np.float64)
    if bins < 2:
        # A single frequency, 0, is where no filter is above 0.
        return _as_bands(np.zeros((count, bins)))
    frequencies = np.arange(bins) * (sample_rate / (2 * (bins - 1)))
    widths = np.diff(corners)[:, None]
    with np.errstate(divide="ignore", invalid="ignore"):  # where corners are the same
        rising = (frequencies - corners[:-2, None]) / widths[:-1]
        falling = (corners[2:, None] - frequencies) / widths[1:]
        filters = np.maximum(0.0, np.nan_to_num(np.minimum(rising, falling)))
        if normalize:
            filters *= (2.0 / (corners[2:] - corners[:-2]))[:, None]
    # The outermost corners are rounded; what is asked for is not.
    filters[:, (frequencies < low) | (frequencies >= high)] = 0.0
    return _as_bands(np.nan_to_num(filters))


@lru_cache(maxsize=256)
def cosine_bands(size: int, count: int, kind: int, orthonormal: bool, lifter: float) -> Bands:
    """Discrete cosine transform of `size` numbers, the first `count` coefficients."""
    count = min(count, size)
    k, n = np.arange(count)[:, None], np.arange(size)[None, :]
    if kind == 1:
        matrix = np.cos(np.pi / (size - 1) * (k * n % (2 * (size - 1))))
        matrix[:, [0, -1]] *= 0.5
    elif kind == 2:
        matrix = np.cos(np.pi / (2 * size) * ((2 * n + 1) * k % (4 * size)))
    elif kind == 3:
        matrix = np.cos(np.pi / (2 * size) * (n * (2 * k + 1) % (4 * size)))
        matrix[:, :1] *= 0.5
    else:
        matrix = np.cos(np.pi / (4 * size) * ((2 * n + 1) * (2 * k + 1) % (8 * size)))
    if orthonormal:
        matrix *= math.sqrt(2.0 / size)
        if kind == 2:
            matrix[:1] *= math.sqrt(0.5)
        elif kind == 3:
            matrix[:, :1] *= math.sqrt(2.0)
    if lifter > 0:
        matrix *= 1 + lifter / 2 * np.sin(np.pi * (k + 1) / lifter)
    starts = np.arange(count) * size
    ranges = np.stack([np.zeros(count), np.full(count, size), starts], axis=1)
    # Whole rows, zeros included, so that sums of several coefficients are worked out together.
    return _bands(ranges, matrix.astype(np.float32).reshape(-1))


def apply_bands(data: np.ndarray, axis: int, bands: Bands, out: np.ndarray) -> None:
    """Fill `out` with weighted sums of `data` along `axis`."""
    if out.size == 0:
        return
    shape = data.shape
    extent = shape[axis]
    bands_loops.apply_bands(
        read_only(np.ascontiguousarray(data).reshape(-1)),
        math.prod(shape[:axis]),
        extent,
        math.prod(shape[axis + 1 :]),
        *bands,
        out.reshape(-1),
        np.empty(_LANES * max(extent, 1), np.float32),
        np.empty(_LANES * (bands.sums + _LANES), np.float32),
    )
