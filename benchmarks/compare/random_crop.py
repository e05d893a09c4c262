"""The window of a random resized crop, for a library that has none."""

from __future__ import annotations

import math
import random


def random_crop(width: int, height: int) -> tuple[int, int, int, int]:
    """Left, top, width and height: 8 to 100 % of the area, of an aspect ratio of 3:4 to 4:3."""
    for _ in range(10):
        area = width * height * random.uniform(0.08, 1.0)
        ratio = math.exp(random.uniform(math.log(3 / 4), math.log(4 / 3)))
        w, h = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < w <= width and 0 < h <= height:
            break
    else:
        w = h = min(width, height)
    return random.randint(0, width - w), random.randint(0, height - h), w, h
