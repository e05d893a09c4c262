"""Compiled loops of functions of single elements."""

from __future__ import annotations

import numpy as np

from penstock.kernels.compilation import njit
from penstock.kernels.cpu.saturate import saturate


@njit(nogil=True)
def scale_and_shift(
    source: np.ndarray, rows: int, width: int, stride: int, out: np.ndarray, numbers: np.ndarray
) -> None:
    """Fill `out` with one linear function of `source`.

    Parameters
    ----------
    source
        Flat; ``rows`` times ``width`` elements, rows ``stride`` apart.
    out
        Flat, without gaps.
    numbers
        float32: brightness, shift, contrast and centre of `pointwise.brightness_contrast`.
    """
    brightness, shift, contrast, center = numbers[0], numbers[1], numbers[2], numbers[3]
    # One product and one sum for each element, as DALI does it: rounding follows.
    scale = brightness * contrast
    offset = shift + brightness * (center - contrast * center)
    for row in range(rows):
        taken = source[row * stride : row * stride + width]
        given = out[row * width : (row + 1) * width]
        for i in range(width):
            given[i] = saturate(np.float32(taken[i]) * scale + offset, out)
