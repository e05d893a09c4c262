"""Copies that change the order of elements: transpositions, mirrors, channels split or joined."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from penstock.kernels.gpu.compiled import compiled
from penstock.kernels.gpu.program import kernel
from penstock.kernels.gpu.records import launch_counted
from penstock.kernels.gpu.strided_axes import Axes

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
_WORDS = 12
"""Of 64 bits, that a ``Tiles`` of ``transpose.cu`` has; three for each outer axis follow."""


def copy_tiles(queue: Queue, axes: Axes) -> None:
    """Copy elements in any order, tile by tile.

    Runs along the innermost axis, where there are any, must be short: of 1024 bytes at most.
    """
    roles = _Roles(*choose_roles(axes.extents, axes.strides, axes.itemsize, axes.has_runs))
    if roles.takes_two_steps:
        between = queue.scratch(int(axes.sizes_bytes.sum()))
        for step in _two_steps(axes, roles, between):
            again = choose_roles(step.extents, step.strides, step.itemsize, step.has_runs)
            _copy_tiles(queue, step, _Roles(*again))
    else:
        _copy_tiles(queue, axes, roles)


class _Roles(NamedTuple):
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


@compiled
def choose_roles(
    extents: np.ndarray, strides: np.ndarray, itemsize: int, has_runs: bool
) -> tuple[int, int, int, int, bool, bool]:
    """The fields of `_Roles`."""
    rows, last = extents.shape[0], extents.shape[1] - 1
    run = last if has_runs and last else -1
    x = last - 1 if run >= 0 else last
    fast, fewest = 0, np.inf
    for axis in range(x + 1):
        total, real = 0, 0
        for i in range(rows):
            if extents[i, axis] > 1:
                total += abs(strides[i, axis])
                real += 1
        mean = total / max(real, 1) if real else np.inf
        if mean < fewest:
            fast, fewest = axis, mean
    a = fast if fast != x else x - 1
    staged = True
    for i in range(rows):
        unit = extents[i, last] * itemsize if run >= 0 else itemsize
        staged &= abs(strides[i, fast]) <= max(_SECTOR_BYTES, 2 * unit)
    awkward = staged and _is_awkward(extents, strides, x, fast, itemsize, run)
    return run, x, fast, a, staged, awkward


@compiled
def _is_awkward(
    extents: np.ndarray, strides: np.ndarray, x: int, fast: int, itemsize: int, run: int
) -> bool:
    """Whether tiles of two axes would, by and large, touch less than a sector at a time.

    So it is with HWC to CWH, where three channels are read and three heights written at a time.
    """
    if fast == x or x < 2:
        return False
    weighted, whole = 0, 0
    for i in range(len(extents)):
        unit = extents[i, run] * itemsize if run >= 0 else itemsize
        read = (extents[i, fast] - 1) * abs(strides[i, fast]) + unit
        narrow = read if fast == x - 1 else min(read, extents[i, x] * unit)
        width = 2 * _SECTOR_BYTES
        if not _are_nested(read, extents[i, x], abs(strides[i, x])):
            width = min(narrow, width)
        size = 1
        for axis in range(extents.shape[1]):
            size *= extents[i, axis]
        weighted += size * width
        whole += size
    return weighted < _SECTOR_BYTES * whole


@compiled
def _are_nested(reach: int, x_extent: int, x_step: int) -> bool:
    """Whether all of a step along `x` lies in one span with the next, as channels of pixels do."""
    if x_extent <= 1 and reach <= _STAGE_BYTES // 16:
        return True
    return reach <= x_step and x_step <= 2 * reach and x_step <= _STAGE_BYTES // 16


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
    sizes = axes.sizes_bytes
    places = (between + np.cumsum(sizes) - sizes).astype(np.uint64)
    there, steps = axes.extents[:, order].copy(), axes.strides[:, order].copy()
    first = Axes.merged(axes.source, places, there, steps, axes.itemsize)
    itemsize = axes.itemsize
    laid = Axes(places, places, there, steps, itemsize, has_runs=False).target_strides
    back = laid[:, np.argsort(order)].copy()
    return first, Axes.merged(places, axes.target, axes.extents, back, itemsize)


def _copy_tiles(queue: Queue, axes: Axes, roles: _Roles) -> None:
    axis_count = axes.extents.shape[1]
    outer = axis_count - 1 - (roles.run >= 0) - (roles.a >= 0)
    records = np.empty((len(axes.source), _WORDS + 3 * outer), np.int64)
    blocks, each = _describe(
        records,
        axes.source,
        axes.target,
        axes.extents,
        axes.strides,
        axes.itemsize,
        roles.run,
        roles.x,
        roles.fast,
        roles.a,
        roles.staged,
    )
    launch_counted(
        queue,
        kernel("transpose.cu", "copy_tiles", _BITS[axes.itemsize], roles.staged),
        records,
        blocks,
        each,
        np.int32(outer),
    )


@compiled
def _describe(
    records: np.ndarray,
    source: np.ndarray,
    target: np.ndarray,
    extents: np.ndarray,
    strides: np.ndarray,
    itemsize: int,
    run_axis: int,
    x_axis: int,
    fast_axis: int,
    a_axis: int,
    staged: bool,
) -> tuple[int, int]:
    """Fill `records`; the number of blocks, and that of a sample if all have as many, else 0."""
    rows, count = extents.shape
    total, each = 0, 0
    steps = np.empty(count, np.int64)
    for i in range(len(records)):
        record, row = records[i], i if rows > 1 else 0
        extent, stride = extents[row], strides[row]
        step = itemsize
        for axis in range(count - 1, -1, -1):
            steps[axis] = step
            step *= extent[axis]
        run = extent[run_axis] if run_axis >= 0 else 1
        a_extent, a_source, a_target = 1, 0, 0
        if a_axis >= 0:
            a_extent, a_source, a_target = extent[a_axis], stride[a_axis], steps[a_axis]
        x_extent, x_source = extent[x_axis], stride[x_axis]
        a_tile, x_tile, spans, pitch = _tile(
            a_extent,
            abs(a_source),
            x_extent,
            abs(x_source),
            run,
            itemsize,
            staged,
            fast_axis == x_axis,
        )
        a_tiles, x_tiles = -(-a_extent // a_tile), -(-x_extent // x_tile)
        tiles, at = a_tiles * x_tiles, _WORDS
        for axis in range(count):
            if axis != run_axis and axis != x_axis and axis != a_axis:
                tiles *= extent[axis]
                record[at] = extent[axis]
                record[at + 1] = stride[axis]
                record[at + 2] = steps[axis]
                at += 3
        if run <= 0:
            tiles = 0
        record[0] = total | run << 32
        record[1] = np.int64(source[i])
        record[2] = np.int64(target[i])
        record[3] = a_extent
        record[4] = x_extent
        record[5] = a_source
        record[6] = x_source
        record[7] = a_target
        record[8] = a_tiles | x_tiles << 32
        record[9] = tiles & 0xFFFFFFFF | a_tile << 32
        record[10] = x_tile | spans << 32
        record[11] = pitch
        blocks = -(-tiles // _WARPS)
        each = blocks if i == 0 or blocks == each else 0
        total += blocks
    return total, each


@compiled
def _tile(
    a_extent: int,
    a_step: int,
    x_extent: int,
    x_step: int,
    run: int,
    itemsize: int,
    staged: bool,
    fast_is_x: bool,
) -> tuple[int, int, int, int]:
    """How a sample is cut into tiles; steps, in bytes, are not negative.

    Returns
    -------
    tuple of int
        Extents of a tile along `a` and `x`; which spans of memory it takes, and from one to the
        next in shared memory.
    """
    unit = run * itemsize
    if not staged:
        x = min(max(x_extent, 1), _DIRECT_ELEMENTS)
        a = min(max(_DIRECT_ELEMENTS // x, 1), a_extent) if x >= x_extent else 1
        return max(a, 1), x, 0, 0
    if fast_is_x:
        # Mirrors: one span an `a`, as many as there is room for.
        x = _rounded(_fitting(_STAGE_BYTES - 8, x_step, unit), x_extent)
        pitch = _pitch((x - 1) * x_step + unit, itemsize)
        a = min(max(_STAGE_BYTES // pitch, 1), a_extent) if x >= x_extent else 1
        return max(a, 1), x, _ONE_AN_A, pitch
    # Channels that lie within a step along `x`: one span has it all.
    reach = (a_extent - 1) * a_step + unit
    if _are_nested(reach, x_extent, x_step):
        x = _rounded(_fitting(_STAGE_BYTES, x_step, reach), x_extent)
        return max(a_extent, 1), x, _ONE, 0
    # A span an `x`: a square, or longer where there are few of them.
    square = 64 if itemsize <= 2 else 128
    room = max(square, _STAGE_BYTES // max(x_extent, 1) - 16)
    a = _rounded(_fitting(room, a_step, unit), a_extent)
    pitch = _pitch((a - 1) * a_step + unit, itemsize)
    x = min(max(_STAGE_BYTES // pitch, 1), max(x_extent, 1))
    return a, x, _ONE_AN_X, pitch


@compiled
def _fitting(room: int, step: int, unit: int) -> int:
    """How many pieces of `unit` bytes, a `step` apart, fit into as many bytes; at least one."""
    return max(room - unit, 0) // max(step, 1) + 1


@compiled
def _rounded(tile: int, extent: int) -> int:
    """`tile` within `extent`; where it does not cover that, a multiple of 32 if it is so large, so
    that tiles begin as well aligned as samples do.
    """
    if tile >= extent:
        return max(extent, 1)
    return tile // 32 * 32 if tile >= 32 else tile


@compiled
def _pitch(span: int, itemsize: int) -> int:
    """From span to span in shared memory: an odd number of words, so that what lies in a column of
    spans does not lie in one bank.
    """
    word = max(itemsize, 4)
    return (-(-span // word) | 1) * word
