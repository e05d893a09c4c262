"""Which source pixels make an output pixel, for all axes of a batch at once.

The twin of `penstock.kernels.cpu.resample_taps`, with the same rules and the same arithmetic: the
host works out how each axis is sampled, the device what that means for each output pixel.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from penstock.kernels.cpu.resample_taps import Filter, filter_table
from penstock.kernels.gpu.program import kernel

if TYPE_CHECKING:
    from penstock.tensors.gpu.queue import Queue

_THREADS = 64
_WITH_TABLES = [kind for kind in Filter if kind != Filter.NEAREST]
_ONE, _HALF = np.float32(1), np.float32(0.5)

_AXIS = np.dtype(
    [
        ("first", np.uint64),
        ("weights", np.uint64),
        ("table", np.int32),
        ("start", np.float32),
        ("scale", np.float32),
        ("units", np.float32),
        ("last", np.int32),
        ("support", np.int32),
        ("taps", np.int32),
        ("in_size", np.int32),
        ("begin", np.int32),
        ("step", np.int32),
        ("length", np.int32),
        ("stepwise", np.int32),
    ],
    align=True,
)


@dataclass(frozen=True, slots=True)
class AxesSampling:
    """How the spatial axes of a batch are resampled, and which pixels of them are wanted.

    All arrays are ``(axes, samples)``, outermost axis first. The first six attributes are those of
    `penstock.kernels.cpu.resample_taps.AxisSampling`; axes but the last are `stepwise`.

    Attributes
    ----------
    begin
        The first output pixel that is wanted; int64.
    length
        How many are wanted.
    step
        1, or -1 for pixels in the opposite order.
    """

    in_size: np.ndarray
    out_size: np.ndarray
    start: np.ndarray
    end: np.ndarray
    filter: np.ndarray
    antialias: bool
    begin: np.ndarray
    length: np.ndarray
    step: np.ndarray

    @classmethod
    def whole(
        cls,
        in_size: np.ndarray,
        out_size: np.ndarray,
        start: np.ndarray,
        end: np.ndarray,
        filters: np.ndarray,
        antialias: bool,
    ) -> AxesSampling:
        """All pixels of each axis."""
        begin = np.zeros_like(out_size)
        step = np.ones_like(out_size)
        return cls(in_size, out_size, start, end, filters, antialias, begin, out_size, step)

    def window(self, anchors: np.ndarray, lengths: np.ndarray) -> AxesSampling:
        """`lengths` of the wanted pixels, from number `anchors` on, both ``(axes, samples)``.

        They may go beyond the axis, whose border is repeated there.
        """
        return replace(self, begin=self.begin + self.step * anchors, length=lengths)

    def flipped(self, axis: int, where: np.ndarray) -> AxesSampling:
        """The wanted pixels of `axis` in the opposite order, for samples where `where` is true."""
        begin, step = self.begin.copy(), self.step.copy()
        last = step[axis] * np.maximum(self.length[axis] - 1, 0)
        begin[axis] += np.where(where, last, 0)
        step[axis] = np.where(where, -step[axis], step[axis])
        return replace(self, begin=begin, step=step)

    def keeps(self) -> np.ndarray:
        """Whether output pixels of each axis are source pixels of the same number, all alike.

        ``(axes, samples)``.
        """
        return (  # type: ignore[no-any-return]
            (self.in_size == self.out_size)
            & (self.start == 0)
            & (self.end == self.in_size)
            & (self.filter <= Filter.CUBIC)
        )

    def copies(self) -> bool:
        """Whether all outputs are their sources, pixel by pixel."""
        if (self.in_size != self.length).any():
            return False
        whole = (self.begin == 0) & (self.length == self.out_size) & (self.step == 1)
        return bool((self.keeps() & whole).all())


class Taps(NamedTuple):
    """Source pixels and weights, in device memory once the work is done; ``(axes, samples)``."""

    first: np.ndarray
    """Address of the first source pixel of each output pixel, int32; uint64."""
    weights: np.ndarray
    """Address of the weights of this and the following pixels, float32; uint64."""
    taps: np.ndarray
    """How many weights an output pixel has; int64."""


class Filters(NamedTuple):
    """Numbers of each sampled axis that its filter depends on; see the CPU's `_taps`."""

    scale: np.ndarray
    """Source pixels an output pixel, negative where the axis is flipped; float32."""
    start: np.ndarray
    """Where the region begins or, for filters, where the leftmost tap of pixel 0 is; float32."""
    units: np.ndarray
    """Steps of the filter's table a source pixel; float32."""
    support: np.ndarray
    """Source pixels under the filter; int64."""
    taps: np.ndarray
    """The same, as far as the axis has them."""


def filters(axes: AxesSampling) -> Filters:
    """The numbers that describe the filter of each axis."""
    kind = axes.filter
    last, half_width, _ = _tables()
    if (kind == kind[0, 0]).all():
        kind = kind[:1, :1]
    out_size = np.maximum(axes.out_size, 1).astype(np.float32)
    extent = axes.end - axes.start
    scale = extent / out_size
    radius = half_width[kind]
    if axes.antialias:
        radius = radius * np.maximum(_ONE, np.abs(extent) / out_size)
    width = np.float32(2) * radius
    gaussian = kind == Filter.GAUSSIAN
    if gaussian.any():
        # By way of its standard deviation, as the rounding of that counts.
        deviation = (radius.astype(np.float64) * 0.5 / np.sqrt(2)).astype(np.float32)
        width = np.where(gaussian, np.float32(4 * np.sqrt(2)) * deviation, width)
    steps = last[kind]
    units = steps / width
    anchor = _HALF * steps / units
    start = axes.start + ((_HALF * scale - _HALF) - anchor)
    support = np.ceil(width).astype(np.int64)
    nearest = kind == Filter.NEAREST
    if nearest.any():
        start = np.where(nearest, axes.start, start)
        support = np.where(nearest, 1, support)
    return Filters(scale, start, units, support, np.minimum(support, axes.in_size))


def axes_taps(queue: Queue, axes: AxesSampling) -> Taps:
    """Queue the computation of the taps of all wanted pixels, in one launch."""
    found = filters(axes)
    last, _, tables = _tables()
    kind, length = axes.filter, axes.length
    sizes = length * 4
    ends = np.cumsum(sizes).reshape(sizes.shape)
    weight_sizes = sizes * found.taps
    weight_ends = np.cumsum(weight_sizes).reshape(sizes.shape)
    weights_bytes = int(weight_ends[-1, -1])
    memory = queue.scratch(weights_bytes + int(ends[-1, -1]))
    weights = (memory + weight_ends - weight_sizes).astype(np.uint64)
    first = (memory + weights_bytes + ends - sizes).astype(np.uint64)
    # Tables and records go up together.
    uploaded = np.empty(tables.nbytes + length.size * _AXIS.itemsize, np.uint8)
    uploaded[: tables.nbytes] = tables.view(np.uint8)
    records = uploaded[tables.nbytes :].view(_AXIS).reshape(length.shape)
    records["first"] = first
    records["weights"] = weights
    records["table"] = _table_offsets()[kind]
    records["start"] = found.start
    records["scale"] = found.scale
    records["units"] = found.units
    records["last"] = last[kind]
    records["support"] = found.support
    records["taps"] = found.taps
    records["in_size"] = axes.in_size
    records["begin"] = axes.begin
    records["step"] = axes.step
    records["length"] = length
    records["stepwise"] = 1
    records["stepwise"][-1] = 0
    address = queue.upload(uploaded)
    queue.launch(
        kernel("resample_taps.cu", "resample_taps"),
        (length.size, -(-int(length.max(initial=0)) // _THREADS), 1),
        (_THREADS, 1, 1),
        address + np.uint64(tables.nbytes),
        address,
    )
    return Taps(first, weights, found.taps)


@cache
def _tables() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """By filter: number of the last entry and half width; and the entries of all of them."""
    last = np.ones(len(Filter), np.float32)
    half_width = np.ones(len(Filter), np.float32)
    entries = []
    for kind in _WITH_TABLES:
        table, radius = filter_table(kind)
        last[kind], half_width[kind] = len(table) - 1, radius
        entries.append(table)
    entries.append(np.zeros(-sum(map(len, entries)) % 4, np.float32))  # records are aligned
    return last, half_width, np.concatenate(entries)


@cache
def _table_offsets() -> np.ndarray:
    """By filter: with which entry its table begins; -1 for nearest neighbours."""
    offsets, at = np.full(len(Filter), -1, np.int32), 0
    for kind in _WITH_TABLES:
        offsets[kind] = at
        at += len(filter_table(kind)[0])
    return offsets
