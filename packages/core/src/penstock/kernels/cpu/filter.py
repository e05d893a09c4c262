"""Separable filters of images and volumes with symmetric windows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from penstock.kernels.cpu import filter_loops
from penstock.kernels.cpu.cast import converter
from penstock.kernels.cpu.rows import as_rows, read_only

_ONE = np.ones(1, np.float32)
_DIRECT = (np.dtype(np.uint8), np.dtype(np.float32))
"""Types that the compiled loop reads and writes by itself; others go by way of float32."""


@lru_cache(maxsize=1024)
def gaussian_window(sigma: float, size: int) -> np.ndarray:
    """Right half of a Gaussian window, centre first; the whole window adds up to 1.

    Parameters
    ----------
    sigma
        Standard deviation in elements.
    size
        Odd number of weights of the whole window.
    """
    distance = np.arange(size // 2 + 1, dtype=np.float64)
    weights = np.exp(distance * distance / (-2.0 * sigma * sigma))
    weights /= 2 * weights.sum() - weights[0]
    window = weights.astype(np.float32)
    window.flags.writeable = False
    return window


@lru_cache(maxsize=1024)
def mirrored_positions(extent: int, radius: int) -> np.ndarray:
    """Which elements stand at ``-radius`` to ``extent + radius - 1``.

    Beyond both ends elements repeat backwards, the outermost only once, as often as it takes.
    """
    positions = np.arange(-radius, extent + radius)
    if extent == 1:
        positions[:] = 0
    else:
        period = 2 * (extent - 1)
        positions = np.abs(positions) % period
        positions = np.minimum(positions, period - positions)
    positions.flags.writeable = False
    return positions


def filter_separably(
    source: np.ndarray, out: np.ndarray, first_axis: int, windows: Sequence[np.ndarray]
) -> None:
    """Fill `out` with `source` filtered along neighbouring axes, the border mirrored.

    Parameters
    ----------
    source
        Any shape, strides and type of numbers.
    out
        Contiguous, of the shape of `source` and any type. Sums are float32; integers are rounded,
        halves away from zero, and saturate.
    first_axis
        First of the axes to filter.
    windows
        Weights for one to three axes in order: float32, the centre's first, then those at
        distance 1 and more.
    """
    if out.size == 0:
        return
    if source.dtype not in _DIRECT:
        single = np.empty(source.shape, np.float32)
        converter(source.dtype, single.dtype)(source, single)
        source = single
    target = out
    if out.dtype not in _DIRECT:
        target = np.empty(out.shape, np.float32)
    shape = source.shape
    last_axis = first_axis + len(windows)
    outer, inner = math.prod(shape[:first_axis]), math.prod(shape[last_axis:])
    extents = shape[first_axis:last_axis]
    if len(windows) == 3:
        # Along the depth first: its planes are the rows of an image, their elements its columns.
        deep = np.empty(source.shape, np.float32)
        width = extents[1] * extents[2] * inner
        _filter_planes(source, deep, outer, extents[0], width, width, windows[0], _ONE)
        source = deep
        outer, extents, windows = outer * extents[0], extents[1:], windows[1:]
    if len(windows) == 1:
        _filter_planes(source, target, 1, outer, extents[0] * inner, inner, _ONE, windows[0])
    else:
        height, width = extents
        _filter_planes(source, target, outer, height, width * inner, inner, *windows)
    if target is not out:
        converter(target.dtype, out.dtype)(target, out)


def _filter_planes(
    source: np.ndarray,
    out: np.ndarray,
    planes: int,
    height: int,
    width: int,
    channels: int,
    row_window: np.ndarray,
    column_window: np.ndarray,
) -> None:
    filter_planes = filter_loops.filter_planes

    flat, rows, run, stride = as_rows(source)
    if rows == 1:
        stride = width
    elif run != width or rows != planes * height:
        flat, stride = read_only(np.ascontiguousarray(source).reshape(-1)), width
    filter_planes(
        flat,
        stride,
        mirrored_positions(height, row_window.size - 1),
        row_window,
        mirrored_positions(width // channels, column_window.size - 1),
        column_window,
        channels,
        out.reshape(planes, height, width),
    )
