"""Choose the window of a random crop from given random numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence


def uniforms_needed(num_attempts: int) -> int:
    """How many random numbers `choose_crop` may read."""
    return 2 * max(num_attempts, 0) + 2


def choose_crop(
    height: int,
    width: int,
    uniforms: Sequence[float],
    area: tuple[float, float],
    aspect_ratio: tuple[float, float],
    num_attempts: int,
) -> tuple[int, int, int, int]:
    """Row, column, height and width, in pixels, of a random window of an image.

    The window's area, as a fraction of the image's, is uniform in `area`, and the logarithm of
    its aspect ratio (width / height) is uniform in the logarithms of `aspect_ratio`; its place is
    uniform among those where it lies inside the image. Pairs that do not fit are rejected, at most
    `num_attempts` times; then, or where the smallest area cannot be had with an allowed aspect
    ratio, the largest window with an allowed aspect ratio is taken, shrunk to the largest area.

    That is the crop of the Inception papers (Szegedy et al. 2014, section 6), with the rejection
    rules of DALI's random crops.

    Parameters
    ----------
    height, width
        Extents of the image, positive.
    uniforms
        Independent numbers in [0, 1), `uniforms_needed(num_attempts)` of them. Plain floats; a
        list is twice as fast as an array.
    area
        Smallest and largest fraction of the image's area.
    aspect_ratio
        Smallest and largest width / height, positive.
    num_attempts
        How often an area and an aspect ratio are drawn.
    """
    smallest_ratio, largest_ratio = aspect_ratio
    whole = height * width
    widest = max(1, int(height * largest_ratio))
    tallest = max(1, int(width / smallest_ratio))
    if height * widest < area[0] * whole:
        crop_height, crop_width = height, widest
    elif width * tallest < area[0] * whole:
        crop_height, crop_width = tallest, width
    else:
        smallest_area = area[0] * whole
        area_span = area[1] * whole - smallest_area
        smallest_log = math.log(smallest_ratio)
        log_span = math.log(largest_ratio) - smallest_log
        for attempt in range(num_attempts):
            wanted = smallest_area + area_span * uniforms[2 * attempt]
            ratio = math.exp(smallest_log + log_span * uniforms[2 * attempt + 1])
            crop_width = max(1, int(math.sqrt(wanted * ratio) + 0.5))
            crop_height = max(1, int(math.sqrt(wanted / ratio) + 0.5))
            if (
                crop_width <= width
                and crop_height <= height
                # Rounding to pixels moves the ratio; small crops can leave the range by it.
                and smallest_ratio <= crop_width / crop_height <= largest_ratio
            ):
                break
        else:
            crop_height, crop_width = _largest(height, width, area[1], widest, tallest)
    row = int(uniforms[-2] * (height - crop_height + 1))
    column = int(uniforms[-1] * (width - crop_width + 1))
    return row, column, crop_height, crop_width


def _largest(
    height: int, width: int, largest_area: float, widest: int, tallest: int
) -> tuple[int, int]:
    """Extents of the largest window whose aspect ratio and area are allowed."""
    crop_height, crop_width = min(height, tallest), min(width, widest)
    shrink = math.sqrt(min(1.0, largest_area * height * width / (crop_height * crop_width)))
    return max(1, int(crop_height * shrink)), max(1, int(crop_width * shrink))
