"""JPEG compression artefacts of images: encoded and decoded by libjpeg-turbo, through OpenCV."""

from __future__ import annotations

import numpy as np

from headrace.errors import ShapeError
from headrace.kernels.cpu.opencv import cv2

_LARGEST = 65500
"""Pixels along an axis, of libjpeg-turbo."""


def compress(image: np.ndarray, quality: int, out: np.ndarray) -> None:
    """Fill `out` with the RGB image, ``(height, width, 3)``, as it comes back from a JPEG file.

    Chroma is subsampled 4:2:0. `quality` is from 1 to 100.
    """
    if not image.size:
        return
    if max(image.shape) > _LARGEST:
        raise ShapeError(
            f"An image of {image.shape[0]} x {image.shape[1]} pixels does not fit into a JPEG "
            f"file, whose extents are at most {_LARGEST}. Resize or crop it first."
        )
    cv = cv2()
    bgr = cv.cvtColor(np.ascontiguousarray(image), cv.COLOR_RGB2BGR)
    _, encoded = cv.imencode(".jpg", bgr, [cv.IMWRITE_JPEG_QUALITY, quality])
    np.copyto(out, cv.imdecode(encoded, cv.IMREAD_COLOR_RGB))
