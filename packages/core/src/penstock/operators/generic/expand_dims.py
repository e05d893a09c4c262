"""`expand_dims`."""

from __future__ import annotations

import numpy as np

from penstock.errors import ArgumentValueError, LayoutError, OutOfRangeError
from penstock.operators.support.argument_types import IntListArg, LayoutArg
from penstock.operators.support.axes_operator import AxesOperator
from penstock.operators.support.operator import operator
from penstock.operators.support.planning import PlanContext
from penstock.operators.support.schema import REQUIRED, Arg, Input, Spec


@operator(
    "expand_dims",
    inputs=Input("data", "Data of any rank and layout."),
    args=(
        Arg("axes", IntListArg, REQUIRED, "Where the new axes are in the output, counted from 0."),
        Arg(
            "new_axis_names",
            LayoutArg,
            "",
            "Letters of the new axes, in the order of `axes`. Without them there is no layout.",
        ),
    ),
    output_docs=("The same elements, with more axes.",),
)
class ExpandDims(AxesOperator):
    """Inserts axes of extent 1.

    Examples
    --------
    >>> grey_images = fn.expand_dims(planes, axes=[2], new_axis_names="C")
    """

    def infer(self, data: Spec) -> Spec:
        axes, names = self.args.axes, self.args.new_axis_names
        if len(set(axes)) != len(axes):
            raise ArgumentValueError(f"`axes` has an axis more than once: {list(axes)}.")
        if any(axis < 0 for axis in axes):
            raise OutOfRangeError(f"`axes` must not be negative, got {list(axes)}.")
        if names and len(names) != len(axes):
            raise ArgumentValueError(
                f"`new_axis_names` must have a letter for each of the {len(axes)} new axes, got "
                f'"{names}".'
            )
        if data.ndim is None:
            return Spec(data.dtype, None)
        self._checked_axes(data.ndim)
        ndim = data.ndim + len(axes)
        if not axes:
            return data
        if not names:
            return Spec(data.dtype, ndim)
        if data.ndim and not data.layout:
            raise LayoutError(
                "`new_axis_names` needs data that has a layout; set one with "
                "`fn.reshape(..., layout=...)`."
            )
        letters = list(data.layout)
        for axis, letter in sorted(zip(axes, names, strict=True)):
            letters.insert(axis, letter)
        return Spec(data.dtype, ndim, "".join(letters))

    def axes(self, c: PlanContext, shapes: np.ndarray) -> np.ndarray:
        ndim = shapes.shape[1]
        new = self._checked_axes(ndim)
        found = np.full((1, ndim + len(new)), -1, np.int64)
        kept = [axis for axis in range(found.size) if axis not in new]
        found[0, kept] = range(ndim)
        return found

    def _checked_axes(self, ndim: int) -> tuple[int, ...]:
        axes: tuple[int, ...] = self.args.axes
        last = ndim + len(axes) - 1
        if any(axis > last for axis in axes):
            raise OutOfRangeError(
                f"`axes` must lie in the output, which has axes 0 to {last}, got {list(axes)}."
            )
        return axes
