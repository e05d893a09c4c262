"""Source pixels, and their weights, that make an output pixel, for all axes of a batch at once.

The twin of `headrace.kernels.cpu.resample_taps`, with the same rules and the same arithmetic: the
host works out how each axis is sampled, the device what that means for each output pixel.
"""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headrace.kernels.cpu.resample_taps import Filter, filter_table, width_of
from headrace.kernels.gpu.program import kernel
from headrace.kernels.gpu.shared import record
from headrace.kernels.plan.compiled import compiled
from headrace.tensors.gpu.queue import Queue
from headrace.tensors.gpu.traced import traced

if TYPE_CHECKING:
    from headrace.kernels.gpu.resample_axes import AxesSampling

_THREADS = 64
_NEAREST, _GAUSSIAN = int(Filter.NEAREST), int(Filter.GAUSSIAN)
_WITH_TABLES = [kind for kind in Filter if kind != Filter.NEAREST]
_HALF = np.float32(0.5)

TAPPED = record("""resample_taps:TapAxis {
    int* first;
    float* weights;
    // Which entry the filter's table begins with; negative: nearest neighbours.
    int32 table;
    // Of the region; for filters, the position of the leftmost tap of pixel 0.
    float start;
    float scale;  // source pixels an output pixel
    float units;  // steps of the table a source pixel
    int32 last;  // of the table
    int32 support;  // source pixels under the filter
    int32 taps;  // the same, as far as the axis has them
    int32 in_size;
    int32 begin, step, length;  // of the output pixels that are wanted
    int32 stepwise;
}""")
"""An axis as the kernel gets it, and where its taps will be: the address of the first source pixel
of each output pixel, int32, and that of the weights of this and the following pixels, float32,
`taps` of them for an output pixel.
"""

_FILTER = np.dtype(
    [("offset", np.int32), ("last", np.float32), ("half_width", np.float32)], align=True
)


class Taps(NamedTuple):
    """Source pixels and weights of axes, in device memory once the work is done."""

    axes: np.ndarray
    """`TAPPED` ``(axes, n)``."""
    columns: np.ndarray
    """Index of each sample's taps; see `AxesSampling.columns`."""


class KeptTaps(NamedTuple):
    """Taps of axes that samples, and iterations, have in common."""

    queue: Queue
    """Queue whose work they are ready for."""
    memory: Any
    axes: np.ndarray


def axes_taps(queue: Queue, axes: AxesSampling) -> Taps:
    """The taps of all wanted pixels; queues their computation, in one launch, if that is new."""
    columns, kept = axes.columns, axes.kept_taps
    if kept and kept[0].queue is queue:
        return Taps(kept[0].axes, columns)
    filters, entries = _tables()
    # Tables and records go up together.
    uploaded = np.empty(entries.nbytes + axes.table.size * TAPPED.itemsize, np.uint8)
    uploaded[: entries.nbytes] = entries
    records = uploaded[entries.nbytes :].view(TAPPED).reshape(axes.table.shape)
    size, longest = _describe(axes.table, axes.antialias, filters, records)
    memory = None
    if axes.index is None:
        address = queue.scratch(size)
    else:
        memory = queue.empty((max(size, 1),), np.uint8, 1)
        address = int(memory.pointers[0])
    _move(records, np.uint64(address))
    device_entries = queue.upload(uploaded)
    queue.launch(
        kernel("resample_taps.cu", "resample_taps"),
        (axes.table.size, -(-longest // _THREADS), 1),
        (_THREADS, 1, 1),
        device_entries + np.uint64(entries.nbytes),
        device_entries,
    )
    if memory is not None:
        axes.kept_taps[:] = [KeptTaps(queue, memory, records)]
    return Taps(records, columns)


@traced
@compiled
def _describe(
    axes: np.ndarray, antialias: bool, filters: np.ndarray, records: np.ndarray
) -> tuple[int, int]:
    """Fill `records`, with addresses from 0 on; the bytes up to the last, and the longest axis.

    The arithmetic is that of the CPU's `_taps`, in float32.
    """
    weights, longest = 0, 0
    for axis in range(axes.shape[0]):
        for i in range(axes.shape[1]):
            one, record = axes[axis, i], records[axis, i]
            kind = filters[one.filter]
            out_size = max(one.out_size, 1)
            scale = (one.end - one.start) / np.float32(out_size)
            is_gaussian = one.filter == _GAUSSIAN
            width = width_of(kind.half_width, is_gaussian, antialias, one.start, one.end, out_size)
            units = kind.last / width
            anchor = _HALF * kind.last / units
            record.start = one.start + ((_HALF * scale - _HALF) - anchor)
            support = math.ceil(width)
            if one.filter == _NEAREST:
                record.start = one.start
                support = 1
            taps = min(support, one.in_size)
            record.weights = weights
            weights += 4 * one.length * taps
            record.table = kind.offset
            record.scale = scale
            record.units = units
            record.last = int(kind.last)
            record.support = support
            record.taps = taps
            record.in_size = one.in_size
            record.begin = one.begin
            record.step = one.step
            record.length = one.length
            record.stepwise = axis != axes.shape[0] - 1
            longest = max(longest, one.length)
    end = weights
    for axis in range(axes.shape[0]):
        for i in range(axes.shape[1]):
            records[axis, i].first = end
            end += 4 * axes[axis, i].length
    return end, longest


@traced
@compiled
def _move(records: np.ndarray, by: np.uint64) -> None:
    """Add to all addresses."""
    for axis in range(records.shape[0]):
        for i in range(records.shape[1]):
            records[axis, i].first += by
            records[axis, i].weights += by


@cache
def _tables() -> tuple[np.ndarray, np.ndarray]:
    """Records of all filters, and the bytes of the entries of their tables."""
    filters = np.zeros(len(Filter), _FILTER)
    filters[Filter.NEAREST] = (-1, 1, 1)
    entries, at = [], 0
    for kind in _WITH_TABLES:
        table, radius = filter_table(kind)
        filters[kind] = (at, len(table) - 1, radius)
        entries.append(table)
        at += len(table)
    entries.append(np.zeros(-at % 4, np.float32))  # records are aligned
    return filters, np.concatenate(entries).view(np.uint8)
