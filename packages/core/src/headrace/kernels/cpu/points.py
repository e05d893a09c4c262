"""Points mapped by affine maps."""

from __future__ import annotations

import numba
import numpy as np

from headrace.kernels.compilation import njit
from headrace.kernels.cpu.flip_points import FEW
from headrace.kernels.cpu.pointers import elements
from headrace.kernels.cpu.saturate import saturate


@njit(nogil=True, error_model="numpy")
def map_points(points: np.ndarray, matrix: np.ndarray, out: np.ndarray) -> None:
    """Fill `out` with the images of `points`.

    `matrix`: float32, at least ``(m, n + 1)``; what is in column `n` is added. Sums are float32,
    from the first term on.
    """
    rows, columns = out.shape[1], points.shape[1]
    for i in range(len(out)):
        for r in range(rows):
            total = matrix[r, 0] * np.float32(points[i, 0])
            for k in range(1, columns):
                total += matrix[r, k] * np.float32(points[i, k])
            out[i, r] = saturate(total + matrix[r, columns], out)


def map_rows(
    addresses: np.ndarray,
    shapes: np.ndarray,
    like: np.ndarray,
    maps: np.ndarray,
    out: np.ndarray,
    begins: np.ndarray,
) -> None:
    """`map_points` for several samples.

    `addresses`: where the points of each are, of the type of `like`. `shapes`: int64 ``(samples,
    3)``: points, coordinates of each, and coordinates of its image. `out`, `begins`: the output,
    flat, and the element with which each sample begins.
    """
    map_all = _map_few if out.size <= FEW else _map
    map_all(addresses, shapes, like, maps, out, begins)


@njit(nogil=True, error_model="numpy")
def _map(
    addresses: np.ndarray,
    shapes: np.ndarray,
    like: np.ndarray,
    maps: np.ndarray,
    out: np.ndarray,
    begins: np.ndarray,
) -> None:
    for k in range(len(addresses)):
        count, given, made = shapes[k, 0], shapes[k, 1], shapes[k, 2]
        points = numba.carray(elements(addresses[k], like), (count, given))
        target = out[begins[k] : begins[k] + count * made].reshape(count, made)
        map_points(points, maps[k], target)


_map_few = njit(error_model="numpy")(_map.py_func)
