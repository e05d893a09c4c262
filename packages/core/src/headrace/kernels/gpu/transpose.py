"""Copies that change the order of elements: transpositions, mirrors, channels split or joined."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from headrace.kernels.gpu.program import kernel
from headrace.kernels.gpu.records import THREADS, launch_records, quotient_up
from headrace.kernels.gpu.shared import followed, record
from headrace.kernels.gpu.strided_axes import AXIS, StridedAxes
from headrace.kernels.gpu.transpose_tiles import BITS, NESTED_BYTES, copy_near_tiles
from headrace.kernels.plan.compiled import compiled
from headrace.tensors.gpu.queue import Queue
from headrace.tensors.gpu.traced import told

_SECTOR_BYTES = 32
"""Smallest number of bytes that the device reads."""
_FAR_ELEMENTS = 1024
"""Elements of a tile that is picked from the source itself."""
_WARPS = THREADS // 32


def copy_tiles(queue: Queue, axes: StridedAxes) -> None:
    """Copy elements in any order, tile by tile.

    Runs along the innermost axis, where there are any, must be short: of 1024 bytes at most.
    """
    roles = _roles(axes)
    if roles.takes_two_steps:
        between = queue.scratch(int(axes.sizes_bytes.sum()))
        for step in _two_steps(axes, roles, between):
            _copy_tiles(queue, step, _roles(step))
    else:
        _copy_tiles(queue, axes, roles)


class _Roles(NamedTuple):
    """Role of each axis, see ``transpose.cu``; -1 for none."""

    run: int
    x: int
    """The innermost but the runs."""
    fast: int
    """The one along which the source has its elements closest to one another."""
    a: int
    """That one, too, or, if `x` is it already, the next further out."""
    staged: bool
    takes_two_steps: bool


def _roles(axes: StridedAxes) -> _Roles:
    found = _choose(axes.extents, axes.strides, axes.itemsize, axes.has_runs, NESTED_BYTES)
    return _Roles(*found)


@told
@compiled
def _choose(
    extents: np.ndarray, strides: np.ndarray, itemsize: int, has_runs: bool, nested_bytes: int
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
    awkward = staged and _is_awkward(extents, strides, x, fast, itemsize, run, nested_bytes)
    return run, x, fast, a, staged, awkward


@compiled
def _is_awkward(
    extents: np.ndarray,
    strides: np.ndarray,
    x: int,
    fast: int,
    itemsize: int,
    run: int,
    nested_bytes: int,
) -> bool:
    """True if tiles of two axes would usually touch less than a sector at a time.

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
        if not _are_nested(read, extents[i, x], abs(strides[i, x]), nested_bytes):
            width = min(narrow, width)
        size = 1
        for axis in range(extents.shape[1]):
            size *= extents[i, axis]
        weighted += size * width
        whole += size
    return weighted < _SECTOR_BYTES * whole


@compiled
def _are_nested(reach: int, x_extent: int, x_step: int, nested_bytes: int) -> bool:
    """True if all of a step along `x` lies in one span with the next, as channels of pixels do."""
    if x_extent <= 1 and reach <= nested_bytes:
        return True
    return reach <= x_step and x_step <= 2 * reach and x_step <= nested_bytes


def _two_steps(axes: StridedAxes, roles: _Roles, between: int) -> tuple[StridedAxes, StridedAxes]:
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
    first = StridedAxes.merged(axes.source, places, there, steps, axes.itemsize)
    itemsize = axes.itemsize
    laid = StridedAxes(places, places, there, steps, itemsize, has_runs=False).target_strides
    back = laid[:, np.argsort(order)].copy()
    return first, StridedAxes.merged(places, axes.target, axes.extents, back, itemsize)


def _copy_tiles(queue: Queue, axes: StridedAxes, roles: _Roles) -> None:
    if roles.staged:
        copy_near_tiles(queue, axes, roles.run, roles.x, roles.fast, roles.a)
    else:
        _copy_far_tiles(queue, axes, roles.run, roles.x, roles.a)


_FAR_TILES = record("""transpose:FarTiles {
    uint32 first_block;
    uint32 run;  // elements
    uint64 source, target, a_extent, x_extent;
    int64 a_source;  // bytes from element to element, as the next two
    int64 x_source, a_target;
    uint32 a_tiles, x_tiles;
    uint32 count;  // tiles of the sample
    uint32 a_tile, x_tile;
}""")


@cache
def _far_record(outer: int) -> np.dtype:
    return followed(_FAR_TILES, ("axes", AXIS, (outer,)))


def _copy_far_tiles(
    queue: Queue, axes: StridedAxes, run_axis: int, x_axis: int, a_axis: int
) -> None:
    """Copy elements that lie too far apart for shared memory: every thread reads where they are.

    Axes are those of `copy_near_tiles`.
    """
    count = len(axes.source)
    rows = axes.extents, axes.strides, axes.target_strides
    extents, strides, targets = (np.broadcast_to(a, (count, a.shape[1])) for a in rows)
    ones, zeros = np.ones(count, np.int64), np.zeros(count, np.int64)
    run = extents[:, run_axis] if run_axis >= 0 else ones
    x_extent = extents[:, x_axis]
    a_extent, a_source, a_target = ones, zeros, zeros
    if a_axis >= 0:
        a_extent, a_source = extents[:, a_axis], strides[:, a_axis]
        a_target = targets[:, a_axis]
    x = np.clip(x_extent, 1, _FAR_ELEMENTS)
    a = np.where(x >= x_extent, np.clip(_FAR_ELEMENTS // x, 1, np.maximum(a_extent, 1)), 1)
    a_tiles = quotient_up(a_extent, a)
    x_tiles = quotient_up(x_extent, x)
    outer = [k for k in range(extents.shape[1]) if k not in (run_axis, x_axis, a_axis)]
    total = np.where(run > 0, a_tiles * x_tiles * extents[:, outer].prod(axis=1), 0)
    records = np.empty(count, _far_record(len(outer)))
    for name, values in (
        ("run", run),
        ("source", axes.source),
        ("target", axes.target),
        ("a_extent", a_extent),
        ("x_extent", x_extent),
        ("a_source", a_source),
        ("x_source", strides[:, x_axis]),
        ("a_target", a_target),
        ("a_tiles", a_tiles),
        ("x_tiles", x_tiles),
        ("count", total),
        ("a_tile", a),
        ("x_tile", x),
    ):
        records[name] = values
    if outer:
        records["axes"]["extent"] = extents[:, outer]
        records["axes"]["source"] = strides[:, outer]
        records["axes"]["target"] = targets[:, outer]
    launch_records(
        queue,
        kernel("transpose_direct.cu", "copy_far_tiles", BITS[axes.itemsize]),
        records,
        quotient_up(total, _WARPS),
        np.int32(len(outer)),
    )
