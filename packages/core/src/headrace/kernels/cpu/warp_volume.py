"""Compiled loops of `Warp` for volumes of any type and number of channels."""

from __future__ import annotations

import numpy as np

from headrace.kernels.compilation import njit
from headrace.kernels.cpu.saturate import saturate
from headrace.kernels.cpu.warp_image import RESTART, bring_near


def linear(
    source: np.ndarray, out: np.ndarray, matrix: np.ndarray, clamp: bool, fill: np.float32
) -> None:
    """Interpolate between 8 neighbours.

    `source`, `out`: contiguous ``(D, H, W, C)``.
    """
    bring_near(source, out)
    depth, height, width, channels = source.shape
    out_depth, out_height, out_width, _ = out.shape
    half = np.float32(0.5)
    dx, dy, dz = matrix[0, 0], matrix[1, 0], matrix[2, 0]
    for plane in range(out_depth):
        for row in range(out_height):
            start_x, start_y, start_z = _start(matrix, plane, row)
            for first in range(0, out_width, RESTART):
                if first:
                    start_x += np.float32(RESTART) * dx
                    start_y += np.float32(RESTART) * dy
                    start_z += np.float32(RESTART) * dz
                at_x, at_y, at_z = start_x, start_y, start_z
                for column in range(first, min(first + RESTART, out_width)):
                    x, y, z = at_x - half, at_y - half, at_z - half
                    at_x += dx
                    at_y += dy
                    at_z += dz
                    floor_x, floor_y, floor_z = np.floor(x), np.floor(y), np.floor(z)
                    right, low, back = x - floor_x, y - floor_y, z - floor_z
                    x0, y0, z0 = int(floor_x), int(floor_y), int(floor_z)
                    x1, y1, z1 = x0 + 1, y0 + 1, z0 + 1
                    if not clamp and (
                        min(x1, y1, z1) < 0 or x0 >= width or y0 >= height or z0 >= depth
                    ):
                        for c in range(channels):
                            out[plane, row, column, c] = saturate(fill, out)
                        continue
                    has_left, has_right = clamp or x0 >= 0, clamp or x1 < width
                    has_top, has_bottom = clamp or y0 >= 0, clamp or y1 < height
                    has_front, has_back = clamp or z0 >= 0, clamp or z1 < depth
                    x0, x1 = min(max(x0, 0), width - 1), min(max(x1, 0), width - 1)
                    y0, y1 = min(max(y0, 0), height - 1), min(max(y1, 0), height - 1)
                    z0, z1 = min(max(z0, 0), depth - 1), min(max(z1, 0), depth - 1)
                    for c in range(channels):
                        front = _blend(
                            *(source, z0, y0, y1, x0, x1, c, has_front, has_top, has_bottom),
                            *(has_left, has_right, right, low, fill),
                        )
                        behind = _blend(
                            *(source, z1, y0, y1, x0, x1, c, has_back, has_top, has_bottom),
                            *(has_left, has_right, right, low, fill),
                        )
                        out[plane, row, column, c] = saturate(front + (behind - front) * back, out)


def nearest(
    source: np.ndarray, out: np.ndarray, matrix: np.ndarray, clamp: bool, fill: float
) -> None:
    """Take the element that each point falls into.

    `source`, `out`: contiguous ``(D, H, W, C)`` of one type.
    """
    bring_near(source, out)
    depth, height, width, channels = source.shape
    out_depth, out_height, out_width, _ = out.shape
    dx, dy, dz = matrix[0, 0], matrix[1, 0], matrix[2, 0]
    for plane in range(out_depth):
        for row in range(out_height):
            start_x, start_y, start_z = _start(matrix, plane, row)
            for first in range(0, out_width, RESTART):
                if first:
                    start_x += np.float32(RESTART) * dx
                    start_y += np.float32(RESTART) * dy
                    start_z += np.float32(RESTART) * dz
                at_x, at_y, at_z = start_x, start_y, start_z
                for column in range(first, min(first + RESTART, out_width)):
                    x = int(np.floor(at_x))
                    y = int(np.floor(at_y))
                    z = int(np.floor(at_z))
                    at_x += dx
                    at_y += dy
                    at_z += dz
                    if clamp:
                        x = min(max(x, 0), width - 1)
                        y = min(max(y, 0), height - 1)
                        z = min(max(z, 0), depth - 1)
                    elif not (0 <= x < width and 0 <= y < height and 0 <= z < depth):
                        for c in range(channels):
                            out[plane, row, column, c] = fill
                        continue
                    for c in range(channels):
                        out[plane, row, column, c] = source[
                            np.uintp(z), np.uintp(y), np.uintp(x), c
                        ]


@njit(nogil=True)
def _start(matrix: np.ndarray, plane: int, row: int) -> tuple[np.float32, np.float32, np.float32]:
    """Source coordinates of the first element of a row; the order of additions is DALI's."""
    half = np.float32(0.5)
    y, z = np.float32(row) + half, np.float32(plane) + half
    return (
        matrix[0, 2] * z + (matrix[0, 1] * y + (matrix[0, 0] * half + matrix[0, 3])),
        matrix[1, 2] * z + (matrix[1, 1] * y + (matrix[1, 0] * half + matrix[1, 3])),
        matrix[2, 2] * z + (matrix[2, 1] * y + (matrix[2, 0] * half + matrix[2, 3])),
    )


@njit(nogil=True, forceinline=True)
def _blend(
    source: np.ndarray,
    z: int,
    y0: int,
    y1: int,
    x0: int,
    x1: int,
    c: int,
    has_plane: bool,
    has_top: bool,
    has_bottom: bool,
    has_left: bool,
    has_right: bool,
    right: np.float32,
    low: np.float32,
    fill: np.float32,
) -> np.float32:
    """Blend the four neighbours in one plane."""
    left = np.float32(1) - right
    has_top, has_bottom = has_top and has_plane, has_bottom and has_plane
    plane, first, last = source[np.uintp(z)], np.uintp(x0), np.uintp(x1)
    top, bottom = plane[np.uintp(y0)], plane[np.uintp(y1)]
    a = (np.float32(top[first, c]) if has_top and has_left else fill) * left + (
        np.float32(top[last, c]) if has_top and has_right else fill
    ) * right
    b = (np.float32(bottom[first, c]) if has_bottom and has_left else fill) * left + (
        np.float32(bottom[last, c]) if has_bottom and has_right else fill
    ) * right
    # In volumes rows are weighted like columns, unlike in images; so DALI rounds.
    return a * (np.float32(1) - low) + b * low
