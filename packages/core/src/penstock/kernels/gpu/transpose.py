"""Copies that change the order of elements: transpositions, mirrors, channels split or joined."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from penstock.kernels.gpu.program import kernel
from penstock.kernels.gpu.records import launch_records, quotient_up
from penstock.kernels.gpu.strided_axes import Axes, merged
from penstock.tensors.gpu.batch import volumes

if TYPE_CHECKING:
    from penstock.tensors.gpu.queue import Queue

_STAGE_BYTES = 4352
"""Shared memory of a warp, as in ``transpose.cu``."""
_WARPS = 8
_SECTOR_BYTES = 32
"""What the device reads at least."""
_DIRECT_ELEMENTS = 1024
"""Elements of a tile that is picked from the source itself."""
_BITS = {size: np.dtype(f"u{size}") for size in (1, 2, 4, 8)}
_ONE, _ONE_AN_X, _ONE_AN_A = range(3)


@cache
def _record(outer: int) -> np.dtype:
    return np.dtype(
        [
            ("first_block", np.uint32),
            ("run", np.uint32),
            ("source", np.uint64),
            ("target", np.uint64),
            ("a_extent", np.int64),
            ("x_extent", np.int64),
            ("a_source", np.int64),
            ("x_source", np.int64),
            ("a_target", np.int64),
            ("a_tiles", np.uint32),
            ("x_tiles", np.uint32),
            ("count", np.uint32),
            ("a_tile", np.uint32),
            ("x_tile", np.uint32),
            ("spans", np.uint32),
            ("pitch", np.uint32),
            ("axes", np.int64, (outer, 3)),
        ],
        align=True,
    )


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
    dense = (reach <= x_step) & (x_step <= 2 * reach) & (x_step <= _STAGE_BYTES // 16)
    return dense | ((x_extent <= 1) & (reach <= _STAGE_BYTES // 16))


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
    extents, strides, targets = axes.extents, axes.strides, axes.target_strides
    count = len(extents)
    ones, zeros = np.ones(count, np.int64), np.zeros(count, np.int64)
    run = extents[:, roles.run] if roles.run >= 0 else ones
    x_extent, x_source = extents[:, roles.x], strides[:, roles.x]
    a_extent, a_source, a_target = ones, zeros, zeros
    if roles.a >= 0:
        a_extent, a_source = extents[:, roles.a], strides[:, roles.a]
        a_target = targets[:, roles.a]
    tiles = _tiles(
        roles, a_extent, np.abs(a_source), x_extent, np.abs(x_source), run, axes.itemsize
    )
    a_tiles = quotient_up(a_extent, tiles.a)
    x_tiles = quotient_up(x_extent, tiles.x)
    outer = [k for k in range(extents.shape[1]) if k not in (roles.run, roles.x, roles.a)]
    total = np.where(run > 0, a_tiles * x_tiles * extents[:, outer].prod(axis=1), 0)
    records = np.empty(count, _record(len(outer)))
    for name, values in (
        ("run", run),
        ("source", axes.source),
        ("target", axes.target),
        ("a_extent", a_extent),
        ("x_extent", x_extent),
        ("a_source", a_source),
        ("x_source", x_source),
        ("a_target", a_target),
        ("a_tiles", a_tiles),
        ("x_tiles", x_tiles),
        ("count", total),
        ("a_tile", tiles.a),
        ("x_tile", tiles.x),
        ("spans", tiles.spans),
        ("pitch", tiles.pitch),
    ):
        records[name] = values
    if outer:
        records["axes"][:, :, 0] = extents[:, outer]
        records["axes"][:, :, 1] = strides[:, outer]
        records["axes"][:, :, 2] = targets[:, outer]
    launch_records(
        queue,
        kernel("transpose.cu", "copy_tiles", _BITS[axes.itemsize], roles.staged),
        records,
        quotient_up(total, _WARPS),
        np.int32(len(outer)),
    )


@dataclass(slots=True)
class _Tiles:
    """Extents of tiles, and how they lie in shared memory; int64 ``(samples,)`` each."""

    a: np.ndarray
    x: np.ndarray
    spans: np.ndarray
    pitch: np.ndarray


def _tiles(
    roles: _Roles,
    a_extent: np.ndarray,
    a_step: np.ndarray,
    x_extent: np.ndarray,
    x_step: np.ndarray,
    run: np.ndarray,
    itemsize: int,
) -> _Tiles:
    """How samples are cut into tiles; steps, in bytes, are not negative."""
    zeros = np.zeros(len(run), np.int64)
    unit = run * itemsize
    if not roles.staged:
        x = np.clip(x_extent, 1, _DIRECT_ELEMENTS)
        a = np.where(x >= x_extent, np.clip(_DIRECT_ELEMENTS // x, 1, a_extent), 1)
        return _Tiles(np.maximum(a, 1), x, zeros, zeros)
    if roles.fast == roles.x:
        # Mirrors: one span an `a`, as many as there is room for.
        x = _rounded(_fitting(_STAGE_BYTES - 8, x_step, unit), x_extent)
        pitch = _pitch((x - 1) * x_step + unit, itemsize)
        a = np.where(x >= x_extent, np.clip(_STAGE_BYTES // pitch, 1, a_extent), 1)
        return _Tiles(np.maximum(a, 1), x, np.full_like(zeros, _ONE_AN_A), pitch)
    # Channels that lie within a step along `x`: one span has it all.
    reach = (a_extent - 1) * a_step + unit
    nested = _are_nested(reach, x_extent, x_step)
    nested_x = _rounded(_fitting(_STAGE_BYTES, x_step, reach), x_extent)
    # A span an `x`: a square, or longer where there are few of them.
    square = 64 if itemsize <= 2 else 128
    room = np.maximum(square, _STAGE_BYTES // np.maximum(x_extent, 1) - 16)
    a = _rounded(_fitting(room, a_step, unit), a_extent)
    pitch = _pitch((a - 1) * a_step + unit, itemsize)
    x = np.clip(_STAGE_BYTES // pitch, 1, np.maximum(x_extent, 1))
    return _Tiles(
        np.where(nested, np.maximum(a_extent, 1), a),
        np.where(nested, nested_x, x),
        np.where(nested, _ONE, _ONE_AN_X),
        np.where(nested, 0, pitch),
    )


def _fitting(room: np.ndarray | int, step: np.ndarray, unit: np.ndarray) -> np.ndarray:
    """How many pieces of `unit` bytes, a `step` apart, fit into as many bytes; at least one."""
    return np.maximum(room - unit, 0) // np.maximum(step, 1) + 1


def _rounded(tile: np.ndarray, extent: np.ndarray) -> np.ndarray:
    """`tile` within `extent`; where it does not cover that, a multiple of 32 if it is so large, so
    that tiles begin as well aligned as samples do.
    """
    even = np.where(tile >= 32, tile // 32 * 32, tile)
    return np.where(tile >= extent, np.maximum(extent, 1), even)


def _pitch(span: np.ndarray, itemsize: int) -> np.ndarray:
    """From span to span in shared memory: an odd number of words, so that what lies in a column of
    spans does not lie in one bank.
    """
    word = max(itemsize, 4)
    return (quotient_up(span, word) | 1) * word
