"""Functions of single elements."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numba
import numpy as np
from numba.core import types

from penstock.kernels.compilation import njit
from penstock.kernels.cpu import pointwise_loops
from penstock.kernels.cpu.once import once
from penstock.kernels.cpu.rows import flat_rows


class ScaleAndShift:
    """Fills arrays with ``source * scale + offset``.

    Parameters
    ----------
    source, out
        Element types: uint8, int16, int32 or float32.
    """

    def __init__(self, source: np.dtype, out: np.dtype) -> None:
        self._types = source, out

    def __call__(self, source: np.ndarray, out: np.ndarray, scale: float, offset: float) -> None:
        """Fill an array.

        Parameters
        ----------
        source
            Any shape and strides.
        out
            Contiguous, of the shape of `source`. The arithmetic is float32; integers are rounded,
            halves away from zero, and saturate.
        """
        flat, rows, width, stride = flat_rows(source)
        if rows:
            self._loop(flat, rows, width, stride, out.reshape(-1), scale, offset)

    @cached_property
    def _loop(self) -> Any:
        return _compiled(*self._types)


@once
def _compiled(source: np.dtype, out: np.dtype) -> Any:
    """The loop, compiled once for inputs that can be written to and for others."""
    long, number = types.int64, types.float64
    signature = types.void(
        types.Array(numba.from_dtype(source), 1, "C", readonly=True),
        *(long, long, long),
        types.Array(numba.from_dtype(out), 1, "C"),
        *(number, number),
    )
    return njit(signature=signature, nogil=True)(pointwise_loops.scale_and_shift)
