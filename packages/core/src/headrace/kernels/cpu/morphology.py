"""Largest and smallest values in windows, by OpenCV."""

from __future__ import annotations

import numpy as np

from headrace.kernels.cpu.opencv import cv2
from headrace.kernels.cpu.planes import planes_of


def slide(
    image: np.ndarray,
    out: np.ndarray,
    window: tuple[int, int],
    before: tuple[int, int],
    *,
    largest: bool,
    border: str,
    planar: bool,
) -> None:
    """Fill `out` with the largest or smallest value in the window around each pixel.

    `window` is its height and width, `before` the rows and columns of it before the pixel.
    """
    cv = cv2()
    ones = np.ones(window, np.uint8)
    after = [size - 1 - first for size, first in zip(window, before, strict=True)]
    work = cv.dilate if largest else cv.erode
    for part, target in planes_of(image, out, planar=planar):
        height, width = part.shape[:2]
        top = left = 0
        if border != "constant":
            top, left = before
            kind = getattr(cv, f"BORDER_{border.upper()}")
            part = cv.copyMakeBorder(part, top, after[0], left, after[1], kind)
        made = work(part, ones, anchor=(before[1], before[0]))
        made = made[top : top + height, left : left + width]
        np.copyto(target, made.reshape(target.shape))
