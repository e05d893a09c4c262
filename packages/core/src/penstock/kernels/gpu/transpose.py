"""Copies that change the order of elements: transpositions, mirrors, channels split or joined."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from penstock.kernels.gpu.strided_axes import Axes, merged
from penstock.kernels.gpu.transpose_tiles import NESTED_BYTES, copy_far_tiles, copy_near_tiles
from penstock.tensors.gpu.batch import volumes

if TYPE_CHECKING:
    from penstock.tensors.gpu.queue import Queue

_SECTOR_BYTES = 32
"""What the device reads at least."""


def copy_tiles(queue: Queue, axes: Axes) -> None:
    """Copy elements in any order, tile by tile.

    Runs along the innermost axis, where there are any, must be short: of 1024 bytes at most.
    """
    roles = _roles(axes)
    if roles.takes_two_steps:
        between = queue.scratch(int((volumes(axes.extents) * axes.itemsize).sum()))
        for step in _two_steps(axes, roles, between):
            _copy_tiles(queue, step, _roles(step))
    else:
        _copy_tiles(queue, axes, roles)


@dataclass(slots=True)
class _Roles:
    """Which axis is what, see ``transpose.cu``; -1 for none."""

    run: int
    x: int
    """The innermost but the runs."""
    fast: int
    """The one along which the source has its elements closest to one another."""
    a: int
    """That one, too, or, if `x` is it already, the next further out."""
    staged: bool
    takes_two_steps: bool


def _roles(axes: Axes) -> _Roles:
    extents, strides = axes.extents, np.abs(axes.strides)
    last = extents.shape[1] - 1
    run = last if axes.has_runs and last else -1
    x = last - 1 if run >= 0 else last
    unit = axes.run_bytes if run >= 0 else axes.itemsize
    real = extents > 1
    steps = np.where(real, strides, 0).sum(axis=0) / np.maximum(real.sum(axis=0), 1)
    steps[~real.any(axis=0)] = np.inf
    fast = int(np.argmin(steps[: x + 1]))
    a = fast if fast != x else x - 1
    reach = np.maximum(_SECTOR_BYTES, 2 * np.asarray(unit))
    staged = bool((strides[:, fast] <= reach).all())
    return _Roles(run, x, fast, a, staged, staged and _is_awkward(axes, x, fast, unit))


def _is_awkward(axes: Axes, x: int, fast: int, unit: np.ndarray | int) -> bool:
    """Whether tiles of two axes would, by and large, touch less than a sector at a time.

    So it is with HWC to CWH, where three channels are read and three heights written at a time.
    """
    if fast == x or x < 2:
        return False
    extents, strides = axes.extents, np.abs(axes.strides)
    read = (extents[:, fast] - 1) * strides[:, fast] + unit
    written = extents[:, x] * unit
    narrow = read if fast == x - 1 else np.minimum(read, written)
    at_once = _are_nested(read, extents[:, x], strides[:, x])
    sizes = volumes(extents)
    widths = np.where(at_once, 2 * _SECTOR_BYTES, np.minimum(narrow, 2 * _SECTOR_BYTES))
    return bool((sizes * widths).sum() < _SECTOR_BYTES * sizes.sum())


def _are_nested(reach: np.ndarray, x_extent: np.ndarray, x_step: np.ndarray) -> np.ndarray:
    """Whether all of a step along `x` lies in one span with the next, as channels of pixels do."""
    dense = (reach <= x_step) & (x_step <= 2 * reach) & (x_step <= NESTED_BYTES)
    return dense | ((x_extent <= 1) & (reach <= NESTED_BYTES))


def _two_steps(axes: Axes, roles: _Roles, between: int) -> tuple[Axes, Axes]:
    """The same by way of memory at `between`, in an order that is easy to come to and to go from.

    That is the order of the source with the axis put in place that makes tiles narrow: the one
    that is fast in the source is first, or the one that is to be fast in the target is last.
    """
    x, fast = roles.x, roles.fast
    tail = [] if roles.run < 0 else [roles.run]
    by_stride = np.argsort(-np.abs(axes.strides[:, : x + 1]).sum(axis=0), kind="stable")
    rest = [int(axis) for axis in by_stride if axis not in (x, fast)]
    extents = axes.extents[:, [x, fast]]
    if extents[:, 1].sum() <= extents[:, 0].sum():
        order = [fast, *sorted([*rest, x], key=by_stride.tolist().index), *tail]
    else:
        order = [*sorted([*rest, fast], key=by_stride.tolist().index), x, *tail]
    sizes = volumes(axes.extents) * axes.itemsize
    places = (between + np.cumsum(sizes) - sizes).astype(np.uint64)
    there = merged(axes.extents[:, order], axes.strides[:, order])
    first = Axes(axes.source, places, *there, axes.itemsize)
    between_strides = Axes(
        places, places, axes.extents[:, order], axes.strides[:, order], axes.itemsize
    ).target_strides
    back = np.argsort(order)
    onward = merged(axes.extents, between_strides[:, back])
    return first, Axes(places, axes.target, *onward, axes.itemsize)


def _copy_tiles(queue: Queue, axes: Axes, roles: _Roles) -> None:
    if roles.staged:
        copy_near_tiles(queue, axes, roles.run, roles.x, roles.fast, roles.a)
    else:
        copy_far_tiles(queue, axes, roles.run, roles.x, roles.a)
