"""`squeeze`."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from penstock.errors import ArgumentValueError, LayoutError, OutOfRangeError, ShapeError, UsageError
from penstock.operators.argument_types import INTS, LAYOUT
from penstock.operators.operator import Operator, SampleContext, operator
from penstock.operators.schema import Arg, Input, Spec


@operator(
    "squeeze",
    inputs=Input("data", "Data of any rank and layout."),
    args=(
        Arg(
            "axes",
            INTS,
            None,
            "The axes to remove, counted from 0. Excludes `axis_names`.",
            per_sample=True,
        ),
        Arg("axis_names", LAYOUT, None, "The axes to remove, as letters of the layout."),
    ),
    output_docs=("The same elements, without the axes.",),
)
class Squeeze(Operator):
    """Removes axes of extent 1.

    Axes of another extent can be removed from data without elements that stays without elements.

    Examples
    --------
    >>> planes = fn.squeeze(grey_images, axis_names="C")
    """

    def infer(self, *inputs: Spec) -> Spec:
        data = inputs[0]
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

    def cpu(self, c: SampleContext, *inputs: np.ndarray) -> np.ndarray:
        data = inputs[0]
        axes = self._axes
        if axes is None or self.tensor_args:
            axes = _checked(c.args.axes, data.ndim)
        shape = [extent for axis, extent in enumerate(data.shape) if axis not in axes]
        if math.prod(shape) != data.size:
            raise ShapeError(
                f"Only axes of extent 1 can be removed, but the axes {sorted(axes)} of data of "
                f"shape {data.shape} hold more."
            )
        return data.reshape(shape)


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
