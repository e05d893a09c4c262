"""Copies that change the order of elements which lie too far apart for tiles in shared memory."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from penstock.kernels.gpu.program import kernel
from penstock.kernels.gpu.records import THREADS, launch_records, quotient_up
from penstock.kernels.gpu.shared import followed, record
from penstock.kernels.gpu.strided_axes import AXIS
from penstock.tensors.gpu.queue import Queue

if TYPE_CHECKING:
    from penstock.kernels.gpu.strided_axes import Axes

_FAR_ELEMENTS = 1024
"""Elements of a tile that is picked from the source itself."""
_WARPS = THREADS // 32
_BITS = {size: np.dtype(f"u{size}") for size in (1, 2, 4, 8)}


_TILES = record("""transpose_direct:Tiles {
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
    return followed(_TILES, ("axes", AXIS, (outer,)))


def copy_far_tiles(queue: Queue, axes: Axes, run_axis: int, x_axis: int, a_axis: int) -> None:
    """Copy elements that every thread reads where they are.

    Axes are those of `penstock.kernels.gpu.transpose_tiles.copy_near_tiles`.
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
        kernel("transpose_direct.cu", "copy_far_tiles", _BITS[axes.itemsize]),
        records,
        quotient_up(total, _WARPS),
        np.int32(len(outer)),
    )
