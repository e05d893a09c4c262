"""Geometry of rotations for whole batches: `penstock.operators.image.rotation`, vectorised.

The numbers are those of the functions for one sample, to the last bit. The first axis of every
array is the batch; what is invalid there has been found before.
"""

from __future__ import annotations

import math

import numpy as np

from penstock.kernels.cpu.sine import sines_and_cosines
from penstock.operators.image.rotation import SLACK

Canvases = tuple[np.ndarray, np.ndarray]
"""Extents that just hold each rotated input, and the input extents whose parity they should take
on: int64 ``(samples, rank)``, outermost axis first."""


def radians(degrees: np.ndarray) -> np.ndarray:
    """`degrees` in radians, as float32 products."""
    return degrees.astype(np.float32) * np.float32(math.pi / 180)


def canvases_of_images(extents: np.ndarray, degrees: np.ndarray) -> Canvases:
    """Canvases of images of `extents` ``(H, W)``."""
    angles = radians(degrees).tolist()
    # The C library's functions: NumPy's may differ in the last bit.
    cosine = np.abs(np.fromiter(map(math.cos, angles), np.float64, len(angles)))
    sine = np.abs(np.fromiter(map(math.sin, angles), np.float64, len(angles)))
    height, width = extents[:, 0], extents[:, 1]
    tight = np.stack(
        (
            np.ceil(cosine * height + sine * width - SLACK),
            np.ceil(cosine * width + sine * height - SLACK),
        ),
        axis=1,
    )
    parity = np.where((sine <= cosine)[:, None], extents, extents[:, ::-1])
    return tight.astype(np.int64), parity


def canvases_of_volumes(extents: np.ndarray, degrees: np.ndarray, axes: np.ndarray) -> Canvases:
    """Canvases of volumes of `extents` ``(D, H, W)`` rotated around `axes` ``(x, y, z)``."""
    turn = np.abs(_rotations(axes, radians(degrees)))
    size = extents[:, None, ::-1].astype(np.float32)
    weighed = turn * size
    reach = (weighed[:, :, 0] + weighed[:, :, 1]) + weighed[:, :, 2]
    tight = np.ceil(reach - np.float32(SLACK)).astype(np.int64)
    # The input axis that weighs most; of equals, the axis itself, then the first.
    largest = turn.max(axis=2)
    own = np.diagonal(turn, axis1=1, axis2=2)
    dominant = np.where(own == largest, np.arange(3), turn.argmax(axis=2))
    parity = np.take_along_axis(extents, 2 - dominant, axis=1)
    return tight[:, ::-1], parity[:, ::-1]


def own_canvases(canvases: Canvases) -> np.ndarray:
    """The canvas of each sample by itself: `rotation.common_canvas` of one."""
    tight, parity = canvases
    found: np.ndarray = tight + (tight % 2 != parity % 2)
    return found


def image_matrices(extents: np.ndarray, canvas: np.ndarray, degrees: np.ndarray) -> np.ndarray:
    """float32 ``(samples, 2, 3)``: from (x, y, 1) on each canvas to its input."""
    sine, cosine = sines_and_cosines(radians(degrees))
    turn = np.stack((cosine, -sine, sine, cosine), axis=1).reshape(-1, 2, 2)
    return _centred(turn, extents, canvas)


def volume_matrices(
    extents: np.ndarray, canvas: np.ndarray, degrees: np.ndarray, axes: np.ndarray
) -> np.ndarray:
    """float32 ``(samples, 3, 4)``: from (x, y, z, 1) on each canvas to its input."""
    return _centred(_rotations(axes, -radians(degrees)), extents, canvas)


def _centred(turn: np.ndarray, extents: np.ndarray, canvas: np.ndarray) -> np.ndarray:
    count, rank = extents.shape
    half = np.float32(0.5)
    centre = -(canvas[:, ::-1].astype(np.float32) * half)
    moved = turn * centre[:, None, :]
    offset = np.zeros((count, rank), np.float32)
    for j in range(rank):
        offset += moved[:, :, j]
    matrices = np.empty((count, rank, rank + 1), np.float32)
    matrices[:, :, :rank] = turn
    matrices[:, :, rank] = offset + extents[:, ::-1].astype(np.float32) * half
    return matrices


def _rotations(axes: np.ndarray, angles: np.ndarray) -> np.ndarray:
    """Rodrigues' rotations by `angles` around `axes`, float32 ``(samples, 3, 3)``."""
    axes = axes.astype(np.float32)
    largest = np.abs(axes).max(axis=1, keepdims=True)
    usual = (largest > 1e-15) & (largest < 1e15)
    axes = np.where(usual, axes, axes / np.where(usual, np.float32(1), largest))
    x, y, z = axes.T
    length = np.sqrt(x * x + y * y + z * z)
    u, v, w = x / length, y / length, z / length
    sine, cosine = sines_and_cosines(angles)
    rest = np.float32(1) - cosine
    return np.stack(
        (
            u * u + (v * v + w * w) * cosine,
            u * v * rest - w * sine,
            u * w * rest + v * sine,
            u * v * rest + w * sine,
            v * v + (u * u + w * w) * cosine,
            v * w * rest - u * sine,
            u * w * rest - v * sine,
            v * w * rest + u * sine,
            w * w + (u * u + v * v) * cosine,
        ),
        axis=1,
    ).reshape(-1, 3, 3)
