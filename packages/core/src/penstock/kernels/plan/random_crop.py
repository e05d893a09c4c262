"""Random windows of several images at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from penstock._forking import no_fork
from penstock.kernels.cpu.philox_state import is_of_pipeline
from penstock.kernels.cpu.random import sample_uniforms
from penstock.kernels.cpu.random_crop import choose_crop, uniforms_needed
from penstock.kernels.cpu.random_crop_loops import crop_window
from penstock.kernels.plan.compiled import compiled

_WORD = 0xFFFFFFFF


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

    Parameters
    ----------
    extents
        Heights and widths, ``(samples, 2)``; not positive where an image needs no window.
    area, aspect_ratio, num_attempts
        As of `choose_crop`.
    seed, iteration, indices
        Of the random numbers: the stream, the iteration, and each sample's position in its batch.

    Returns
    -------
    numpy.ndarray
        int64 ``(samples, 4)``: row, column, height and width.
    """
    sizes = np.maximum(extents, 1, dtype=np.int64, order="C")
    windows = np.empty((len(sizes), 4), np.int64)
    if is_of_pipeline(seed):
        state = seed.at(iteration)
        with no_fork:
            from penstock.kernels.cpu.random_crop_state import crop_windows
        crop_windows(
            windows,
            sizes,
            np.array(area, np.float32),
            np.array(aspect_ratio, np.float32),
            num_attempts,
            np.array(indices, np.int64),
            np.uint64(state.key),
            np.uint64(state.sequence),
        )
        return windows
    if type(seed) is not int:  # numbers of another stream
        count = uniforms_needed(num_attempts)
        for k, ((height, width), index) in enumerate(zip(sizes.tolist(), indices, strict=True)):
            uniforms = sample_uniforms(seed, iteration, index, count).tolist()
            windows[k] = choose_crop(height, width, uniforms, area, aspect_ratio, num_attempts)
        return windows
    key = iteration & _WORD, iteration >> 32, seed & _WORD, (seed >> 32) & _WORD
    _choose(windows, sizes, area, aspect_ratio, num_attempts, np.array(indices, np.int64), key)
    return windows


@compiled
def _choose(
    windows: np.ndarray,
    extents: np.ndarray,
    area: tuple[float, float],
    aspect_ratio: tuple[float, float],
    num_attempts: int,
    indices: np.ndarray,
    key: tuple[int, int, int, int],
) -> None:
    for i in range(len(windows)):
        row, column, rows, columns = crop_window(
            extents[i, 0], extents[i, 1], area, aspect_ratio, num_attempts, indices[i], key
        )
        windows[i, 0], windows[i, 1] = row, column
        windows[i, 2], windows[i, 3] = rows, columns
