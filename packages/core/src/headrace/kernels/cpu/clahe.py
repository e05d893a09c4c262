"""Contrast limited adaptive histogram equalization, by OpenCV."""

from __future__ import annotations

import numpy as np

from headrace.kernels.cpu.opencv import cv2


def clahe(
    image: np.ndarray, tiles: tuple[int, int], limit: float, luma_only: bool, out: np.ndarray
) -> None:
    """Fill `out` with the image, uint8 ``(height, width, channels)``, tile by tile equalized."""
    if not image.size:
        return
    cv = cv2()
    equalizer = cv.createCLAHE(limit, tiles)
    image = np.ascontiguousarray(image)
    if luma_only and image.shape[2] == 3:
        lab = cv.cvtColor(image, cv.COLOR_RGB2LAB)
        lab[..., 0] = equalizer.apply(np.ascontiguousarray(lab[..., 0]))
        out[:] = cv.cvtColor(lab, cv.COLOR_LAB2RGB)
        return
    for channel in range(image.shape[2]):
        out[..., channel] = equalizer.apply(np.ascontiguousarray(image[..., channel]))
