"""Affine maps as matrices ``(n, n + 1)``: made, placed about a centre, put one after the other.

Everything is float32, and sums run from the first term to the last, as DALI's do. Stacks of
matrices have a frame a row; where a stack has one row, that serves all frames. The loops do not let
go of the interpreter: they take less than that would.
"""

from __future__ import annotations

import math

import numpy as np

from headrace.kernels.compilation import njit
from headrace.kernels.cpu.axis_rotation import radians, rotate_about
from headrace.kernels.cpu.sine import sine_and_cosine


@njit(error_model="numpy")
def multiply(first: np.ndarray, second: np.ndarray, out: np.ndarray) -> None:
    """The map that does what `second` does, and then what `first` does: ``(n, n + 1)`` each."""
    n = first.shape[0]
    for i in range(n):
        for j in range(n + 1):
            total = first[i, 0] * second[0, j]
            for k in range(1, n):
                total += first[i, k] * second[k, j]
            if j == n:
                total += first[i, n]
            out[i, j] = total


@njit(error_model="numpy")
def placed(
    linear: np.ndarray,
    offset: np.ndarray,
    center: np.ndarray,
    given: np.ndarray,
    reverse: bool,
    out: np.ndarray,
) -> None:
    """Fill `out` with maps about a centre, put after other maps.

    `linear`: float32 ``(frames, n, n)``. `offset`: float32 ``(frames, n)``: what is added after.
    `center`: float32 ``(frames, n)``: the point that stays where it is, or no frames for the
    origin. `given`: float32 ``(frames, n, n + 1)``: the maps that come first, or no frames for
    none.
    """
    n = out.shape[1]
    own = np.empty((n, n + 1), np.float32)
    for f in range(len(out)):
        m = linear[f if len(linear) > 1 else 0]
        for i in range(n):
            for j in range(n):
                own[i, j] = m[i, j]
            total = offset[f if len(offset) > 1 else 0, i]
            if len(center):
                middle = center[f if len(center) > 1 else 0]
                moved = m[i, 0] * -middle[0]
                for k in range(1, n):
                    moved += m[i, k] * -middle[k]
                total += moved + middle[i]
            own[i, n] = total
        if not len(given):
            out[f] = own
            continue
        other = given[f if len(given) > 1 else 0]
        if reverse:
            multiply(other, own, out[f])
        else:
            multiply(own, other, out[f])


@njit(error_model="numpy")
def turns(degrees: np.ndarray, linear: np.ndarray) -> None:
    """Fill ``(frames, 2, 2)`` with rotations by angles ``(frames,)``, from x towards y."""
    for f in range(len(linear)):
        sine, cosine = sine_and_cosine(radians(degrees[f]))
        linear[f, 0, 0] = linear[f, 1, 1] = cosine
        linear[f, 0, 1], linear[f, 1, 0] = -sine, sine


@njit(error_model="numpy")
def turns_about(degrees: np.ndarray, directions: np.ndarray, linear: np.ndarray) -> bool:
    """Fill ``(frames, 3, 3)`` with rotations around `directions`, ``(frames, 3)``.

    Angles and directions may be one for all frames. The result tells whether all are valid.
    """
    for f in range(len(linear)):
        angle = radians(degrees[f if len(degrees) > 1 else 0])
        if not rotate_about(directions[f if len(directions) > 1 else 0], angle, linear[f]):
            return False
    return True


@njit(error_model="numpy")
def tangents(degrees: np.ndarray, out: np.ndarray) -> None:
    """Tangents of angles, the nearest float32 to each; both are flat."""
    for k in range(len(out)):
        out[k] = np.float32(math.tan(np.float64(radians(degrees[k]))))


@njit(error_model="numpy")
def inverted(matrix: np.ndarray, out: np.ndarray) -> bool:
    """Fill `out` with the map that undoes `matrix`; both ``(n, n + 1)`` with n of 2 or 3.

    Planes by the determinant; space by Gauss and Jordan's elimination, with the largest pivot of
    each column. The result tells whether there is such a map.
    """
    n = matrix.shape[0]
    one = np.float32(1)
    if n == 2:
        a, b, c, d = matrix[0, 0], matrix[0, 1], matrix[1, 0], matrix[1, 1]
        determinant = a * d - b * c
        if determinant == 0:
            return False
        out[0, 0], out[0, 1] = d / determinant, -b / determinant
        out[1, 0], out[1, 1] = -c / determinant, a / determinant
    else:
        left = matrix[:, :n].copy()
        for i in range(n):
            for j in range(n):
                out[i, j] = one if i == j else np.float32(0)
        for k in range(n):
            pivot = k
            for i in range(k + 1, n):
                if abs(left[i, k]) > abs(left[pivot, k]):
                    pivot = i
            if left[pivot, k] == 0:
                return False
            if pivot != k:
                for j in range(n):
                    left[k, j], left[pivot, j] = left[pivot, j], left[k, j]
                    out[k, j], out[pivot, j] = out[pivot, j], out[k, j]
            factor = one / left[k, k]
            for j in range(n):
                left[k, j] *= factor
                out[k, j] *= factor
            for i in range(n):
                if i != k:
                    factor = left[i, k]
                    for j in range(n):
                        left[i, j] -= factor * left[k, j]
                        out[i, j] -= factor * out[k, j]
    for i in range(n):
        total = out[i, 0] * matrix[0, n]
        for k in range(1, n):
            total += out[i, k] * matrix[k, n]
        out[i, n] = -total
    return True


@njit(error_model="numpy")
def inverted_each(matrices: np.ndarray, out: np.ndarray) -> int:
    """`inverted` of all matrices ``(samples, n, n + 1)``; the first without inverse, or -1."""
    for i in range(len(matrices)):
        if not inverted(matrices[i], out[i]):
            return i
    return -1
