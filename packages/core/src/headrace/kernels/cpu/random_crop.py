"""Windows of random crops, compiled.

These functions do not let go of the interpreter: they take less than a microsecond, and getting it
back from a thread that has just taken it far more.
"""

from __future__ import annotations

import math

import numpy as np

from headrace.kernels.compilation import njit
from headrace.kernels.cpu.philox import ELEVEN, HALF, TWO_53, Key, block

_FAR = float(1 << 40)
"""More than any image has; what is beyond does not fit, however far."""


@njit(error_model="numpy")
def crop_window(
    height: int,
    width: int,
    area: tuple[float, float],
    aspect_ratio: tuple[float, float],
    num_attempts: int,
    sample: int,
    key: Key,
    uniforms: np.ndarray | None,
) -> tuple[int, int, int, int]:
    """Row, column, height and width, in pixels, of a random window of an image.

    The window's area, as a fraction of the image's, is uniform in `area`, and the logarithm of
    its aspect ratio (width / height) is uniform in the logarithms of `aspect_ratio`; its place is
    uniform among those where it lies inside the image. Pairs that do not fit are rejected, at most
    `num_attempts` times; then, or where the smallest area cannot be had with an allowed aspect
    ratio, the largest window with an allowed aspect ratio is taken, shrunk to the largest area.

    That is the crop of the Inception papers (Szegedy et al. 2014, section 6), with the rejection
    rules of DALI's random crops.
    """
    rows, columns = _choose(height, width, area, aspect_ratio, num_attempts, sample, key, uniforms)
    first, second = _two_uniforms(max(num_attempts, 0), sample, key, uniforms)
    return int(first * (height - rows + 1)), int(second * (width - columns + 1)), rows, columns


@njit(error_model="numpy")
def _choose(
    height: int,
    width: int,
    area: tuple[float, float],
    aspect_ratio: tuple[float, float],
    num_attempts: int,
    sample: int,
    key: Key,
    uniforms: np.ndarray | None,
) -> tuple[int, int]:
    """Height and width of a window; see `crop_window`."""
    smallest_ratio, largest_ratio = aspect_ratio
    whole = height * width
    widest = _whole_pixels(height * largest_ratio)
    tallest = _whole_pixels(width / smallest_ratio)
    smallest_area = area[0] * whole
    if height * widest < smallest_area:
        return height, widest
    if width * tallest < smallest_area:
        return tallest, width
    area_span = area[1] * whole - smallest_area
    smallest_log = math.log(smallest_ratio)
    log_span = math.log(largest_ratio) - smallest_log
    for attempt in range(num_attempts):
        first, second = _two_uniforms(attempt, sample, key, uniforms)
        wanted = smallest_area + area_span * first
        ratio = math.exp(smallest_log + log_span * second)
        columns = _whole_pixels(math.sqrt(wanted * ratio) + 0.5)
        rows = _whole_pixels(math.sqrt(wanted / ratio) + 0.5)
        if columns <= width and rows <= height:
            # Rounding to pixels moves the ratio; small crops can leave the range by it.
            rounded_ratio = columns / rows
            if smallest_ratio <= rounded_ratio and rounded_ratio <= largest_ratio:
                return rows, columns
    rows, columns = min(height, tallest), min(width, widest)
    shrink = math.sqrt(min(1.0, area[1] * height * width / (rows * columns)))
    return _whole_pixels(rows * shrink), _whole_pixels(columns * shrink)


@njit(error_model="numpy")
def _two_uniforms(
    place: int, sample: int, key: Key, uniforms: np.ndarray | None
) -> tuple[float, float]:
    """Numbers ``2 * place`` and ``2 * place + 1`` of a sample: those of one block."""
    if uniforms is not None:
        return uniforms[2 * place], uniforms[2 * place + 1]
    w0, w1, w2, w3 = block(place, sample, *key)
    first = (np.uint64(w0) << HALF) | np.uint64(w1)
    second = (np.uint64(w2) << HALF) | np.uint64(w3)
    return np.float64(first >> ELEVEN) * TWO_53, np.float64(second >> ELEVEN) * TWO_53


@njit(error_model="numpy")
def _whole_pixels(extent: float) -> int:
    """An extent without its fraction, at least 1."""
    return int(min(max(extent, 1.0), _FAR))
