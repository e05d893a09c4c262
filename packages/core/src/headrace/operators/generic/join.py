"""`cat` and `stack`: inputs joined along an axis, one that they have or a new one."""

from __future__ import annotations

from abc import abstractmethod
from typing import TYPE_CHECKING

import numpy as np

from headrace.errors import DataTypeError, LayoutError, ShapeError
from headrace.kernels.cpu import join as _cpu
from headrace.kernels.gpu import join as _gpu
from headrace.operators.support.argument_types import IntArg, StringArg
from headrace.operators.support.arguments import given
from headrace.operators.support.operator import (
    BatchContext,
    SampleContext,
    SampleOperator,
    operator,
)
from headrace.operators.support.planning import (
    SMALL_ELEMENTS,
    PlanContext,
    Planned,
    Samples,
    plan_batch,
)
from headrace.operators.support.rules import at_most_one
from headrace.operators.support.schema import Arg, Input, Spec

if TYPE_CHECKING:
    from headrace.tensors.gpu.batch import DeviceBatch


class Join(SampleOperator):
    """Base of the operators that put samples of their inputs one after the other."""

    new_axes: int
    """Number of axes that the output has beyond those of the inputs."""

    @abstractmethod
    def layout(self, first: Spec) -> str:
        """Layout of the output. Where the arguments name an axis, it is found here."""

    def infer(self, *inputs: Spec) -> Spec:
        name = self.args.axis_name
        if name is not None and len(name) != 1:
            raise LayoutError(
                f'Unsupported axis_name value: it must be a single character, got "{name}".'
            )
        first = inputs[0]
        for k, other in enumerate(inputs):
            if other.dtype != first.dtype or len({first.ndim, other.ndim} - {None}) > 1:
                raise DataTypeError(
                    "All inputs must have the same type and number of dimensions: input 0 has "
                    f"{first.dtype.name} and {first.ndim}, input {k} has {other.dtype.name} and "
                    f"{other.ndim}. `fn.cast`, `fn.expand_dims` and `fn.reshape` change them."
                )
        self._axis = self.args.axis or 0
        layout = self.layout(first)
        ndim = next((spec.ndim for spec in inputs if spec.ndim is not None), None)
        if ndim is None:
            return Spec(first.dtype, None)
        self._axis_of(ndim)
        return Spec(first.dtype, ndim + self.new_axes, layout)

    def _axis_of(self, ndim: int) -> int:
        """The axis of the output, counted from the front, for inputs of `ndim` dimensions."""
        axis, last = self._axis, ndim - 1 + self.new_axes
        if last < 0:
            raise ShapeError("Single numbers cannot be concatenated; `fn.stack` joins them.")
        if not -ndim <= axis <= last:
            raise ShapeError(
                f"Invalid `axis` argument, {axis}, for {ndim}-D data: it may be {-ndim} to {last}."
            )
        return axis if axis >= 0 else axis + ndim + self.new_axes

    plans_values = True

    def plan(self, c: PlanContext, *inputs: Samples) -> Planned:
        values = given(*[getattr(samples, "values", None) for samples in inputs])  # not on the GPU
        if len(values) == len(inputs):  # of one shape each
            axis, joined = self._joined([np.array(each.shape[1:], ndmin=2) for each in values])
            if joined.prod() <= SMALL_ELEMENTS:
                join = np.stack if self.new_axes else np.concatenate
                return Planned(values=join(values, axis + 1))
        return Planned(self._joined([samples.shapes for samples in inputs])[1])

    def _joined(self, shapes: list[np.ndarray]) -> tuple[int, np.ndarray]:
        """The axis, and shapes of the output, ``(samples, ndim)``, of those of the inputs."""
        first = shapes[0]
        ndim = first.shape[1]
        axis = self._axis_of(ndim)
        joined = np.empty((len(first), ndim + self.new_axes), np.int64)
        joined[:, :axis] = first[:, :axis]
        joined[:, axis] = len(shapes) if self.new_axes else first[:, axis]
        joined[:, axis + 1 :] = first[:, axis + 1 - self.new_axes :]
        for k, other in enumerate(shapes[1:], 1):
            if other.shape[1] != ndim:
                raise ShapeError(
                    f"All inputs must have the same number of dimensions: input 0 has {ndim}, "
                    f"input {k} {other.shape[1]}."
                )
            differ = other != first
            if not self.new_axes:
                differ[:, axis] = False
                joined[:, axis] += other[:, axis]
            if differ.any():
                sample = int(differ.any(axis=1).argmax())
                one, another = tuple(first[sample].tolist()), tuple(other[sample].tolist())
                allowed = "" if self.new_axes else f", but along axis {axis}"
                raise ShapeError(
                    f"The samples of all inputs must be of one shape{allowed}: that of input 0 is "
                    f"{one}, that of input {k} is {another}. `fn.resize`, `fn.crop` and `fn.pad` "
                    "change them."
                )
        return axis, joined

    def cpu(self, c: SampleContext, *inputs: np.ndarray) -> np.ndarray:
        axis = self._axis_of(inputs[0].ndim)
        if self.new_axes:
            inputs = tuple([np.expand_dims(data, axis) for data in inputs])
        if len(inputs) == 1:
            return inputs[0]
        out = c.out
        _cpu.join_into(inputs, axis, out)
        return out

    def gpu(self, c: BatchContext, *inputs: DeviceBatch) -> DeviceBatch:
        shapes = plan_batch(self, c, *inputs).shapes[0]
        if len(inputs) == 1:
            return inputs[0].reshaped(shapes)
        out = c.empty(shapes, inputs[0].dtype)
        _gpu.join(c.queue, inputs, self._axis_of(inputs[0].ndim), out)
        return out


@operator(
    "cat",
    inputs=Input("inputs", "Data of one type and rank; shapes may differ along the axis."),
    args=(
        Arg(
            "axis",
            IntArg,
            None,
            "Axis along which samples follow one another, 0 if not given; negative: counted from "
            "the last one.",
        ),
        Arg("axis_name", StringArg, None, "The same axis by its letter in the input's layout."),
    ),
    rules=(
        at_most_one("axis", "axis_name", said="`axis` and `axis_name` cannot be used together."),
    ),
    output_docs=("The joined data, in the layout of the first input.",),
    variadic=True,
)
class Cat(Join):
    """Joins the samples of all inputs along an axis that they have.

    Examples
    --------
    >>> side_by_side = fn.cat(left, right, axis_name="W")
    """

    new_axes = 0

    def layout(self, first: Spec) -> str:
        name = self.args.axis_name
        if name is not None:
            self._axis = first.layout.find(name)
            if self._axis < 0:
                raise LayoutError(
                    f'`axis_name` is "{name}", but there is no such axis in the layout '
                    f'"{first.layout}" of the first input. Give `axis`, or set the layout with '
                    "`fn.reshape(layout=...)`."
                )
        return first.layout


@operator(
    "stack",
    inputs=Input("inputs", "Data of one type; samples of one index have one shape in all inputs."),
    args=(
        Arg(
            "axis",
            IntArg,
            None,
            "Place of the new axis, 0 if not given. -1 puts it after all others, other negative "
            "numbers count from there.",
        ),
        Arg(
            "axis_name",
            StringArg,
            None,
            "Letter of the new axis in the output's layout, which has none without it.",
        ),
    ),
    output_docs=("The samples along a new axis.",),
    variadic=True,
)
class Stack(Join):
    """Joins the samples of all inputs along a new axis.

    Examples
    --------
    >>> pairs = fn.stack(left, right)
    >>> pixels = fn.stack(red, green, blue, axis=2, axis_name="C")
    """

    new_axes = 1

    def layout(self, first: Spec) -> str:
        name = self.args.axis_name
        if name is None or first.ndim is None:
            return ""
        if not first.layout and first.ndim:
            raise LayoutError(
                "Naming the new axis with `axis_name` requires that the first input has a layout; "
                "`fn.reshape(layout=...)` sets it."
            )
        axis = self._axis_of(first.ndim)
        return f"{first.layout[:axis]}{name}{first.layout[axis:]}"
