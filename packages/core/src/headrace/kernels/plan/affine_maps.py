"""Maps of points, for several samples."""

from __future__ import annotations

import numpy as np

from headrace.kernels.plan.compiled import compiled

POINTS, RAGGED, MATRIX, NUMBERS, ROWS, OFFSET = -1, -2, -3, -4, -5, -6
"""Faults that `affine_maps` may find."""


@compiled
def affine_maps(
    shapes: np.ndarray,
    factors: np.ndarray,
    columns: int,
    joint: bool,
    offsets: np.ndarray,
    maps: np.ndarray,
) -> int:
    """Make maps, and the shapes of points those of the mapped ones.

    `shapes`: of the points, int64 ``(samples, ndim)``: the last axis has coordinates, as many in
    all samples. `factors`: float32 ``(samples, numbers)``: matrices row by row, or a number that
    multiplies all coordinates; no numbers for the identity. `offsets`: float32 ``(samples,
    numbers)``: what is added, a number for each coordinate of the output, or one for all; no
    numbers for nothing. `maps`: what to fill, float32 ``(samples, most, most + 1)``: rows, and
    columns with what is added after them.
    """
    most, n = maps.shape[1], shapes[0, -1]
    for i in range(len(shapes)):
        if shapes[i, -1] != n:
            return RAGGED
    if not 1 <= n <= most:
        return POINTS
    rows, width, numbers, added = n, n + joint, factors.shape[1], offsets.shape[1]
    if columns > 0 and columns != width:
        return MATRIX
    if columns >= 0:
        if not numbers or numbers % width:
            return NUMBERS
        rows = numbers // width
    if rows > most:
        return ROWS
    if added > 1 and added != rows:
        return OFFSET
    for i in range(len(maps)):
        for r in range(most):
            for k in range(most + 1):
                maps[i, r, k] = 0
        if columns < 0:
            for r in range(n):
                maps[i, r, r] = 1
            if numbers:
                for r in range(n):
                    for k in range(n):
                        maps[i, r, k] *= factors[i, 0]
        else:
            for k in range(numbers):
                maps[i, k // width, k % width] = factors[i, k]
        if added:
            for r in range(rows):
                maps[i, r, n] = offsets[i, r if added > 1 else 0]
        shapes[i, -1] = rows
    return rows
