"""Arrays as types that OpenCV takes, for functions that only move elements."""

from __future__ import annotations

import numpy as np

_SAME_SIZE = {1: np.uint8, 2: np.uint16, 4: np.int32, 8: np.float64}

MAX_CHANNELS = 64
"""Most channels that are handed to OpenCV, which has a limit of its own."""


def movable(array: np.ndarray) -> np.ndarray:
    """`array` seen as the type of its element size that OpenCV knows.

    OpenCV copies elements as they are, so that any bits survive, in float64 too.
    """
    return array.view(_SAME_SIZE[array.itemsize])
