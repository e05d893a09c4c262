"""Functions of single elements."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numba.core import types

from headrace.kernels.compilation import njit
from headrace.kernels.cpu import pointwise_loops
from headrace.kernels.cpu.locked_cache import locked_cache
from headrace.kernels.cpu.rows import as_rows


class ScaleAndShift:
    """Fills arrays with ``source * scale + offset``.

    `source`, `out`: element types: uint8, int16, int32 or float32.
    """

    def __init__(self, source: np.dtype, out: np.dtype) -> None:
        self._types = source, out
        self._loops: dict[int, Any] = {}
        """By the number of axes of contiguous arrays."""

    def __call__(self, source: np.ndarray, out: np.ndarray, scale: float, offset: float) -> None:
        """Fill an array.

        `source`: any shape and strides. `out`: contiguous, of the shape of `source`. The arithmetic
        is float32; integers are rounded, halves away from zero, and saturate.
        """
        flags = source.flags
        if flags.c_contiguous and flags.aligned:
            ndim = source.ndim
            loop = self._loops.get(ndim)
            if loop is None:
                loop = self._loops[ndim] = _compiled(*self._types, ndim)
            loop(source, 1, source.size, 0, out, scale, offset)
            return
        flat, *rows = as_rows(source if flags.aligned else source.copy())
        _compiled(*self._types, 1)(flat, *rows, out.reshape(-1), scale, offset)

    def rows(
        self, sources: np.ndarray, sizes: np.ndarray, targets: np.ndarray, numbers: np.ndarray
    ) -> None:
        """Fill several contiguous arrays; see `pointwise_loops.scale_and_shift_rows`."""
        like, out = (np.empty(0, dtype) for dtype in self._types)
        _compiled_rows(*self._types)(sources, sizes, like, targets, out, numbers)


@locked_cache
def _compiled_rows(source: np.dtype, out: np.dtype) -> Any:
    addresses, flat, f = types.uint64[::1], types.int64[::1], types.float32
    signature = types.void(
        *(addresses, flat, numba.from_dtype(source)[::1]),
        *(addresses, numba.from_dtype(out)[::1], f[:, ::1]),
    )
    return njit(signature=signature, nogil=True)(pointwise_loops.scale_and_shift_rows)


@locked_cache
def _compiled(source: np.dtype, out: np.dtype, ndim: int) -> Any:
    """The loop, compiled once for inputs that can be written to and for others."""
    long, number = types.int64, types.float64
    signature = types.void(
        types.Array(numba.from_dtype(source), ndim, "C", readonly=True),
        *(long, long, long),
        types.Array(numba.from_dtype(out), ndim, "C"),
        *(number, number),
    )
    return njit(signature=signature, nogil=True)(pointwise_loops.scale_and_shift)
