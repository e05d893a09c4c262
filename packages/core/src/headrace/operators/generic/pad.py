"""`pad`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from headrace.errors import ArgumentValueError, ShapeError
from headrace.kernels.cpu.fill import fill_of_type
from headrace.kernels.cpu.pad import pad_window
from headrace.kernels.gpu import window as _window_kernels
from headrace.operators.support.argument_types import FloatArg, IntListArg, LayoutArg
from headrace.operators.support.arguments import numbers_of
from headrace.operators.support.axes import checked_axes, named_axes
from headrace.operators.support.operator import (
    BatchContext,
    BatchOperator,
    Operator,
    SampleContext,
    SampleOperator,
    operator,
)
from headrace.operators.support.planning import PlanContext, Planned, Samples, plan_batch
from headrace.operators.support.rules import AXES_OR_NAMES
from headrace.operators.support.schema import Arg, Input, Spec
from headrace.operators.support.windows.partial_batch import strided_batch
from headrace.tensors.gpu.batch import LazyBatch
from headrace.tensors.rows import Rows
from headrace.types import to_numpy_type


@operator(
    "pad",
    inputs=Input("data", "Data of any layout, of one dimension or more."),
    args=(
        Arg(
            "align",
            IntListArg,
            None,
            "Padded extents are rounded up to multiples of this: one value for each padded axis, "
            "or one for all.",
            per_sample=True,
        ),
        Arg(
            "axes",
            IntListArg,
            None,
            "Axes to be padded; negative ones count from the last. An empty list, and not giving "
            "it, stand for all axes. Excludes `axis_names`.",
            per_sample=True,
        ),
        Arg("axis_names", LayoutArg, None, "Axes to be padded, as letters of the layout."),
        Arg("fill_value", FloatArg, 0.0, "Value of the elements that are added.", per_sample=True),
        Arg(
            "shape",
            IntListArg,
            None,
            "Extents to reach in the padded axes: one for each, or one for all. Samples that "
            "are larger stay as they are. A value of 0 or less stands for the largest extent "
            "in the batch, and so does not giving it.",
            per_sample=True,
        ),
    ),
    rules=(AXES_OR_NAMES,),
    output_docs=("The padded data, in the layout of the input.",),
)
class Pad(SampleOperator):
    """Adds elements at the end of axes, so that samples of a batch get the same extents.

    Without `shape` every padded axis becomes as long as that of the largest sample of the batch.

    `fill_value` is converted as in C: fractions are dropped, and what does not fit into the type
    of the data keeps its lowest bits.

    Examples
    --------
    >>> same = fn.pad(clips)
    >>> images = fn.pad(images, axis_names="HW", align=32, fill_value=127)
    """

    takes = (LazyBatch,)
    returns_lazy = (LazyBatch,)

    @classmethod
    def for_arguments(cls, args: dict[str, Any]) -> type[Operator]:
        """Without a positive `shape`, extents depend on other samples of the batch."""
        shape = args.get("shape")
        if isinstance(shape, int):
            shape = [shape]
        if not isinstance(shape, (list, tuple, np.ndarray)) or not len(shape):
            return BatchPad
        return BatchPad if any(int(extent) <= 0 for extent in shape) else cls

    def infer(self, data: Spec) -> Spec:
        if data.ndim == 0:
            raise ShapeError("Single numbers have no axes to be padded.")
        self._names = self.args.axis_names
        self._layout = data.layout
        self._numpy_type = np.dtype(to_numpy_type(data.dtype))
        self._fill = None
        if "fill_value" not in self.tensor_args:
            self._fill = fill_of_type([self.args.fill_value], self._numpy_type)
        if data.ndim is not None:
            self._check_constants(data.ndim)
        return data

    def _check_constants(self, ndim: int) -> None:
        """Raise what every sample would."""
        if "axes" in self.tensor_args:
            return
        constants = PlanContext(self.args, {}, (0,))
        count = len(self._axes(constants, ndim))
        for name in ("shape", "align"):
            if name not in self.tensor_args:
                _one_each(constants, 1, name, count)

    def _axes(self, c: PlanContext, ndim: int) -> Sequence[int]:
        """The axes that are padded, in all samples."""
        if self._names:
            return checked_axes(named_axes(self._names, self._layout), ndim)
        axes = c.args.axes
        if "axes" in self.tensor_args and axes is None:
            given = c.array("axes", np.int64)
            assert given is not None
            if (given != given[0]).any():
                raise ShapeError("Samples are padded along different axes.")
            axes = given[0].reshape(-1).tolist()
        return checked_axes(axes, ndim) if axes else range(ndim)

    unplanned = ("fill_value",)

    def plan(self, c: PlanContext, data: Samples, largest: Samples | None = None) -> Planned:
        """The shapes after padding; `largest` has the largest extents of the batch."""
        shapes = data.shapes.copy()
        size, ndim = shapes.shape
        axes = list(self._axes(c, ndim))
        own = shapes[:, axes]
        padded = own if largest is None else np.asarray(largest.rows[0])[axes]
        wanted = _one_each(c, size, "shape", len(axes))
        if wanted is not None:
            padded = np.where(wanted > 0, wanted, padded)
        padded = np.maximum(padded, own)
        align = _one_each(c, size, "align", len(axes))
        if align is not None:
            padded += -padded % align
        shapes[:, axes] = padded
        return Planned(shapes)

    def cpu(self, c: SampleContext, data: np.ndarray) -> np.ndarray:
        if c.shape == data.shape:
            return data
        fill = self._fill
        if fill is None:
            fill = fill_of_type([c.args.fill_value], self._numpy_type)
        out = c.out
        pad_window(data, (0,) * data.ndim, out, policy="constant", fill=fill)
        return out

    def gpu(self, c: BatchContext, data: LazyBatch) -> LazyBatch:
        largest = Samples([data.shapes.max(axis=0, initial=0)] * c.size)
        (shapes,) = plan_batch(self, c, data, largest).shapes
        if (shapes == data.shapes).all():
            return data
        source = strided_batch(c, data)
        out = c.empty(shapes, self._numpy_type)
        anchors = np.zeros_like(data.shapes)
        for some, fill in self._fills(c):
            _window_kernels.window(
                c.queue,
                source.taken(some),
                anchors[some],
                out.taken(some),
                policy="constant",
                fill=fill,
            )
        return out

    def _fills(self, c: BatchContext) -> Iterator[tuple[Any, np.ndarray]]:
        """Fill values of each sample."""
        if self._fill is not None:
            yield slice(None), self._fill
            return
        values = numbers_of(c, "fill_value", np.float32)
        for bits in np.unique(values.view(np.uint32)).tolist():
            members = np.flatnonzero(values.view(np.uint32) == bits)
            yield members, fill_of_type(values[members[:1]], self._numpy_type)


class BatchPad(BatchOperator, Pad):
    """Pads samples to the largest of their batch."""

    def reduce(self, c: Any, samples: Rows) -> np.ndarray:
        """The largest extents of the batch."""
        largest: np.ndarray = np.max(samples.shapes, axis=0)
        return largest

    def padding(self, shapes: np.ndarray, *reduced: Any) -> tuple[int, int]:
        """Elements before and after; where arguments differ by sample, that is not counted."""
        if self.tensor_args:
            return 0, 0
        constants = PlanContext(self.args, {}, range(len(shapes)))
        (padded,) = self.plan(constants, Samples(shapes=shapes), Samples(list(reduced))).shapes
        return int(shapes.prod(axis=1).sum()), int(np.asarray(padded).prod(axis=1).sum())

    def apply(self, c: SampleContext, data: np.ndarray, largest: np.ndarray) -> np.ndarray:
        """Pad one sample."""
        return Pad.cpu(self, c, data)


def _one_each(c: PlanContext, size: int, name: str, count: int) -> np.ndarray | None:
    """One value for each of `count` axes, or one for all, int64; `None` where there are none.

    One or as many columns, and a row for each of `size` samples.
    """
    values = c.array(name, np.int64)
    if values is None or not values.size:
        return None
    values = values[:size].reshape(size, -1)
    if values.shape[1] not in (1, count):
        raise ShapeError(
            f"`{name}` has {values.shape[1]} values, but {count} axes are padded. Give one for "
            "each of them, or one for all."
        )
    wrong = values <= 0
    if name == "align" and np.count_nonzero(wrong):
        raise ArgumentValueError(
            f"Values of `align` argument must be positive. Got {values[wrong][0]}."
        )
    return values
