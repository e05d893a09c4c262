"""Rotations in float32, compiled: Rodrigues' formula.

They do not let go of the interpreter: they take less than that would.
"""

from __future__ import annotations

import math

import numpy as np

from headrace.kernels.compilation import njit
from headrace.kernels.cpu.sine import sine_and_cosine

_DEGREE = np.float32(math.pi / 180)
_ONE = np.float32(1)
_TINY, _HUGE = np.float32(1e-15), np.float32(1e15)


@njit(error_model="numpy")
def radians(degrees: float) -> np.float32:
    """`degrees` in radians, as a float32 product."""
    return np.float32(degrees) * _DEGREE


@njit(error_model="numpy")
def rotate_about(direction: np.ndarray, angle: np.float32, turn: np.ndarray) -> bool:
    """Fill `turn`, float32 ``(3, 3)``, with the rotation by `angle` (radians) around
    `direction`.
    """
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
