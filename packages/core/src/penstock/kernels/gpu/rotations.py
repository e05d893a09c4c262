"""Geometry of rotations for whole batches, worked out on the host.

The numbers are those of `penstock.operators.image.rotation`, to the last bit. Extents, canvases and
directions have a row a sample, or one row for all; so have angles.
"""

from __future__ import annotations

import math

import numpy as np

from penstock.kernels.cpu.sine import COSINE, LARGEST_REDUCED, SINE
from penstock.kernels.gpu.compiled import compiled

_DEGREE = np.float32(math.pi / 180)
_HALF, _ONE = np.float32(0.5), np.float32(1)
_TINY, _HUGE = np.float32(1e-15), np.float32(1e15)


@compiled
def _radians(degrees: float) -> np.float32:
    return np.float32(degrees) * _DEGREE


@compiled
def sine_and_cosine(radians: np.float32) -> tuple[np.float32, np.float32]:
    """Those of `penstock.kernels.cpu.sine`."""
    x = np.float64(radians)
    if abs(x) >= LARGEST_REDUCED:
        return np.float32(math.sin(x)), np.float32(math.cos(x))
    quarter = 0
    if abs(x) >= math.pi / 4:
        quarter = math.floor(x * (2 / math.pi) + 0.5)
    x -= quarter * (math.pi / 2)
    square = x * x
    s1, s2, s3 = SINE
    cube = x * square
    sine = (x + cube * s1) + cube * square * (s2 + square * s3)
    c1, c2, c3, c4 = COSINE
    fourth = square * square
    cosine = ((1.0 + square * c1) + fourth * c2) + fourth * square * (c3 + square * c4)
    for _ in range(quarter % 4):
        sine, cosine = cosine, -sine
    return np.float32(sine), np.float32(cosine)


@compiled
def canvases_of_images(
    extents: np.ndarray, degrees: np.ndarray, slack: float, canvases: np.ndarray
) -> bool:
    """The canvas of each image by itself.

    Parameters
    ----------
    extents
        int64 ``(samples, 2)``: height and width.
    degrees
        float64 ``(samples,)``.
    slack
        By how much an extent may exceed a whole number.
    canvases
        What to fill, int64 ``(samples, 2)``.

    Returns
    -------
    bool
        Whether all angles are finite.
    """
    for i in range(len(canvases)):
        extent = extents[i if len(extents) > 1 else 0]
        angle = np.float64(_radians(degrees[i if len(degrees) > 1 else 0]))
        if not math.isfinite(angle):
            return False
        cosine, sine = abs(math.cos(angle)), abs(math.sin(angle))
        height, width = extent[0], extent[1]
        straight = sine <= cosine
        _fit(canvases[i], 0, cosine * height + sine * width - slack, height if straight else width)
        _fit(canvases[i], 1, cosine * width + sine * height - slack, width if straight else height)
    return True


@compiled
def canvases_of_volumes(
    extents: np.ndarray,
    degrees: np.ndarray,
    directions: np.ndarray,
    slack: float,
    canvases: np.ndarray,
) -> bool:
    """The canvas of each volume, ``(D, H, W)``, by itself; `directions` are ``(x, y, z)``."""
    turn = np.empty((3, 3), np.float32)
    for i in range(len(canvases)):
        extent = extents[i if len(extents) > 1 else 0]
        angle = _radians(degrees[i if len(degrees) > 1 else 0])
        if not _rotate(directions[i if len(directions) > 1 else 0], angle, turn):
            return False
        for k in range(3):
            for j in range(3):
                turn[k, j] = abs(turn[k, j])
            reach = turn[k, 0] * np.float32(extent[2]) + turn[k, 1] * np.float32(extent[1])
            reach = reach + turn[k, 2] * np.float32(extent[0])
            # The input axis that weighs most; of equals, the axis itself, then the first.
            dominant = k
            for j in range(3):
                if turn[k, j] > turn[k, dominant]:
                    dominant = j
            _fit(canvases[i], 2 - k, reach - np.float32(slack), extent[2 - dominant])
    return True


@compiled
def _fit(canvas: np.ndarray, axis: int, reach: float, like: int) -> None:
    """The first whole number from `reach` on that is even or odd like another."""
    size = math.ceil(reach)
    if size % 2 != like % 2:
        size += 1
    canvas[axis] = size


@compiled
def image_matrices(
    extents: np.ndarray, canvases: np.ndarray, degrees: np.ndarray, matrices: np.ndarray
) -> bool:
    """From (x, y, 1) on each canvas to its image, counter-clockwise.

    Parameters
    ----------
    extents, canvases
        int64 ``(samples, 2)``.
    degrees
        float64 ``(samples,)``.
    matrices
        What to fill, float32 ``(samples, 2, 3)``.

    Returns
    -------
    bool
        Whether all angles are finite.
    """
    turn = np.empty((2, 2), np.float32)
    for i in range(len(matrices)):
        angle = _radians(degrees[i if len(degrees) > 1 else 0])
        if not math.isfinite(angle):
            return False
        sine, cosine = sine_and_cosine(angle)
        turn[0, 0] = turn[1, 1] = cosine
        turn[0, 1], turn[1, 0] = -sine, sine
        canvas = canvases[i if len(canvases) > 1 else 0]
        _centre(turn, extents[i if len(extents) > 1 else 0], canvas, matrices[i])
    return True


@compiled
def volume_matrices(
    extents: np.ndarray,
    canvases: np.ndarray,
    degrees: np.ndarray,
    directions: np.ndarray,
    matrices: np.ndarray,
) -> bool:
    """From (x, y, z, 1) on each canvas to its volume: float32 ``(samples, 3, 4)``."""
    turn = np.empty((3, 3), np.float32)
    for i in range(len(matrices)):
        angle = -_radians(degrees[i if len(degrees) > 1 else 0])
        if not _rotate(directions[i if len(directions) > 1 else 0], angle, turn):
            return False
        canvas = canvases[i if len(canvases) > 1 else 0]
        _centre(turn, extents[i if len(extents) > 1 else 0], canvas, matrices[i])
    return True


@compiled
def _centre(turn: np.ndarray, extent: np.ndarray, canvas: np.ndarray, matrix: np.ndarray) -> None:
    """Turn about centres that coincide."""
    rank = len(turn)
    for i in range(rank):
        offset = np.float32(0)
        for j in range(rank):
            matrix[i, j] = turn[i, j]
            offset += turn[i, j] * -(np.float32(canvas[rank - 1 - j]) * _HALF)
        matrix[i, rank] = offset + np.float32(extent[rank - 1 - i]) * _HALF


@compiled
def _rotate(direction: np.ndarray, angle: np.float32, turn: np.ndarray) -> bool:
    """Rodrigues' rotation by `angle` around `direction`; false where there is none."""
    x, y, z = np.float32(direction[0]), np.float32(direction[1]), np.float32(direction[2])
    # Scaled first: squares of tiny or huge numbers would leave the range of float32.
    largest = max(abs(x), abs(y), abs(z))
    if not (math.isfinite(angle) and math.isfinite(x + y + z) and largest > 0):
        return False
    if not (largest > _TINY and largest < _HUGE):
        x, y, z = x / largest, y / largest, z / largest
    length = np.sqrt(x * x + y * y + z * z)
    u, v, w = x / length, y / length, z / length
    sine, cosine = sine_and_cosine(angle)
    rest = _ONE - cosine
    turn[0, 0] = u * u + (v * v + w * w) * cosine
    turn[0, 1] = u * v * rest - w * sine
    turn[0, 2] = u * w * rest + v * sine
    turn[1, 0] = u * v * rest + w * sine
    turn[1, 1] = v * v + (u * u + w * w) * cosine
    turn[1, 2] = v * w * rest - u * sine
    turn[2, 0] = u * w * rest - v * sine
    turn[2, 1] = v * w * rest + u * sine
    turn[2, 2] = w * w + (u * u + v * v) * cosine
    return True
