"""Matrices that turn, stretch and brighten colours.

Hue and saturation are polar coordinates of a colour's chrominance. In YIQ, the colour space of NTSC
television, chrominance is the plane of I and Q, so a change of hue is a rotation of that plane and
one of saturation a scaling. The way there and back is linear, too, and all of it is one matrix.

The numbers of `TO_YIQ` are those that NTSC gave for it (luma of ITU-R BT.601, chrominance rounded
to three digits). Those of `FROM_YIQ` are its inverse as float32 arithmetic finds it, which is not
the nearest everywhere: DALI's results have these. The order of the products is DALI's, too, since
ties between two bytes hang on the last bit.
"""

from __future__ import annotations

import math

import numpy as np

from headrace.kernels.plan.compiled import compiled

TO_YIQ = np.array(
    [[0.299, 0.587, 0.114], [0.596, -0.274, -0.321], [0.211, -0.523, 0.311]], np.float32
)
FROM_YIQ = np.array(
    [
        [0.99966437, 0.95654118, 0.62086171],
        [0.99962485, -0.27227446, -0.64745128],
        [1.0028123, -1.106848, 1.7054056],
    ],
    np.float32,
)


@compiled
def _product(a: np.ndarray, b: np.ndarray, out: np.ndarray) -> None:
    for i in range(3):
        for j in range(3):
            total = a[i, 0] * b[0, j] + a[i, 1] * b[1, j]
            out[i, j] = total + a[i, 2] * b[2, j]


@compiled
def color_matrices(
    shapes: np.ndarray,
    adjustments: np.ndarray,
    center: float,
    from_yiq: np.ndarray,
    to_yiq: np.ndarray,
    out: np.ndarray,
) -> int:
    """Find the matrix, and what is added after it, for each sample.

    `shapes`: of the samples, int64 ``(samples, ndim)``. `adjustments`: float32 ``(samples, 5)``:
    the angle of the hue in degrees, factors of chrominance (saturation), of all of the colour
    (value), of the result (brightness), and of
    its distance from `center` (contrast). `out`: float32 ``(samples, 15)``, to be filled: three
    rows of the matrix, three offsets, and three zeros; see
    `headrace.kernels.cpu.color.transform_pixels`.
    """
    middle = np.float32(center)
    left, turn, scale = np.empty_like(to_yiq), np.zeros_like(to_yiq), np.zeros_like(to_yiq)
    other = np.empty_like(to_yiq)
    for i in range(len(out)):
        if shapes[i, -1] != 3:
            return i
        degrees, stretch, factor = adjustments[i, 0], adjustments[i, 1], adjustments[i, 2]
        light, spread = adjustments[i, 3], adjustments[i, 4]
        angle = np.float32(np.float64(degrees) * math.pi / 180)
        cosine, sine = np.float32(math.cos(angle)), np.float32(math.sin(angle))
        turn[0, 0] = 1
        turn[1, 1] = turn[2, 2] = cosine
        turn[1, 2], turn[2, 1] = sine, -sine
        both = light * spread
        for k in range(9):
            left[k // 3, k % 3] = both * from_yiq[k // 3, k % 3]
        _product(left, turn, other)
        scale[0, 0] = 1
        scale[1, 1] = scale[2, 2] = stretch
        _product(other, scale, left)
        for k in range(9):
            left[k // 3, k % 3] *= factor
        _product(left, to_yiq, other)
        for k in range(9):
            out[i, k] = other[k // 3, k % 3]
        out[i, 9:12] = light * (middle - spread * middle)
        out[i, 12:] = 0
    return -1
