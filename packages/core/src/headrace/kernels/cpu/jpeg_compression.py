"""JPEG compression artefacts of images: encoded and decoded by libjpeg-turbo, through OpenCV."""

from __future__ import annotations

import numpy as np

from headrace.errors import ShapeError
from headrace.kernels.cpu.opencv import cv2

LARGEST = 65500
"""Pixels along an axis, of libjpeg-turbo."""


def compress(image: np.ndarray, quality: int, out: np.ndarray) -> None:
    """Fill `out` with the RGB image, ``(height, width, 3)``, as it comes back from a JPEG file.

    Chroma is subsampled 4:2:0. `quality` is from 1 to 100.
    """
    if not image.size:
        return
    if max(image.shape) > LARGEST:
        raise ShapeError(
            f"An image of {image.shape[0]} x {image.shape[1]} pixels does not fit into a JPEG "
            f"file, whose extents are at most {LARGEST}. Resize or crop it first."
        )
    np.copyto(out, decoded(encoded(image, quality, out)))


def encoded(image: np.ndarray, quality: int, scratch: np.ndarray | None = None) -> np.ndarray:
    """The JPEG file of an image of bytes, RGB ``(height, width, 3)`` or gray ``(.., .., 1)``.

    `scratch`: memory as large as the image.
    """
    cv = cv2()
    pixels = np.ascontiguousarray(image)
    if image.shape[2] == 3:
        pixels = cv.cvtColor(pixels, cv.COLOR_RGB2BGR, dst=scratch)
    found: np.ndarray = cv.imencode(".jpg", pixels, [cv.IMWRITE_JPEG_QUALITY, quality])[1]
    return found.reshape(-1)


def decoded(file: np.ndarray, channels: int = 3) -> np.ndarray:
    """The image in a JPEG file, RGB or gray ``(height, width, channels)``."""
    cv = cv2()
    kind = cv.IMREAD_COLOR_RGB if channels == 3 else cv.IMREAD_GRAYSCALE
    found: np.ndarray = cv.imdecode(file, kind)
    return found.reshape(*found.shape[:2], channels)
