"""Random windows of several images at once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from headrace.kernels.cpu import random_crop_state as _random_crop_state
from headrace.kernels.cpu.philox_state import is_of_pipeline
from headrace.kernels.cpu.random import key_of, uniforms_of
from headrace.kernels.cpu.random_crop import crop_window
from headrace.kernels.plan.compiled import compiled


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
    if is_of_pipeline(seed):
        state = seed.at(iteration)
        _random_crop_state.crop_windows(
            *(windows, sizes, area, aspect_ratio, num_attempts, numbers),
            *(np.uint64(state.key), np.uint64(state.sequence)),
        )
        return windows
    key, uniforms = (0, 0, 0, 0), None
    if type(seed) is int:
        key = key_of(seed, iteration)
    else:  # numbers of another stream
        uniforms = uniforms_of(seed, iteration, numbers, 2 * max(num_attempts, 0) + 2)
    _choose(windows, sizes, area, aspect_ratio, num_attempts, numbers, key, uniforms)
    return windows


@lru_cache(maxsize=16)
def _counted(indices: range) -> np.ndarray:
    """Positions of a whole batch, the same in each iteration; they are only read."""
    return np.arange(indices.start, indices.stop, indices.step)


@compiled
def _choose(
    windows: np.ndarray,
    extents: np.ndarray,
    area: tuple[float, float],
    aspect_ratio: tuple[float, float],
    num_attempts: int,
    indices: np.ndarray,
    key: tuple[int, int, int, int],
    uniforms: np.ndarray | None,
) -> None:
    for i in range(len(windows)):
        height, width = max(extents[i, 0], 1), max(extents[i, 1], 1)
        own = None if uniforms is None else uniforms[i]
        row, column, rows, columns = crop_window(
            height, width, area, aspect_ratio, num_attempts, indices[i], key, own
        )
        windows[i, 0], windows[i, 1] = row, column
        windows[i, 2], windows[i, 3] = rows, columns
