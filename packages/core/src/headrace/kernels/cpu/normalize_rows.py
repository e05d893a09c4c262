"""``(pixel - mean) * factor`` of several images, views of any strides, in one call."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba.core import types
from numpy.lib.stride_tricks import as_strided

from headrace.kernels.compilation import njit
from headrace.kernels.cpu import half
from headrace.kernels.cpu.locked_cache import locked_cache
from headrace.kernels.cpu.normalize_pixels import LIMITS, STORED_AS, _normalize
from headrace.kernels.cpu.pointers import elements


def _loop(
    sources: np.ndarray,
    strides: np.ndarray,
    shapes: np.ndarray,
    given: np.ndarray,
    means: np.ndarray,
    factors: np.ndarray,
    rounds: bool,
    low: np.float32,
    high: np.float32,
    targets: np.ndarray,
    planar: bool,
    wanted: np.ndarray,
) -> None:
    size = wanted.itemsize
    for k in range(len(sources)):
        height, width, channels = shapes[k]
        if height * width * channels == 0:
            continue
        extents = (height, width, channels)
        pixels = as_strided(
            numba.carray(elements(sources[k], given), 1),
            extents,
            (strides[k, 0], strides[k, 1], strides[k, 2]),
        )
        if planar:
            steps = (width * size, size, height * width * size)
        else:
            steps = (width * channels * size, channels * size, size)
        out = as_strided(numba.carray(elements(targets[k], wanted), 1), extents, steps)
        _normalize(pixels, means, factors, rounds, low, high, out)


@locked_cache
def _compiled(source: np.dtype, out: np.dtype) -> Any:
    """`_loop` for elements of these types."""
    flat, f, rows = types.float32[::1], types.float32, types.int64[:, ::1]
    addresses = types.uint64[::1]
    signature = types.void(
        *(addresses, rows, rows, numba.from_dtype(source)[::1], flat, flat),
        *(types.boolean, f, f, addresses, types.boolean, numba.from_dtype(out)[::1]),
    )
    return njit(signature=signature, nogil=True)(_loop)


def takes(source: np.dtype, out: np.dtype) -> bool:
    """Return True if `normalize_rows` knows these types."""
    return source != np.float16 and (out != np.float16 or half.available())


def normalize_rows(
    sources: np.ndarray,
    strides: np.ndarray,
    shapes: np.ndarray,
    dtype: np.dtype,
    means: np.ndarray,
    factors: np.ndarray,
    targets: np.ndarray,
    out_dtype: np.dtype,
    *,
    planar: bool,
) -> None:
    """Write ``(source - mean) * factor`` of HWC images to contiguous HWC, or CHW, ones.

    `sources`, `targets`: addresses, uint64 ``(samples,)``. `strides`, `shapes`: bytes and extents,
    int64 ``(samples, 3)``. `means`, `factors`: as of `normalize_pixels`.
    """
    limits = LIMITS.get(out_dtype)
    low, high = limits or (0.0, 0.0)
    stored = STORED_AS.get(out_dtype, out_dtype)
    _compiled(dtype, stored)(
        *(sources, strides, shapes, np.empty(0, dtype), means, factors),
        *(limits is not None, low, high, targets, planar, np.empty(0, stored)),
    )
