"""The preemphasis filter: a difference of neighbours."""

from __future__ import annotations

import numba
import numpy as np

from headrace.kernels.compilation import njit
from headrace.kernels.cpu.audio.border import Border
from headrace.kernels.cpu.cast import converter
from headrace.kernels.cpu.pointers import elements

_PIECE = 4096


def preemphasize(source: np.ndarray, coefficient: float, border: Border, out: np.ndarray) -> None:
    """Fill `out` with ``source[t] - coefficient * source[t - 1]``.

    `source`: numbers but float16, any shape, taken as one row.
    """
    if not out.size:
        return
    row, target = source.reshape(-1), out.reshape(-1)
    before = 0 if border == Border.ZERO else row[0]
    if border == Border.REFLECT:
        before = row[1] if row.size > 1 else 0
    wide = row.dtype.type if row.dtype == np.float64 else np.float32
    factor, first = wide(np.float32(coefficient)), wide(before)
    if target.dtype == np.dtype(wide):
        _filter(row, factor, first, target)
        return
    # By pieces, so that what lies in between stays in the cache.
    piece = np.empty(min(_PIECE, row.size), wide)
    convert = converter(piece.dtype, target.dtype)
    for begin in range(0, row.size, _PIECE):
        part = row[begin : begin + _PIECE]
        made = piece[: part.size]
        _filter(part, factor, first, made)
        convert(made, target[begin : begin + _PIECE])
        first = wide(part[-1])


_REFLECT, _ZERO = int(Border.REFLECT), int(Border.ZERO)


@njit(nogil=True)
def preemphasize_rows(
    addresses: np.ndarray,
    sizes: np.ndarray,
    like: np.ndarray,
    factors: np.ndarray,
    border: int,
    out: np.ndarray,
    begins: np.ndarray,
) -> None:
    """`preemphasize` for several samples, whose numbers come out as floats wide enough for them.

    `addresses`, `sizes`: where each is, of the type of `like`, and its elements. `factors`: of the
    type of `out`, which is flat; sample `k` begins at ``begins[k]``.
    """
    for k in range(len(addresses)):
        size = sizes[k]
        if size == 0:
            continue
        source = numba.carray(elements(addresses[k], like), (size,))
        before = out.dtype.type(source[0])
        if border == _ZERO or (border == _REFLECT and size == 1):
            before = out.dtype.type(0)
        elif border == _REFLECT:
            before = out.dtype.type(source[1])
        _filter(source, factors[k], before, out[begins[k] : begins[k] + size])


@njit(nogil=True)
def _filter(source: np.ndarray, factor: float, first: float, out: np.ndarray) -> None:
    kind = out.dtype.type
    out[0] = kind(source[0]) - factor * first
    for t in range(1, out.size):
        out[t] = kind(source[t]) - factor * kind(source[t - 1])
