"""Windows that reach beyond the data, or change the element type.

What lies outside is a constant, or made from the inside: the GPU's side of
`headrace.kernels.cpu.pad`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from headrace.kernels.gpu.program import kernel
from headrace.kernels.gpu.records import THREADS, launch_records, quotient_up
from headrace.kernels.gpu.shared import constant, followed, numbered, record
from headrace.tensors.gpu.batch import DeviceBatch, StridedBatch
from headrace.tensors.gpu.queue import Queue

if TYPE_CHECKING:
    from headrace.kernels.gpu.program import Kernel

_POLICIES = numbered(
    __name__, "Policy", ("constant", "edge", "reflect_1001", "reflect_101", "wrap")
)
_BITS = {size: np.dtype(f"u{size}") for size in (1, 2, 4, 8)}
_CHUNK = constant(__name__, "CHUNK", 2048, "int64")
"""Elements of a row that threads write one after the other."""
_LONGEST_RUN = 64
_AXIS = record("""window:WindowAxis {
    int64 extent;  // of the window
    int64 anchor;
    int64 data;  // extent of the data
    int64 stride;  // of the data, in bytes
}""")
_WINDOW = record("""window:Window {
    uint32 first_block;
    uint32 per_block;  // pieces that a block writes
    uint64 source, target;
    int64 run, run_stride;
    int64 row;  // elements of a row
    int64 chunks;  // pieces of a row
    int64 pieces;  // of the sample
    window:WindowAxis x;  // other axes follow
}""")


def window(
    queue: Queue,
    source: StridedBatch,
    anchors: np.ndarray,
    target: DeviceBatch,
    *,
    policy: str,
    fill: np.ndarray | None = None,
    fill_axis: int = -1,
) -> None:
    """Fill each sample of `target` with the window of a sample of `source`.

    Elements are converted by the rules of `slice`: fractions are dropped, and what does not fit
    saturates.

    `anchors`: int64 ``(samples, ndim)``: first coordinates of the windows; may be negative.
    """
    constant = policy == "constant"
    if not constant or fill is None or len(fill) == 1:
        fill_axis = -1
    if policy in ("constant", "edge"):
        # Further away is no different, and no number is too large to go on with.
        anchors = np.clip(anchors, -target.shapes, source.shapes)
    axes = _WindowAxes.of(source, anchors, target).merged(fill_axis, only_whole=not constant)
    source_type, target_type = source.dtype, target.dtype
    if source_type == target_type:
        source_type = target_type = _BITS[source_type.itemsize]
    values = np.zeros(1, target.dtype) if fill is None else np.ascontiguousarray(fill)
    _launch(
        queue,
        axes,
        source,
        target,
        kernel("window.cu", "window", source_type, target_type),
        np.int32(_POLICIES[policy]),
        queue.upload(values),
    )


@dataclass(slots=True)
class _WindowAxes:
    """Axes of windows; int64 ``(samples, axes)`` each, outermost first, at least one axis."""

    extents: np.ndarray
    anchors: np.ndarray
    data: np.ndarray
    """Extents of the data."""
    strides: np.ndarray
    """Of the data, in bytes."""
    fill_axis: int = -1
    """The axis that fill values belong to."""

    @classmethod
    def of(cls, source: StridedBatch, anchors: np.ndarray, target: DeviceBatch) -> _WindowAxes:
        if source.ndim:
            return cls(target.shapes, anchors, source.shapes, source.strides)
        ones = np.ones((len(source), 1), np.int64)
        return cls(ones, np.zeros_like(ones), ones, np.zeros_like(ones))

    def whole(self, axis: int) -> bool:
        """True if all windows span the whole axis."""
        return bool(
            (self.anchors[:, axis] == 0).all()
            and (self.extents[:, axis] == self.data[:, axis]).all()
        )

    def merged(self, fill_axis: int, *, only_whole: bool) -> _WindowAxes:
        """The same with whole axes made one with the axis outside of them, where memory allows it.

        With `only_whole`, that must be whole, too.
        """
        kept: list[list[np.ndarray]] = []
        fill_kept = -1
        inner_whole = False
        for axis in range(self.extents.shape[1] - 1, -1, -1):
            here = [a[:, axis] for a in (self.extents, self.anchors, self.data, self.strides)]
            whole = self.whole(axis)
            if kept and inner_whole and (whole or not only_whole):
                _, _, data, stride = kept[-1]
                apart = fill_axis >= 0 and (axis == fill_axis or len(kept) == fill_kept)
                if not apart and (here[3] == data * stride).all():
                    kept[-1] = [here[0] * data, here[1] * data, here[2] * data, stride]
                    inner_whole = whole
                    continue
            kept.append(here)
            inner_whole = whole
            if axis == fill_axis:
                fill_kept = len(kept)
        stacked = [np.stack(parts[::-1], axis=1) for parts in zip(*kept, strict=True)]
        found = len(kept) - fill_kept if fill_kept > 0 else -1
        return _WindowAxes(stacked[0], stacked[1], stacked[2], stacked[3], found)


@cache
def _record(outer: int) -> np.dtype:
    return followed(_WINDOW, ("axes", _AXIS, (outer,)))


def _launch(
    queue: Queue,
    axes: _WindowAxes,
    source: StridedBatch,
    target: DeviceBatch,
    function: Kernel,
    policy: np.int32,
    fill: np.uint64,
) -> None:
    extents = axes.extents
    last = extents.shape[1] - 1
    has_run = bool(last and axes.whole(last) and extents[:, last].max(initial=0) <= _LONGEST_RUN)
    x = last - 1 if has_run else last
    run = extents[:, last] if has_run else np.ones(len(extents), np.int64)
    row = extents[:, x] * run
    mean = int(row.sum()) // max(len(row), 1)
    lanes = 4
    while lanes < 32 and 4 * lanes < mean:
        lanes *= 2
    chunks = np.maximum(quotient_up(row, _CHUNK), 1)
    pieces = np.where(row > 0, extents[:, :x].prod(axis=1) * chunks, 0)
    per_block = THREADS // lanes * np.clip(_CHUNK // np.maximum(row, 1), 1, 8)
    records = np.empty(len(row), _record(x))
    records["per_block"] = per_block
    records["source"] = source.pointers
    records["target"] = target.pointers
    records["run"] = run
    records["run_stride"] = source.dtype.itemsize
    if has_run:
        np.copyto(records["run_stride"], axes.strides[:, last], where=run > 1)
    records["row"] = row
    records["chunks"] = chunks
    records["pieces"] = pieces
    for name, values in (
        ("extent", extents),
        ("anchor", axes.anchors),
        ("data", axes.data),
        ("stride", axes.strides),
    ):
        records["x"][name] = values[:, x]
        records["axes"][name] = values[:, :x]
    launch_records(
        queue,
        function,
        records,
        quotient_up(pieces, per_block),
        np.int32(x),
        np.uint32(lanes),
        policy,
        fill,
        np.int32(axes.fill_axis),
    )
