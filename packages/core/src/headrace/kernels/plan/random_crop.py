"""Random windows of several images at once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from headrace.kernels.cpu.random_crop import crop_windows


def random_windows(
    extents: np.ndarray,
    area: tuple[float, float],
    aspect_ratio: tuple[float, float],
    num_attempts: int,
    seed: Any,
    iteration: int,
    indices: Sequence[int],
) -> np.ndarray:
    """Random windows of images, in pixels.

    `extents`: heights and widths, ``(samples, 2)``; not positive where an image needs no window.
    Returns int64 ``(samples, 4)``: row, column, height and width.
    """
    windows = np.empty((len(extents), 4), np.int64)
    sizes = np.array(extents, np.int64, order="C")
    numbers = _counted(indices) if type(indices) is range else np.array(indices, np.int64)
    state = seed.at(iteration)
    crop_windows(
        *(windows, sizes, area, aspect_ratio, num_attempts, numbers),
        (
            np.uint64(state.key),
            np.uint64(state.sequence),
            np.uint64(state.offset),
            np.uint64(state.phase),
        ),
    )
    return windows


@lru_cache(maxsize=16)
def _counted(indices: range) -> np.ndarray:
    """Positions of a whole batch, the same in each iteration; they are only read."""
    return np.arange(indices.start, indices.stop, indices.step)
