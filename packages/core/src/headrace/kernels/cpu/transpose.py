"""Permutations of axes, by OpenCV where a permutation is one that images know.

Splitting channels (HWC to CHW), joining them (CHW to HWC) and transposing the rows and columns of
an image are 5 to 30 times as fast in OpenCV as the strided copy of NumPy, which does the rest.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import cache

import numpy as np

from headrace.kernels.cpu.bits import movable
from headrace.kernels.cpu.opencv import cv2

_SPLIT_LIMIT = 16


def merged(permutation: Sequence[int]) -> tuple[tuple[tuple[int, ...], ...], tuple[int, ...]]:
    """Neighbours that stay neighbours as groups, and the permutation of the groups.

    Examples
    --------
    >>> merged((2, 0, 1))
    (((0, 1), (2,)), (1, 0))
    """
    runs: list[list[int]] = []
    for axis in permutation:
        if runs and runs[-1][-1] == axis - 1:
            runs[-1].append(axis)
        else:
            runs.append([axis])
    ordered = sorted(runs)
    return tuple(map(tuple, ordered)), tuple(ordered.index(run) for run in runs)


def transpose_into(source: np.ndarray, permutation: tuple[int, ...], out: np.ndarray) -> None:
    """Fill `out` with ``source.transpose(permutation)``.

    `source`: data of any shape and strides.
    """
    if source.size == 0:
        return
    if not _with_opencv(source, permutation, out):
        np.copyto(out, source.transpose(permutation))


@cache
def _plan(
    permutation: tuple[int, ...], real: tuple[int, ...]
) -> tuple[_Way | None, tuple[tuple[int, ...], ...], tuple[int, ...]]:
    """Plan a permutation of data whose axes but `real` have extent 1, which need not move."""
    position = {axis: k for k, axis in enumerate(real)}
    groups, order = merged([position[axis] for axis in permutation if axis in position])
    axes = tuple(tuple(real[k] for k in group) for group in groups)
    return _WAYS.get(order), axes, order


def _with_opencv(source: np.ndarray, permutation: tuple[int, ...], out: np.ndarray) -> bool:
    extents = source.shape
    real = tuple([axis for axis, extent in enumerate(extents) if extent != 1])
    how, groups, order = _plan(permutation, real)
    if how is None:
        return False
    source, out = movable(source), movable(out)
    if not source.flags.c_contiguous:
        if len(groups) == 2 and len(groups[0]) == 2 and _is_window(source):
            # The rows of a window of an image have gaps between them: they cannot become one.
            height, width = extents[groups[0][0]], extents[groups[0][1]]
            channels = math.prod([extents[axis] for axis in groups[1]])
            if channels <= _SPLIT_LIMIT:
                pixels = source.reshape(height, width, channels)
                _split(pixels, out.reshape(channels, height, width))
                return True
        source = np.ascontiguousarray(source)
    shape = [math.prod([extents[axis] for axis in group]) for group in groups]
    return how(source.reshape(shape), out.reshape([shape[k] for k in order]))


def _is_window(source: np.ndarray) -> bool:
    """True if only the outermost stride is larger than in contiguous data."""
    expected = source.itemsize
    for extent, stride in zip(source.shape[:0:-1], source.strides[:0:-1], strict=True):
        if stride != expected and extent != 1:
            return False
        expected *= extent
    return source.strides[0] >= expected


def _split(pixels: np.ndarray, planes: np.ndarray) -> None:
    cv2().split(pixels, [*planes])


def _swap(source: np.ndarray, out: np.ndarray) -> bool:
    """Matrix of shape ``(a, b)`` to ``(b, a)``."""
    a, b = source.shape
    if b <= _SPLIT_LIMIT:
        _split(source.reshape(1, a, b), out.reshape(b, 1, a))
    elif a <= _SPLIT_LIMIT:
        cv2().merge([*source.reshape(a, 1, b)], out.reshape(1, b, a))
    else:
        cv2().transpose(source, out)
    return True


def _swap_each(source: np.ndarray, out: np.ndarray) -> bool:
    """Matrices of shape ``(n, a, b)`` to ``(n, b, a)``."""
    for matrix, target in zip(source, out, strict=True):
        _swap(matrix, target)
    return True


def _swap_blocks(source: np.ndarray, out: np.ndarray) -> bool:
    """Images of shape ``(a, b, channels)`` to ``(b, a, channels)``."""
    if source.shape[2] * source.itemsize not in _TRANSPOSED_SIZES:
        return False
    cv2().transpose(source, out)
    return True


def _reverse(source: np.ndarray, out: np.ndarray) -> bool:
    """Images of shape ``(a, b, channels)`` to ``(channels, b, a)``."""
    if source.shape[2] > _SPLIT_LIMIT:
        return False
    planes = np.empty((source.shape[2], *source.shape[:2]), source.dtype)
    _split(source, planes)
    return _swap_each(planes, out)


_Way = Callable[[np.ndarray, np.ndarray], bool]

_TRANSPOSED_SIZES = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
_WAYS: dict[tuple[int, ...], _Way] = {
    (1, 0): _swap,
    (0, 2, 1): _swap_each,
    (1, 0, 2): _swap_blocks,
    (2, 1, 0): _reverse,
}
