"""Random windows for whole batches: `penstock.kernels.cpu.random_crop`, compiled.

The windows are those of `choose_crop`, all of them, with the numbers that `sample_uniforms` draws.
"""

from __future__ import annotations

import numpy as np

from penstock.kernels.cpu.random_crop_loops import crop_window
from penstock.kernels.gpu.resample_axes import AXIS
from penstock.kernels.plan.compiled import compiled

_WORD = 0xFFFFFFFF


def random_crops(
    extents: np.ndarray,
    count: int,
    size: tuple[int, int],
    area: tuple[float, float],
    aspect_ratio: tuple[float, float],
    num_attempts: int,
    seed: int,
    iteration: int,
    filters: tuple[np.ndarray, np.ndarray],
) -> np.ndarray | None:
    """How the rows and columns of random windows of each image of a batch become `size`.

    Parameters
    ----------
    extents
        Heights and widths of the images, int64 ``(2, samples)``, or ``(2, 1)`` if they are the
        same.
    count
        Number of samples.
    size
        Height and width of the outputs.
    area, aspect_ratio, num_attempts
        As of `choose_crop`.
    seed, iteration
        Of the random numbers.
    filters
        For axes that shrink, and for others, int64 ``(samples,)`` or ``(1,)``.

    Returns
    -------
    numpy.ndarray or None
        `AXIS` ``(2, samples)``; `None` if an image is empty.
    """
    axes = np.empty((2, count), AXIS)
    key = iteration & _WORD, iteration >> 32, seed & _WORD, (seed >> 32) & _WORD
    good = _draw(axes, extents, size, area, aspect_ratio, num_attempts, key, *filters)
    return axes if good else None


@compiled
def _draw(
    axes: np.ndarray,
    extents: np.ndarray,
    size: tuple[int, int],
    area: tuple[float, float],
    aspect_ratio: tuple[float, float],
    num_attempts: int,
    key: tuple[int, int, int, int],
    shrinking: np.ndarray,
    enlarging: np.ndarray,
) -> bool:
    windows = np.empty((2, 2), np.int64)
    for i in range(axes.shape[1]):
        image = i if extents.shape[1] > 1 else 0
        height, width = extents[0, image], extents[1, image]
        if height <= 0 or width <= 0:
            return False
        row, column, rows, columns = crop_window(
            height, width, area, aspect_ratio, num_attempts, i, key
        )
        windows[0, 0], windows[0, 1] = row, rows
        windows[1, 0], windows[1, 1] = column, columns
        for k in range(2):
            axis = axes[k, i]
            axis.in_size = extents[k, image]
            axis.out_size = axis.length = size[k]
            axis.start = windows[k, 0]
            axis.end = windows[k, 0] + windows[k, 1]
            # The extent is rounded to single precision, so that equal extents count as equal.
            if np.float32(windows[k, 1]) > size[k]:
                axis.filter = shrinking[i if len(shrinking) > 1 else 0]
            else:
                axis.filter = enlarging[i if len(enlarging) > 1 else 0]
            axis.begin = 0
            axis.step = 1
    return True
