"""`squeeze`."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

import numpy as np

from penstock.errors import ArgumentValueError, LayoutError, OutOfRangeError, ShapeError, UsageError
from penstock.operators.support.argument_types import IntListArg, LayoutArg
from penstock.operators.support.operator import (
    BatchContext,
    SampleContext,
    SampleOperator,
    operator,
)
from penstock.operators.support.schema import Arg, Input, Spec
from penstock.operators.support.windows.partial_batch import seen_through
from penstock.tensors.gpu.batch import DeviceBatch, LazyBatch, StridedBatch, volumes


@operator(
    "squeeze",
    inputs=Input("data", "Data of any rank and layout."),
    args=(
        Arg(
            "axes",
            IntListArg,
            None,
            "The axes to remove, counted from 0. Excludes `axis_names`.",
            per_sample=True,
        ),
        Arg("axis_names", LayoutArg, None, "The axes to remove, as letters of the layout."),
    ),
    output_docs=("The same elements, without the axes.",),
)
class Squeeze(SampleOperator):
    """Removes axes of extent 1.

    Axes of another extent can be removed from data without elements that stays without elements.

    Examples
    --------
    >>> planes = fn.squeeze(grey_images, axis_names="C")
    """

    def infer(self, data: Spec) -> Spec:
        names = self.args.axis_names
        if self.given("axes") == (names is not None):
            raise UsageError("Give the axes to remove either as `axes` or as `axis_names`.")
        if "axes" in self.tensor_args:
            # How many axes remain is told by the data.
            self._axes = None
            return Spec(data.dtype, None)
        axes = self.args.axes if names is None else _axes_named(names, data.layout)
        self._axes = _checked(axes, data.ndim)
        if data.ndim is None:
            return Spec(data.dtype, None)
        kept = [axis for axis in range(data.ndim) if axis not in self._axes]
        layout = "".join(data.layout[axis] for axis in kept) if data.layout else ""
        return Spec(data.dtype, len(kept), layout)

    def cpu(self, c: SampleContext, data: np.ndarray) -> np.ndarray:
        axes = self._axes
        if axes is None or self.tensor_args:
            axes = _checked(c.args.axes, data.ndim)
        return data.reshape(_without(axes, data.shape))

    takes = (StridedBatch,)
    returns_lazy = (LazyBatch,)

    def gpu(self, c: BatchContext, data: DeviceBatch | StridedBatch) -> LazyBatch:
        kept = self._kept(c, data.ndim)
        shapes = np.take_along_axis(data.shapes, kept, axis=1)
        wrong = volumes(shapes) != volumes(data.shapes)
        if wrong.any():
            index = int(np.flatnonzero(wrong)[0])
            axes = frozenset(range(data.ndim)) - frozenset(kept[index].tolist())
            try:
                _without(axes, tuple(data.shapes[index].tolist()))
            except ShapeError as error:
                raise c.located(error, index) from error
        if isinstance(data, DeviceBatch):
            return data.reshaped(shapes)
        return seen_through(data, shapes, np.take_along_axis(data.strides, kept, axis=1))

    def _kept(self, c: BatchContext, ndim: int) -> np.ndarray:
        """The axes that remain, ``(samples, axes)``."""
        if self._axes is not None:
            removed = _checked(list(self._axes), ndim)
            kept = [axis for axis in range(ndim) if axis not in removed]
            return np.broadcast_to(np.array(kept, np.int64), (c.size, len(kept)))
        found: list[list[int]] = []
        for index, asked in enumerate(c.values("axes")):
            try:
                axes = _checked(asked, ndim)
            except (ArgumentValueError, OutOfRangeError) as error:
                raise c.located(error, index) from error
            found.append([axis for axis in range(ndim) if axis not in axes])
        if len({len(kept) for kept in found}) > 1:
            counts = ", ".join(map(str, sorted({len(kept) for kept in found})))
            raise ShapeError(
                f"The samples of a batch come out with different numbers of axes ({counts}); "
                "`axes` must remove as many from each."
            )
        return np.array(found, np.int64).reshape(c.size, -1)


def _without(axes: Collection[int], shape: tuple[int, ...]) -> list[int]:
    """`shape` without some axes, which hold nothing."""
    rest = [extent for axis, extent in enumerate(shape) if axis not in axes]
    if math.prod(rest) != math.prod(shape):
        raise ShapeError(
            f"Only axes of extent 1 can be removed, but the axes {sorted(axes)} of data of "
            f"shape {shape} hold more."
        )
    return rest


def _axes_named(names: str, layout: str) -> list[int]:
    axes = []
    for letter in names:
        position = layout.find(letter)
        if position < 0:
            described = f'the layout "{layout}"' if layout else "data without a layout"
            raise LayoutError(
                f'`axis_names` is "{names}", but there is no axis "{letter}" in {described}.'
            )
        axes.append(position)
    return axes


def _checked(axes: Sequence[int], ndim: int | None) -> frozenset[int]:
    chosen = frozenset(axes)
    if len(chosen) != len(axes):
        raise ArgumentValueError(f"An axis is to be removed twice: {list(axes)}.")
    for axis in axes:
        if axis < 0 or (ndim is not None and axis >= ndim):
            last = "" if ndim is None else f", 0 to {ndim - 1}"
            raise OutOfRangeError(f"`axes` has {axis}, which is not an axis of the data{last}.")
    return chosen
