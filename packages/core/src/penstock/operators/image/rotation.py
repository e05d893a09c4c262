"""Geometry of rotations: size of the canvas, and the matrix that looks points up in the input.

Everything is float32 where DALI's is, in the order of DALI's operations: sizes hinge on single
bits where extents come out whole, and interpolated values follow coordinates closely.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from penstock.kernels.cpu.sine import sine_and_cosine

SLACK = 1e-2
"""Extents may exceed a whole number by this much before they count as the next one."""

Canvas = tuple[tuple[int, ...], tuple[int, ...]]
"""Extents that just hold the rotated input, outermost axis first, and the input extents whose
parity they should take on."""


def radians(degrees: float) -> np.float32:
    """`degrees` in radians, as a float32 product."""
    return np.float32(np.float32(degrees) * np.float32(math.pi / 180))


def canvas_of_image(extent: Sequence[int], degrees: float) -> Canvas:
    """Canvas of an image of `extent` ``(H, W)``."""
    height, width = extent
    angle = float(radians(degrees))
    cosine, sine = abs(math.cos(angle)), abs(math.sin(angle))
    tight = (
        math.ceil(cosine * height + sine * width - SLACK),
        math.ceil(cosine * width + sine * height - SLACK),
    )
    return tight, (height, width) if sine <= cosine else (width, height)


def canvas_of_volume(extent: Sequence[int], degrees: float, axis: Sequence[float]) -> Canvas:
    """Canvas of a volume of `extent` ``(D, H, W)`` rotated around `axis` ``(x, y, z)``."""
    turn = np.abs(_rotation(axis, radians(degrees)))
    size = np.array(extent[::-1], np.float32)
    tight, parity = [], []
    for i, row in enumerate(turn):
        reach = np.float32(row[0] * size[0] + row[1] * size[1]) + row[2] * size[2]
        tight.append(math.ceil(np.float32(reach - np.float32(SLACK))))
        # The input axis that weighs most; of equals, the axis itself, then the first.
        dominant = i
        for j in range(3):
            if row[j] > row[dominant]:
                dominant = j
        parity.append(extent[2 - dominant])
    return tuple(tight[::-1]), tuple(parity[::-1])


def common_canvas(canvases: Sequence[Canvas]) -> tuple[int, ...]:
    """Smallest extents for all `canvases`, each even or odd as most of them want it.

    Keeping the parity lets pixels fall on pixels where the rotation is by a multiple of 90
    degrees. A tie makes the extent even.
    """
    extents = []
    for axis in range(len(canvases[0][0])):
        size = max(tight[axis] for tight, _ in canvases)
        odd = 2 * sum(parity[axis] % 2 for _, parity in canvases) > len(canvases)
        extents.append(size + (size % 2 != odd))
    return tuple(extents)


def image_matrix(extent: Sequence[int], canvas: Sequence[int], degrees: float) -> np.ndarray:
    """float32 ``(2, 3)``: from (x, y, 1) on the canvas to the input, counter-clockwise.

    Both centres coincide.
    """
    sine, cosine = sine_and_cosine(radians(degrees))
    turn = np.array(((cosine, -sine), (sine, cosine)), np.float32)
    return _centred(turn, extent, canvas)


def volume_matrix(
    extent: Sequence[int], canvas: Sequence[int], degrees: float, axis: Sequence[float]
) -> np.ndarray:
    """float32 ``(3, 4)``: from (x, y, z, 1) on the canvas to the input; both centres coincide."""
    return _centred(_rotation(axis, -radians(degrees)), extent, canvas)


def _centred(turn: np.ndarray, extent: Sequence[int], canvas: Sequence[int]) -> np.ndarray:
    rank = len(extent)
    half = np.float32(0.5)
    matrix = np.empty((rank, rank + 1), np.float32)
    matrix[:, :rank] = turn
    for i in range(rank):
        offset = np.float32(0)
        for j in range(rank):
            offset += turn[i, j] * -(np.float32(canvas[rank - 1 - j]) * half)
        matrix[i, rank] = offset + np.float32(extent[rank - 1 - i]) * half
    return matrix


def _rotation(axis: Sequence[float], angle: np.float32) -> np.ndarray:
    """Rodrigues' rotation by `angle` around `axis`, in float32."""
    x, y, z = (np.float32(v) for v in axis)
    # Scaled first: squares of tiny or huge numbers would leave the range of float32.
    largest = max(abs(x), abs(y), abs(z))
    if not 1e-15 < largest < 1e15:
        x, y, z = x / largest, y / largest, z / largest
    length = np.sqrt(x * x + y * y + z * z)
    u, v, w = x / length, y / length, z / length
    sine, cosine = sine_and_cosine(angle)
    rest = np.float32(1) - cosine
    return np.array(
        (
            (u * u + (v * v + w * w) * cosine, u * v * rest - w * sine, u * w * rest + v * sine),
            (u * v * rest + w * sine, v * v + (u * u + w * w) * cosine, v * w * rest - u * sine),
            (u * w * rest - v * sine, v * w * rest + u * sine, w * w + (u * u + v * v) * cosine),
        ),
        np.float32,
    )
