"""Turn a stored image the way its EXIF orientation asks for."""

from __future__ import annotations

import numpy as np

from headrace.kernels.cpu.decode.exif import mirrored, turned, upright
from headrace.kernels.cpu.opencv import cv2

_MOST_CHANNELS = 4


def rotate_into(out: np.ndarray, stored: np.ndarray, orientation: int) -> None:
    """Store the HWC image `stored` upright in `out`, both contiguous."""
    if stored.shape[2] > _MOST_CHANNELS:
        np.copyto(out, upright(stored, orientation))
        return
    rows, columns = mirrored(orientation)
    if turned(orientation):
        cv2().transpose(stored, dst=out)
        stored = out
    if rows or columns:
        cv2().flip(stored, -1 if rows and columns else 0 if rows else 1, dst=out)
    elif stored is not out:
        np.copyto(out, stored)
