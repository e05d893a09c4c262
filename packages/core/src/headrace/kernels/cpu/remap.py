"""Images looked up where maps say, by OpenCV."""

from __future__ import annotations

import numpy as np

from headrace.kernels.cpu.opencv import cv2
from headrace.kernels.cpu.planes import planes_of


def remap(
    image: np.ndarray,
    x: np.ndarray,
    y: np.ndarray,
    interpolation: str,
    shift: float,
    out: np.ndarray,
) -> None:
    """Fill `out` with `image` at columns `x` and rows `y`, to which `shift` is added.

    `x` and `y` are float32 with a place for each pixel of `out`; what is outside is 0.
    """
    cv = cv2()
    kind = {"nearest": cv.INTER_NEAREST, "linear": cv.INTER_LINEAR, "cubic": cv.INTER_CUBIC}
    places = [np.ascontiguousarray(k.reshape(out.shape[:2]) + np.float32(shift)) for k in (x, y)]
    for part, target in planes_of(image, out, planar=False):
        made = cv.remap(part, *places, kind[interpolation], borderMode=cv.BORDER_CONSTANT)
        np.copyto(target, made.reshape(target.shape))
