"""Colours from what sensors behind colour filters measure, by OpenCV."""

from __future__ import annotations

import numpy as np

from headrace.kernels.cpu.opencv import cv2

_TILES = ("BG", "GB", "GR", "RG")
"""OpenCV's names of the positions (0, 0), (0, 1), (1, 0) and (1, 1) of blue."""
ALGORITHMS = {
    "bilinear_ocv": "2RGB",
    "edgeaware_ocv": "2RGB_EA",
    "vng_ocv": "2RGB_VNG",
    "gray_ocv": "2GRAY",
}
"""OpenCV's names of the conversions."""


def debayer(image: np.ndarray, blue_position: list[int], algorithm: str, out: np.ndarray) -> None:
    """Fill `out`, ``(height, width, channels)``, with colours of the image, ``(height, width)``."""
    if not image.size:
        return
    cv = cv2()
    row, column = blue_position
    code = getattr(cv, f"COLOR_Bayer{_TILES[2 * row + column]}{ALGORITHMS[algorithm]}")
    target = out if out.shape[2] > 1 else out[..., 0]
    found = cv.demosaicing(np.ascontiguousarray(image), code, dst=target)
    if found is not target:
        target[:] = found
