"""`expand_dims`."""

from __future__ import annotations

import numpy as np

from headrace.errors import ArgumentValueError, LayoutError, OutOfRangeError
from headrace.operators.support.argument_types import IntListArg, LayoutArg
from headrace.operators.support.axes_operator import AxesOperator
from headrace.operators.support.operator import operator
from headrace.operators.support.planning import PlanContext
from headrace.operators.support.schema import REQUIRED, Arg, Input, Spec


@operator(
    "expand_dims",
    inputs=Input("data", "Data of any rank and layout."),
    args=(
        Arg(
            "axes", IntListArg, REQUIRED, "Positions of the new axes in the output, counted from 0."
        ),
        Arg(
            "new_axis_names",
            LayoutArg,
            None,
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

    def check_constants(self) -> None:
        axes, names = self.args.axes, self.args.new_axis_names
        if any(axis < 0 for axis in axes):
            raise OutOfRangeError(f"Axis value can't be negative: `axes` is {list(axes)}.")
        if names and len(names) != len(axes):
            raise ArgumentValueError(
                f"Specified {len(axes)} new dimensions, but layout contains only {len(names)} new "
                f'dimension names: `new_axis_names` is "{names}", `axes` is {list(axes)}.'
            )
        if len(set(axes)) != len(axes):
            raise ArgumentValueError(f"`axes` has an axis more than once: {list(axes)}.")

    def infer(self, data: Spec) -> Spec:
        axes, names = self.args.axes, self.args.new_axis_names
        if data.ndim is None:
            return Spec(data.dtype, None)
        self._checked_axes(data.ndim)
        ndim = data.ndim + len(axes)
        if names is not None and data.ndim and not data.layout:
            raise LayoutError(
                "Specifying ``new_axis_names`` requires an input with a proper layout. Set one "
                "with `fn.reshape(..., layout=...)`, or leave the argument out."
            )
        if not axes:
            return data
        if not names:
            return Spec(data.dtype, ndim)
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
                f"`axes` must lie in the output, which has axes 0 to {last}, got {list(axes)}: the "
                "data has not enough dimensions to add new axes at specified indices."
            )
        return axes
