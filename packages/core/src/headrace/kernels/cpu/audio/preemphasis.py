"""The preemphasis filter: a difference of neighbours."""

from __future__ import annotations

import numpy as np

from headrace.kernels.compilation import njit
from headrace.kernels.cpu.audio.border import Border
from headrace.kernels.cpu.cast import converter

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


@njit(nogil=True)
def _filter(source: np.ndarray, factor: float, first: float, out: np.ndarray) -> None:
    kind = out.dtype.type
    out[0] = kind(source[0]) - factor * first
    for t in range(1, out.size):
        out[t] = kind(source[t]) - factor * kind(source[t - 1])
