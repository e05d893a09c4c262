"""The draws of `philox` and `normal` for a few numbers: they keep the interpreter.

One number a sample takes microseconds. To get the interpreter back from a thread that has just
taken it takes far longer, and the thread that draws for a whole batch has other work to do.
"""

from __future__ import annotations

import numpy as np

from penstock.kernels.compilation import njit
from penstock.kernels.cpu import normal, philox

_uniform_float32, _uniform_float64 = philox.uniform_float32, philox.uniform_float64
_index_int64, _bernoulli_uint8 = philox.index_int64, philox.bernoulli_uint8
_normal_float32, _normal_float64 = normal.normal_float32, normal.normal_float64


@njit()
def uniform_float32(out: np.ndarray, low: float, high: float, first: int, key: philox.Key) -> None:
    """`philox.uniform_float32`."""
    _uniform_float32(out, low, high, first, key)


@njit()
def uniform_float64(out: np.ndarray, low: float, high: float, first: int, key: philox.Key) -> None:
    """`philox.uniform_float64`."""
    _uniform_float64(out, low, high, first, key)


@njit()
def index_int64(out: np.ndarray, choices: int, first: int, key: philox.Key) -> None:
    """`philox.index_int64`."""
    _index_int64(out, choices, first, key)


@njit()
def bernoulli_uint8(out: np.ndarray, threshold: int, first: int, key: philox.Key) -> None:
    """`philox.bernoulli_uint8`."""
    _bernoulli_uint8(out, threshold, first, key)


@njit()
def normal_float32(
    out: np.ndarray, mean: float, stddev: float, first: int, key: philox.Key
) -> None:
    """`normal.normal_float32`."""
    _normal_float32(out, mean, stddev, first, key)


@njit()
def normal_float64(
    out: np.ndarray, mean: float, stddev: float, first: int, key: philox.Key
) -> None:
    """`normal.normal_float64`."""
    _normal_float64(out, mean, stddev, first, key)
