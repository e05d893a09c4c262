"""Arrays joined along an axis."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from headrace.kernels.cpu.bits import MAX_CHANNELS, movable
from headrace.kernels.cpu.opencv import cv2

_SHORT_RUN = 16
"""Elements next to one another that NumPy copies more slowly than OpenCV joins channels."""
_FEW_RUNS = 64
"""So few that calling OpenCV takes longer."""


def join_into(pieces: Sequence[np.ndarray], axis: int, out: np.ndarray) -> None:
    """Fill `out` with `pieces`, one after the other along `axis`."""
    runs = math.prod(out.shape[:axis])
    length = math.prod(out.shape[axis:])
    if runs > _FEW_RUNS and 0 < length <= min(MAX_CHANNELS, _SHORT_RUN * len(pieces)):
        planes = [
            movable(np.ascontiguousarray(piece)).reshape(runs, 1, -1)
            for piece in pieces
            if piece.size
        ]
        cv2().merge(planes, movable(out).reshape(runs, 1, length))
        return
    np.concatenate(pieces, axis=axis, out=out)
