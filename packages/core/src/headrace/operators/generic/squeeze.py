"""`squeeze`."""

from __future__ import annotations

import math

import numpy as np

from headrace.errors import ArgumentValueError, OutOfRangeError, ShapeError
from headrace.operators.support.argument_types import IntListArg, LayoutArg
from headrace.operators.support.arguments import rows_of
from headrace.operators.support.axes import named_axes
from headrace.operators.support.axes_operator import AxesOperator
from headrace.operators.support.operator import operator
from headrace.operators.support.planning import PlanContext
from headrace.operators.support.rules import at_least_one, at_most_one
from headrace.operators.support.schema import Arg, Input, Spec
from headrace.tensors.gpu.batch import volumes


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
    rules=(
        at_most_one(
            *("axes", "axis_names"), said="Provided both ``axes`` and ``axis_names`` arguments."
        ),
        at_least_one("axes", "axis_names"),
    ),
    output_docs=("The same elements, without the axes.",),
)
class Squeeze(AxesOperator):
    """Removes axes of extent 1.

    Axes of another extent can be removed from data without elements that stays without elements.

    Examples
    --------
    >>> planes = fn.squeeze(grey_images, axis_names="C")
    """

    def infer(self, data: Spec) -> Spec:
        names = self.args.axis_names
        if "axes" in self.tensor_args:
            # How many axes remain is told by the data.
            self._axes = None
            return Spec(data.dtype, None)
        axes = self.args.axes if names is None else named_axes(names, data.layout)
        self._axes = np.array([axes], np.int64)
        kept = _kept(self._axes, data.ndim)
        if kept is None:
            return Spec(data.dtype, None)
        layout = "".join(data.layout[axis] for axis in kept[0]) if data.layout else ""
        return Spec(data.dtype, kept.shape[1], layout)

    def axes(self, c: PlanContext, shapes: np.ndarray) -> np.ndarray:
        removed = self._axes
        if removed is None:
            removed = rows_of(c, "axes", np.int64)
        kept = _kept(removed, shapes.shape[1])
        assert kept is not None
        wrong = volumes(np.take_along_axis(shapes, kept, axis=1)) != volumes(shapes)
        for k in np.flatnonzero(wrong)[:1].tolist():
            axes = removed[k if len(removed) > 1 else 0].tolist()
            own, new = (
                math.prod(shapes[k].tolist()),
                math.prod(shapes[k, kept[k % len(kept)]].tolist()),
            )
            raise ShapeError(
                f"Only axes of extent 1 can be removed, but the axes {sorted(axes)} of data of "
                f"shape {tuple(shapes[k].tolist())} hold more. Requested a shape with {new} "
                f"elements but the original shape has {own} elements."
            )
        return kept


def _kept(removed: np.ndarray, ndim: int | None) -> np.ndarray | None:
    """The axes that remain without those `removed`, int64 ``(samples, axes)`` both.

    `None` where `ndim` is not known.
    """
    ordered = np.sort(removed, axis=1)
    for axes in removed[(ordered[:, 1:] == ordered[:, :-1]).any(axis=1)][:1].tolist():
        raise ArgumentValueError(f"Specified at least twice same dimension to remove. Got {axes}.")
    wrong = (removed < 0) | (False if ndim is None else removed >= ndim)
    for axis in removed[wrong][:1].tolist():
        last = "" if ndim is None else f", 0 to {ndim - 1}"
        raise OutOfRangeError(f"`axes` has {axis}, which is not an axis of the data{last}.")
    if ndim is None:
        return None
    kept = np.ones((len(removed), ndim), np.bool_)
    np.put_along_axis(kept, removed, False, axis=1)
    return np.nonzero(kept)[1].reshape(len(kept), ndim - removed.shape[1])
