"""Resampling of the spatial axes of batches, and the pixels of them that are wanted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.kernels.cpu.resample_taps import Filter
from headrace.kernels.plan.compiled import compiled
from headrace.kernels.plan.resize_axes import AXIS
from headrace.tensors.gpu.batch import as_contiguous
from headrace.tensors.gpu.traced import traced
from headrace.tensors.gpu.tracked import empty_beside

if TYPE_CHECKING:
    from headrace.kernels.gpu.resample_taps import KeptTaps

_MOST_DERIVED = 64
_EACH_ITS_OWN = np.empty((0, 0), np.int32)


class AxesSampling:
    """Resampling of the spatial axes of a batch; immutable.

    All axes but the last are `stepwise`.

    Axes in common are the same in the next iterations, as long as sizes do not change. What is
    derived of them is remembered, and so are their taps in device memory.

    `table`: axes that there are, outermost first: `AXIS` ``(axes, samples)``. `index`: where
    samples have axes in common: `table` is ``(axes, n)``, and sample ``i`` has its columns
    ``index[:, i]``; int32.
    """

    __slots__ = ("_derived", "_shapes", "antialias", "are_copies", "index", "kept_taps", "table")

    def __init__(self, table: np.ndarray, antialias: bool, index: np.ndarray | None = None) -> None:
        self.table = table
        self.antialias = antialias
        self.index = index
        self._derived: dict[Any, AxesSampling] = {}
        self.are_copies = False
        """True if all outputs are known to equal their sources, pixel by pixel."""
        self._shapes: dict[tuple[tuple[int, ...], int], tuple[int, ...]] = {}
        self.kept_taps: list[KeptTaps] = []
        """The taps of axes in common, where they have been computed."""

    @classmethod
    def in_common(cls, table: np.ndarray, antialias: bool, count: int) -> AxesSampling:
        """The same axes, ``(axes, 1)``, for all of `count` samples."""
        return cls(table, antialias, np.zeros((len(table), count), np.int32))

    @property
    def rank(self) -> int:
        """Number of axes."""
        return len(self.table)

    @property
    def count(self) -> int:
        """Number of samples."""
        return (self.table if self.index is None else self.index).shape[1]

    @property
    def columns(self) -> np.ndarray:
        """`index`; without elements where each sample has axes of its own."""
        return _EACH_ITS_OWN if self.index is None else self.index

    def each(self, axis: int) -> np.ndarray:
        """Axis number `axis` of all samples, `AXIS` ``(samples,)``."""
        found = self.table[axis]
        return found if self.index is None else found[self.index[axis]]

    def window(self, anchors: np.ndarray, shapes: np.ndarray, first: int = 0) -> AxesSampling:
        """A window of the wanted pixels; it may leave the axes, whose borders are repeated
        there.

        `anchors`, `shapes`: where it begins and how far it goes, int64 ``(samples, ndim)``, or
        ``(1, ndim)`` for a window that all samples have in common.
        """
        anchors, shapes = as_contiguous(anchors), as_contiguous(shapes)
        if self.index is None or len(anchors) > 1:
            size = self.rank, self.count
            table = empty_beside(size, AXIS, self.table, anchors, shapes)
            _cut(self.table, self.columns, anchors, shapes, first, table)
            return AxesSampling(table, self.antialias)
        key = anchors.tobytes(), shapes.tobytes(), first
        found = self._derived.get(key)
        if found is None:
            table = np.empty_like(self.table)
            _cut(self.table, _EACH_ITS_OWN, anchors, shapes, first, table)
            found = self._remembered(key, AxesSampling(table, self.antialias, self.index))
        return found

    def flipped(self, axis: int, where: np.ndarray) -> AxesSampling:
        """The wanted pixels of `axis` in the opposite order, for samples where `where` is true."""
        if self.index is None:
            table = np.empty_like(self.table)
            _turn(self.table, axis, where, table)
            return AxesSampling(table, self.antialias)
        found = self._derived.get(axis)
        if found is None:
            turned = np.empty_like(self.table)
            _turn(self.table, axis, np.ones(self.table.shape[1], np.bool_), turned)
            both = np.concatenate((self.table, turned), axis=1)
            found = self._remembered(axis, AxesSampling(both, self.antialias, self.index))
        # The same axes, and their taps, with another choice among them.
        index = np.empty_like(self.index)
        _choose(self.index, axis, as_contiguous(where), self.table.shape[1], index)
        chosen = AxesSampling(found.table, self.antialias, index)
        chosen._derived, chosen.kept_taps = found._derived, found.kept_taps
        return chosen

    def _remembered(self, key: Any, made: AxesSampling) -> AxesSampling:
        if len(self._derived) >= _MOST_DERIVED:
            self._derived.clear()
        self._derived[key] = made
        return made

    def out_shapes(self, shapes: np.ndarray, first: int) -> tuple[np.ndarray, bool]:
        """Shapes of samples of `shapes`, int64 ``(samples, ndim)``, and whether they are all alike.

        Both have a single row where the samples of the one have a shape in common, and axes.
        """
        single = len(shapes) == 1 and self.index is not None and self.table.shape[1] == 1
        size = 1 if single else self.count, shapes.shape[1]
        found = empty_beside(size, np.int64, self.table, shapes)
        return found, _lengthen(self.table, self.columns, shapes, first, found)

    def common_shape(self, shape: tuple[int, ...], first: int) -> tuple[int, ...] | None:
        """The shape of all outputs, of samples of this one, if axes are the same for all."""
        if self.index is None or self.table.shape[1] != 1:
            return None
        found = self._shapes.get((shape, first))
        if found is None:
            rows, _ = self.out_shapes(np.array([shape], np.int64), first)
            found = self._shapes[shape, first] = tuple(rows[0].tolist())
        return found

    def keeps(self, axis: int) -> np.ndarray:
        """True if output pixels of `axis` are source pixels of the same number, ``(samples,)``."""
        found = self.each(axis)
        kept: np.ndarray = (
            (found["in_size"] == found["out_size"])
            & (found["start"] == 0)
            & (found["end"] == found["in_size"])
            & (found["filter"] <= Filter.CUBIC)
        )
        return kept


@traced
@compiled
def _cut(
    table: np.ndarray,
    index: np.ndarray,
    anchors: np.ndarray,
    shapes: np.ndarray,
    first: int,
    out: np.ndarray,
) -> None:
    for axis in range(out.shape[0]):
        for i in range(out.shape[1]):
            row = i if len(anchors) > 1 else 0
            out[axis, i] = table[axis, index[axis, i] if index.size else i]
            cut = out[axis, i]
            cut.begin += cut.step * anchors[row, first + axis]
            cut.length = shapes[row, first + axis]


@traced
@compiled
def _turn(table: np.ndarray, axis: int, where: np.ndarray, out: np.ndarray) -> None:
    for a in range(out.shape[0]):
        for i in range(out.shape[1]):
            out[a, i] = table[a, i]
    for i in range(out.shape[1]):
        if where[i]:
            turned = out[axis, i]
            turned.begin += turned.step * max(turned.length - 1, 0)
            turned.step = -turned.step


@traced
@compiled
def _choose(index: np.ndarray, axis: int, where: np.ndarray, further: int, out: np.ndarray) -> None:
    for a in range(index.shape[0]):
        for i in range(index.shape[1]):
            out[a, i] = index[a, i]
    for i in range(index.shape[1]):
        if where[i]:
            out[axis, i] += further


@traced
@compiled
def _lengthen(
    table: np.ndarray, index: np.ndarray, shapes: np.ndarray, first: int, out: np.ndarray
) -> bool:
    alike = True
    for i in range(out.shape[0]):
        for k in range(out.shape[1]):
            out[i, k] = shapes[i if len(shapes) > 1 else 0, k]
        for axis in range(table.shape[0]):
            column = index[axis, i] if index.size else i
            out[i, first + axis] = table[axis, column].length
        for k in range(out.shape[1]):
            alike &= out[i, k] == out[0, k]
    return alike
