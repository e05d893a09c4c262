"""Grey images of many colour images, as OpenCV makes them."""

from __future__ import annotations

import numba
import numpy as np

from headrace.kernels.compilation import njit
from headrace.kernels.cpu.pointers import elements

_RED, _GREEN, _BLUE, _BITS = np.int32(9798), np.int32(19235), np.int32(3735), np.int32(15)
"""Shares of the luma of ITU-R BT.601, and how many bits of them are behind the point."""
_HALF = np.int32(1 << 14)


@njit(nogil=True)
def grey_rows(
    addresses: np.ndarray, sizes: np.ndarray, bgr: bool, out: np.ndarray, begins: np.ndarray
) -> None:
    """Fill `out` with the luma of pixels of three bytes.

    `addresses`, `sizes`: where the pixels of each sample are, and how many. `bgr`: whether blue is
    the first channel. `out`, `begins`: the output, flat, and the element with which each sample
    begins.
    """
    first, last = (_BLUE, _RED) if bgr else (_RED, _BLUE)
    for k in range(len(addresses)):
        source = numba.carray(elements(addresses[k], out), (3 * sizes[k],))
        target = out[begins[k] : begins[k] + sizes[k]]
        for i in range(sizes[k]):
            a, b = np.int32(source[3 * i]), np.int32(source[3 * i + 1])
            c = np.int32(source[3 * i + 2])
            target[i] = np.uint8((first * a + _GREEN * b + last * c + _HALF) >> _BITS)
