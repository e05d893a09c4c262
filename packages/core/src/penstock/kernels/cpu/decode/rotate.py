"""Turn a stored image the way its EXIF orientation asks for."""

from __future__ import annotations

import numpy as np

from penstock.kernels.cpu.decode.exif import upright
from penstock.kernels.cpu.opencv import cv2

_MOST_CHANNELS = 4


def rotate_into(out: np.ndarray, stored: np.ndarray, orientation: int) -> None:
    """Store the HWC image `stored` upright in `out`, both contiguous."""
    if stored.shape[2] > _MOST_CHANNELS:
        np.copyto(out, upright(stored, orientation))
        return
    cv = cv2()
    if orientation == 2:
        cv.flip(stored, 1, dst=out)
    elif orientation == 3:
        cv.rotate(stored, cv.ROTATE_180, dst=out)
    elif orientation == 4:
        cv.flip(stored, 0, dst=out)
    elif orientation == 5:
        cv.transpose(stored, dst=out)
    elif orientation == 6:
        cv.rotate(stored, cv.ROTATE_90_CLOCKWISE, dst=out)
    elif orientation == 7:
        cv.rotate(cv.transpose(stored), cv.ROTATE_180, dst=out)
    elif orientation == 8:
        cv.rotate(stored, cv.ROTATE_90_COUNTERCLOCKWISE, dst=out)
    else:
        np.copyto(out, stored)
