"""Geometry of rotations: extents of the canvas, and the matrix that looks points up in the input.

Everything is float32 where DALI's is, in the order of DALI's operations: sizes hinge on single
bits where extents come out whole, and interpolated values follow coordinates closely. Extents,
canvases, angles and directions have a row a sample, or one row for all.
"""

from __future__ import annotations

import math

import numpy as np

from headrace.kernels.cpu.axis_rotation import radians, rotate_about
from headrace.kernels.cpu.sine import sine_and_cosine
from headrace.kernels.plan.compiled import compiled

_HALF = np.float32(0.5)

SLACK = 1e-2
"""Extents may exceed a whole number by this much before they count as the next one."""


@compiled
def canvases_of_images(
    extents: np.ndarray, degrees: np.ndarray, slack: float, canvases: np.ndarray, odd: np.ndarray
) -> bool:
    """Extents that just hold each rotated image.

    `extents`: int64 ``(samples, 2)``: height and width. `degrees`: float64 ``(samples,)``.
    `canvases`: what to fill, int64 ``(samples, 2)``. `odd`: what to fill, int64 ``(samples, 2)``:
    whether the extents of the input are odd that those of the canvas should be like.
    """
    for i in range(len(canvases)):
        extent = extents[i if len(extents) > 1 else 0]
        angle = np.float64(radians(degrees[i if len(degrees) > 1 else 0]))
        if not math.isfinite(angle):
            return False
        cosine, sine = abs(math.cos(angle)), abs(math.sin(angle))
        height, width = extent[0], extent[1]
        straight = sine <= cosine
        canvases[i, 0] = math.ceil(cosine * height + sine * width - slack)
        canvases[i, 1] = math.ceil(cosine * width + sine * height - slack)
        odd[i, 0] = (height if straight else width) % 2
        odd[i, 1] = (width if straight else height) % 2
    return True


@compiled
def canvases_of_volumes(
    extents: np.ndarray,
    degrees: np.ndarray,
    directions: np.ndarray,
    slack: float,
    canvases: np.ndarray,
    odd: np.ndarray,
) -> bool:
    """The same of volumes, ``(D, H, W)``; `directions` are ``(x, y, z)``."""
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
            canvases[i, 2 - k] = math.ceil(reach - np.float32(slack))
            odd[i, 2 - k] = extent[2 - dominant] % 2
    return True


@compiled
def share_canvases(canvases: np.ndarray, odd: np.ndarray, owners: np.ndarray) -> None:
    """Give neighbours of one owner the smallest canvas for all, even or odd as most want it.

    Keeping the parity lets pixels fall on pixels where the rotation is by a multiple of 90 degrees.
    A tie makes the extent even.

    `canvases`, `odd`: int64 ``(samples, rank)``; `canvases` are changed. `owners`: int64
    ``(samples,)``: the sequence of each frame, or the sample itself.
    """
    begin = 0
    while begin < len(canvases):
        end = begin + 1
        while end < len(canvases) and owners[end] == owners[begin]:
            end += 1
        for axis in range(canvases.shape[1]):
            size, wanted = canvases[begin, axis], odd[begin, axis]
            for i in range(begin + 1, end):
                size = max(size, canvases[i, axis])
                wanted += odd[i, axis]
            if size % 2 != (2 * wanted > end - begin):
                size += 1
            for i in range(begin, end):
                canvases[i, axis] = size
        begin = end


@compiled
def image_matrices(
    extents: np.ndarray, canvases: np.ndarray, degrees: np.ndarray, matrices: np.ndarray
) -> bool:
    """From (x, y, 1) on each canvas to its image, counter-clockwise.

    `extents`, `canvases`: int64 ``(samples, 2)``. `degrees`: float64 ``(samples,)``. `matrices`:
    what to fill, float32 ``(samples, 2, 3)``.
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
