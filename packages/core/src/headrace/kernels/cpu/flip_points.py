"""Points and boxes that are mirrored."""

from __future__ import annotations

import numba
import numpy as np

from headrace.kernels.compilation import njit
from headrace.kernels.cpu.pointers import elements

FEW = 1 << 14
"""Numbers that take less time than it takes to get the interpreter back from another thread."""


def flip_points(
    addresses: np.ndarray,
    points: np.ndarray,
    axes: np.ndarray,
    factors: np.ndarray,
    offsets: np.ndarray,
    out: np.ndarray,
    begins: np.ndarray,
) -> None:
    """Fill `out` with points whose coordinates are multiplied by `factors`, then moved.

    `addresses`, `points`, `axes`: ``(samples,)``: where the points of a sample are, float32, how
    many, and how many coordinates each has. `factors`, `offsets`: float32 ``(samples, 3)``. `out`,
    `begins`: the output, flat, and the element with which each sample begins.
    """
    flip = _flip_few if out.size <= FEW else _flip
    flip(addresses, points, axes, factors, offsets, out, begins)


@njit(nogil=True)
def _flip(
    addresses: np.ndarray,
    points: np.ndarray,
    axes: np.ndarray,
    factors: np.ndarray,
    offsets: np.ndarray,
    out: np.ndarray,
    begins: np.ndarray,
) -> None:
    for k in range(len(addresses)):
        source = numba.carray(elements(addresses[k], out), points[k] * axes[k])
        for i in range(len(source)):
            axis = i % axes[k]
            out[begins[k] + i] = source[i] * factors[k, axis] + offsets[k, axis]


_flip_few = njit()(_flip.py_func)


@njit()  # keeps the interpreter: boxes are few
def flip_boxes(
    addresses: np.ndarray,
    counts: np.ndarray,
    flips: np.ndarray,
    corners: bool,
    out: np.ndarray,
    begins: np.ndarray,
) -> None:
    """Fill `out` with mirrored boxes; those with extents are computed by their corners, as in
    DALI.

    `flips`: bool ``(samples, 2)``: along x, along y.
    """
    one = np.float32(1)
    for k in range(len(addresses)):
        source = numba.carray(elements(addresses[k], out), counts[k] * 4)
        for box in range(0, counts[k] * 4, 4):
            for axis in range(2):
                low, high = source[box + axis], source[box + 2 + axis]
                if not corners:
                    high += low
                if flips[k, axis]:
                    low, high = one - high, one - low
                first = begins[k] + box + axis
                out[first] = low
                out[first + 2] = high if corners else high - low
