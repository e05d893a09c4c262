"""Geometry of rotations for whole batches, worked out on the host.

The numbers are those of `penstock.operators.image.rotation`, to the last bit. Extents, canvases and
directions have a row a sample, or one row for all; so have angles.
"""

from __future__ import annotations

import math

import numpy as np

from penstock.kernels.cpu.turns import radians, rotate_about, sine_and_cosine
from penstock.kernels.plan.compiled import compiled

_HALF = np.float32(0.5)


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
        angle = np.float64(radians(degrees[i if len(degrees) > 1 else 0]))
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
        angle = radians(degrees[i if len(degrees) > 1 else 0])
        if not rotate_about(directions[i if len(directions) > 1 else 0], angle, turn):
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
        angle = radians(degrees[i if len(degrees) > 1 else 0])
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
        angle = -radians(degrees[i if len(degrees) > 1 else 0])
        if not rotate_about(directions[i if len(directions) > 1 else 0], angle, turn):
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
