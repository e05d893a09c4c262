"""Sums, moments and extremes along any axes; these stay, with an extent of 1."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace.kernels.cpu import reduce_loops
from headrace.kernels.cpu.normalize import in_blocks, squared_deviations, sum_rest, totals
from headrace.kernels.cpu.rows import read_only
from headrace.tensors.pool import HOST_POOL

Axes = tuple[int, ...]
ZERO = np.zeros(1, np.float32)
"""The centre of squares that are no distances."""
_EXACT_BITS = 53
"""Of integers in float64."""
_RUN = 1024
"""Elements for which NumPy's loops are quick."""
_FEW = 16
"""Elements of an axis that is better taken apart."""


def extremes(data: np.ndarray, axes: Axes, *, largest: bool) -> np.ndarray:
    """Largest or smallest elements.

    Not-a-numbers are passed over. Of nothing it is the other end of the type's finite range, which
    is the limit for floats, too.
    """
    real = data.dtype.kind == "f"
    limits = np.finfo(data.dtype) if real else np.iinfo(data.dtype)
    start = data.dtype.type(limits.min if largest else limits.max)
    ufunc: np.ufunc = np.maximum if largest else np.minimum
    found = _reduced(data, axes, ufunc, start)
    if real and np.isnan(found).any():  # which the quick functions let through
        found = _reduced(data, axes, np.fmax if largest else np.fmin, start)
    return found


def _reduced(data: np.ndarray, axes: Axes, ufunc: np.ufunc, start: Any) -> np.ndarray:
    """Reduce by ``ufunc.reduce``, which is slow along short axes, or an equal faster way."""
    outer, reduced, inner, shape = in_blocks(data.shape, axes)
    blocks = np.ascontiguousarray(data).reshape(outer, reduced, inner)
    together = max(_RUN // max(inner, 1), 1) if inner > 1 else 1
    whole = reduced - reduced % together
    if together > 1 and whole > together:  # several neighbours at a time
        rows = blocks[:, :whole].reshape(outer, whole // together, together * inner)
        best = ufunc.reduce(rows, axis=1).reshape(outer, together, inner)
        best = ufunc.reduce(best, axis=1, initial=start)
        found = ufunc(best, ufunc.reduce(blocks[:, whole:], axis=1, initial=start))
    elif reduced <= _FEW:
        found = np.full((outer, inner), start)
        for k in range(reduced):
            ufunc(found, blocks[:, k], out=found)
    else:
        found = ufunc.reduce(blocks, axis=1, initial=start)
    rest = tuple(k for k in axes if shape[k] != 1)
    if not rest:
        return found.reshape(shape)
    return np.asarray(ufunc.reduce(found.reshape(shape), axis=rest, keepdims=True, initial=start))


def sums(data: np.ndarray, axes: Axes) -> np.ndarray:
    """Sums: of integers, exact ones of 64 bits, which wrap around; of floats, in float64."""
    if data.dtype.kind == "f":
        return _totals(data, axes)
    wide = np.dtype(f"{data.dtype.kind}8")
    count = math.prod(data.shape[k] for k in axes)
    if data.itemsize * 8 + count.bit_length() <= _EXACT_BITS:
        return totals(data, axes).astype(wide)
    return np.sum(data, axis=axes, dtype=wide, keepdims=True)


def _totals(data: np.ndarray, axes: Axes, *, squares: bool = False) -> np.ndarray:
    """Sums in float64, of elements or of their squares."""
    outer, reduced, inner, shape = in_blocks(data.shape, axes)
    if data.dtype == np.float32 and inner == 1 and reduced > _FEW:
        rows = read_only(np.ascontiguousarray(data).reshape(outer, reduced))
        found = np.empty(outer)
        reduce_loops.sum_rows(rows, squares, found)
        return sum_rest(found.reshape(shape), axes)
    if squares:
        made = HOST_POOL.empty(data.shape, data.dtype)
        with np.errstate(invalid="ignore", over="ignore"):
            data = np.square(data, out=made)
    return totals(data, axes)


def sums_of_squares(data: np.ndarray, axes: Axes) -> np.ndarray:
    """Sums of squares of integers, of 64 bits, which wrap around."""
    wide = data.astype(f"{data.dtype.kind}8")
    return np.sum(wide * wide, axis=axes, keepdims=True)


def mean(data: np.ndarray, axes: Axes) -> np.ndarray:
    """Arithmetic means, float64; of nothing not-a-numbers."""
    count = math.prod(data.shape[k] for k in axes)
    total = _totals(data, axes)
    return total / count if count else np.full(total.shape, np.nan)


def mean_of_integers(total: np.ndarray, count: int) -> np.ndarray:
    """Quotients of sums, without fractions; 0 of nothing."""
    whole: np.ndarray = np.abs(total) // max(count, 1)
    return np.where(total < 0, -whole, whole) if total.dtype.kind == "i" else whole


def spread(data: np.ndarray, centre: np.ndarray, axes: Axes, ddof: int) -> np.ndarray:
    """Mean squared distances to `centre`, float64."""
    count = math.prod(data.shape[k] for k in axes)
    if centre is ZERO and data.dtype == np.float32:
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            return _totals(data, axes, squares=True) / (count - ddof)
    shape: Sequence[int] = (1,) * data.ndim
    if centre.size != 1:
        shape = [1 if k in axes else extent for k, extent in enumerate(data.shape)]
    squares = squared_deviations(data, centre.reshape(shape), axes)
    with np.errstate(invalid="ignore", divide="ignore"):
        return squares / (count - ddof)
