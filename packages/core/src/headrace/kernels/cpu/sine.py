"""Sine and cosine as C's float32 functions give them, the same on every platform.

Warps follow the last bit of their matrix. Where C's result is not the nearest float32, which is so
for one angle in fifty, ours must not be either to give the pixels that DALI gives.
"""

from __future__ import annotations

import math

import numpy as np

from headrace.kernels.compilation import njit

# Minimax polynomials in float64 for [-pi/4, pi/4]: those of Arm's Optimized Routines
# (math/sincosf.h, MIT), which glibc and others have, too.
_SINE = tuple(
    map(
        float.fromhex,
        ("-0x1.555545995a603p-3", "0x1.1107605230bc4p-7", "-0x1.994eb3774cf24p-13"),
    )
)
_COSINE = tuple(
    map(
        float.fromhex,
        (
            "-0x1.ffffffd0c621cp-2",
            "0x1.55553e1068f19p-5",
            "-0x1.6c087e89a359dp-10",
            "0x1.99343027bf8c3p-16",
        ),
    )
)
_LARGEST_REDUCED = 120.0


@njit(error_model="numpy")
def sine_and_cosine(angle: np.float32) -> tuple[np.float32, np.float32]:
    """Sine and cosine of an angle in radians, float32."""
    x = np.float64(angle)
    if abs(x) >= _LARGEST_REDUCED:
        return np.float32(math.sin(x)), np.float32(math.cos(x))
    quarter = 0
    if abs(x) >= math.pi / 4:
        quarter = math.floor(x * (2 / math.pi) + 0.5)
    x -= quarter * (math.pi / 2)
    square = x * x
    s1, s2, s3 = _SINE
    cube = x * square
    sine = (x + cube * s1) + cube * square * (s2 + square * s3)
    c1, c2, c3, c4 = _COSINE
    fourth = square * square
    cosine = ((1.0 + square * c1) + fourth * c2) + fourth * square * (c3 + square * c4)
    for _ in range(quarter % 4):
        sine, cosine = cosine, -sine
    return np.float32(sine), np.float32(cosine)
