"""Normalisation: moments along any axes, and the linear function that they parametrise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from headrace.kernels.cpu import normalize_loops
from headrace.kernels.cpu.cast import converter
from headrace.kernels.cpu.rows import read_only
from headrace.tensors.rows import Rows


def totals(data: np.ndarray, axes: Sequence[int]) -> np.ndarray:
    """Sums along `axes`, float64; summed axes stay with an extent of 1."""
    outer, reduced, inner, shape = in_blocks(data.shape, tuple(axes))
    partial = np.empty((outer, inner), np.float64)
    normalize_loops.sums(_flat(data), reduced, inner, None, partial)
    return sum_rest(partial.reshape(shape), axes)


def squared_deviations(data: np.ndarray, mean: np.ndarray, axes: Sequence[int]) -> np.ndarray:
    """Sums of squared distances to `mean` along `axes`, float64; these axes stay.

    `mean` is anything that can be broadcast to an extent of 1 along `axes`.
    """
    outer, reduced, inner, shape = in_blocks(data.shape, tuple(axes))
    center = _spread(mean, shape, np.float64, (outer, inner))
    partial = np.empty((outer, inner), np.float64)
    normalize_loops.sums(_flat(data), reduced, inner, center, partial)
    return sum_rest(partial.reshape(shape), axes)


def normalize(
    data: np.ndarray, out: np.ndarray, mean: np.ndarray, scale: np.ndarray, shift: float
) -> None:
    """Fill `out` with ``(data - mean) * scale + shift``.

    `data`: integers of up to 32 bits or float32; any shape and strides.
    """
    if data.size == 0:
        return
    shared = [
        k
        for k in range(data.ndim)
        if (mean.size == 1 or mean.shape[k] == 1) and (scale.size == 1 or scale.shape[k] == 1)
    ]
    outer, reduced, inner, shape = in_blocks(data.shape, tuple(shared))
    precision = np.float64 if needs_double(data.dtype) else np.float32
    single = out if out.dtype == np.float32 else np.empty(out.shape, np.float32)
    normalize_loops.scale_deviations(
        _flat(data),
        reduced,
        inner,
        _spread(mean, shape, precision, (outer, inner)),
        _spread(scale, shape, np.float32, (outer, inner)),
        np.float32(shift),
        single.reshape(-1),
    )
    if single is not out:
        converter(single.dtype, out.dtype)(single, out)


def normalize_by_own_moments(
    samples: Rows,
    out: Rows,
    axes: tuple[int, ...] | None,
    *,
    ddof: int,
    epsilon: float,
    scale: float,
    shift: float,
) -> list[int]:
    """The same for several samples, with mean and deviation along `axes` of their own, in one go.

    The values are those of `totals`, `squared_deviations` and `normalize`, bit for bit. Integers
    have up to 16 bits, and outputs are float32.
    """
    blocks = np.zeros((len(samples), 3), np.int64)
    left = []
    for k, shape in enumerate(map(tuple, samples.shapes.tolist())):
        found = _as_whole_blocks(shape, axes if axes is not None else tuple(range(len(shape))))
        if found is None:
            left.append(k)
        else:
            blocks[k] = found
    groups = int((blocks[:, 0] * blocks[:, 2]).max(initial=0))
    normalize_loops.normalize_by_own_moments(
        samples.addresses,
        np.empty(0, samples.dtype),
        blocks,
        ddof,
        epsilon,
        scale,
        np.float32(shift),
        out.flat,
        out.begins,
        np.empty(groups, np.float64),
        np.empty((2, groups), np.float32),
    )
    return left


@lru_cache(maxsize=1024)
def _as_whole_blocks(shape: tuple[int, ...], axes: tuple[int, ...]) -> tuple[int, int, int] | None:
    """`in_blocks`, if there is nothing else to sum up along."""
    outer, reduced, inner, rest = in_blocks(shape, axes)
    return None if any(rest[k] != 1 for k in axes) else (outer, reduced, inner)


def needs_double(dtype: np.dtype) -> bool:
    """True if numbers have more digits than float32: subtract in float64, then round."""
    return dtype.kind in "iu" and dtype.itemsize == 4


def _flat(data: np.ndarray) -> np.ndarray:
    return read_only(np.ascontiguousarray(data).reshape(-1))


@lru_cache(maxsize=1024)
def in_blocks(
    shape: tuple[int, ...], axes: tuple[int, ...]
) -> tuple[int, int, int, tuple[int, ...]]:
    """`shape` as ``(outer, reduced, inner)`` around the last neighbours among `axes`.

    The last result is the shape with these neighbours' extents being 1.
    """
    end = len(shape)
    while end > 0 and (end - 1 not in axes or shape[end - 1] == 1):
        end -= 1
    start = end
    while start > 0 and (start - 1 in axes or shape[start - 1] == 1):
        start -= 1
    kept = (*shape[:start], *(1,) * (end - start), *shape[end:])
    return (
        math.prod(shape[:start]),
        math.prod(shape[start:end]),
        math.prod(shape[end:]),
        kept,
    )


def sum_rest(partial: np.ndarray, axes: Sequence[int]) -> np.ndarray:
    """Sums along what is left of `axes`, which stay."""
    rest = tuple(k for k in axes if partial.shape[k] != 1)
    with np.errstate(invalid="ignore"):
        return partial.sum(axis=rest, keepdims=True) if rest else partial


def _spread(
    values: np.ndarray, shape: tuple[int, ...], dtype: type, groups: tuple[int, int]
) -> np.ndarray:
    """`values` broadcast to `shape`, as an array of ``(outer, inner)`` groups."""
    values = values.astype(dtype, copy=False)
    if values.size == groups[0] * groups[1]:
        return read_only(np.ascontiguousarray(values).reshape(groups))
    if values.size == 1:
        values = values.reshape(())
    return read_only(np.ascontiguousarray(np.broadcast_to(values, shape)).reshape(groups))
