"""Random windows for whole batches: `penstock.kernels.cpu.random_crop`, vectorised.

The windows are those of `choose_crop`, all of them.
"""

from __future__ import annotations

import math

import numpy as np

_FAR = float(1 << 40)
"""More than any image has; what is beyond does not fit, however far."""


def _whole_pixels(extents: np.ndarray) -> np.ndarray:
    """Extents without their fractions, at least 1."""
    whole: np.ndarray = np.clip(extents, 1.0, _FAR).astype(np.int64)
    return whole


def choose_crops(
    extents: np.ndarray,
    uniforms: np.ndarray,
    area: tuple[float, float],
    aspect_ratio: tuple[float, float],
    num_attempts: int,
) -> tuple[np.ndarray, np.ndarray]:
    """Anchors and extents of a random window of each image of a batch.

    Parameters
    ----------
    extents
        Heights and widths of the images, positive; int64 ``(2, samples)``.
    uniforms
        Independent numbers in [0, 1), ``(samples, uniforms_needed(num_attempts))``.
    area, aspect_ratio, num_attempts
        As of `choose_crop`.

    Returns
    -------
    tuple of numpy.ndarray
        Both int64 ``(2, samples)``: row and column, height and width.
    """
    height, width = extents
    smallest_ratio, largest_ratio = aspect_ratio
    whole = height * width
    widest = _whole_pixels(height * largest_ratio)
    tallest = _whole_pixels(width / smallest_ratio)
    smallest_area = area[0] * whole
    area_span = area[1] * whole - smallest_area
    too_wide = height * widest < smallest_area
    too_tall = ~too_wide & (width * tallest < smallest_area)
    crop_height = np.where(too_wide, height, tallest)
    crop_width = np.where(too_wide, widest, width)

    smallest_log = math.log(smallest_ratio)
    log_span = math.log(largest_ratio) - smallest_log
    left = np.flatnonzero(~(too_wide | too_tall))
    for attempt in range(num_attempts):
        if not left.size:
            break
        wanted = smallest_area[left] + area_span[left] * uniforms[left, 2 * attempt]
        logs = smallest_log + log_span * uniforms[left, 2 * attempt + 1]
        # Python's function: NumPy's may differ in the last bit.
        ratio = np.fromiter(map(math.exp, logs.tolist()), np.float64, left.size)
        columns = _whole_pixels(np.sqrt(wanted * ratio) + 0.5)
        rows = _whole_pixels(np.sqrt(wanted / ratio) + 0.5)
        rounded_ratio = columns / rows
        fits = (columns <= width[left]) & (rows <= height[left])
        fits &= (smallest_ratio <= rounded_ratio) & (rounded_ratio <= largest_ratio)
        chosen = left[fits]
        crop_height[chosen], crop_width[chosen] = rows[fits], columns[fits]
        left = left[~fits]
    if left.size:
        rows, columns = np.minimum(height, tallest)[left], np.minimum(width, widest)[left]
        shrink = np.sqrt(np.minimum(1.0, area[1] * height[left] * width[left] / (rows * columns)))
        crop_height[left] = _whole_pixels(rows * shrink)
        crop_width[left] = _whole_pixels(columns * shrink)
    row = (uniforms[:, -2] * (height - crop_height + 1)).astype(np.int64)
    column = (uniforms[:, -1] * (width - crop_width + 1)).astype(np.int64)
    return np.stack((row, column)), np.stack((crop_height, crop_width))
