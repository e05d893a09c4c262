"""`pad`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import SimpleNamespace
from typing import Any, overload

import numpy as np

from penstock.errors import ArgumentValueError, ShapeError, UsageError
from penstock.kernels.cpu.fill import fill_of_type
from penstock.kernels.cpu.pad import pad_window
from penstock.operators.support.argument_types import FloatArg, IntListArg, LayoutArg
from penstock.operators.support.arguments import scalars, vectors
from penstock.operators.support.axes import checked_axes, named_axes
from penstock.operators.support.operator import (
    BatchContext,
    BatchOperator,
    Operator,
    SampleContext,
    SampleOperator,
    operator,
)
from penstock.operators.support.schema import Arg, Input, Spec
from penstock.operators.support.windows.partial_batch import strided_batch
from penstock.tensors.gpu.batch import DeviceBatch, LazyBatch, StridedBatch
from penstock.types import to_numpy_type

_Shape = tuple[int, ...]


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
        if self.given("axes") and self.given("axis_names"):
            raise UsageError("`axes` and `axis_names` exclude each other; give one of them.")
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
        args = self.args
        if "axes" in self.tensor_args:
            return
        count = len(self._axes(args, ndim))
        for name in ("shape", "align"):
            if name not in self.tensor_args:
                _one_each(name, getattr(args, name), count)
        for value in args.align or ():
            _check_align(value)

    def _axes(self, args: Any, ndim: int) -> Sequence[int]:
        if self._names:
            return checked_axes(named_axes(self._names, self._layout), ndim)
        return checked_axes(args.axes, ndim) if args.axes else range(ndim)

    def _padded(self, args: Any, shape: _Shape, largest: _Shape | None) -> _Shape:
        """The shape after padding; `largest` are the largest extents in the batch."""
        axes = self._axes(args, len(shape))
        wanted = _one_each("shape", args.shape, len(axes))
        align = _one_each("align", args.align, len(axes))
        padded = list(shape)
        for k, axis in enumerate(axes):
            extent = wanted[k] if wanted else 0
            if extent <= 0:
                assert largest is not None
                extent = largest[axis]
            extent = max(extent, shape[axis])
            if align:
                _check_align(align[k])
                extent += -extent % align[k]
            padded[axis] = extent
        return tuple(padded)

    def _fill_for(self, args: Any) -> np.ndarray:
        if self._fill is not None:
            return self._fill
        return fill_of_type([args.fill_value], self._numpy_type)

    def cpu(self, c: SampleContext, data: np.ndarray) -> np.ndarray:
        return self.padded(c, data, None)

    def padded(self, c: SampleContext, data: np.ndarray, largest: _Shape | None) -> np.ndarray:
        """`data` with what is added; `largest` are the largest extents in the batch."""
        shape = self._padded(c.args, data.shape, largest)
        if shape == data.shape:
            return data
        out = c.empty(shape, self._numpy_type)
        self._move(c.args, data, out)
        return out

    def _move(self, args: Any, data: np.ndarray, out: np.ndarray) -> None:
        fill = self._fill_for(args)
        pad_window(data, (0,) * data.ndim, out, policy="constant", fill=fill)

    def gpu(self, c: BatchContext, data: LazyBatch) -> LazyBatch:
        from penstock.kernels.gpu.window import window

        shapes = self._padded_shapes(c, data.shapes)
        if (shapes == data.shapes).all():
            return data
        source = strided_batch(c, data)
        out = c.empty(shapes, self._numpy_type)
        anchors = np.zeros_like(data.shapes)
        for some, fill in self._fills(c):
            window(
                c.queue,
                _samples(source, some),
                anchors[some],
                _samples(out, some),
                policy="constant",
                fill=fill,
            )
        return out

    def _fills(self, c: BatchContext) -> Iterator[tuple[Any, np.ndarray]]:
        """Which samples are filled with what."""
        if self._fill is not None:
            yield slice(None), self._fill
            return
        values = scalars(c, "fill_value", np.float32)
        assert values is not None
        for bits in np.unique(values.view(np.uint32)).tolist():
            members = np.flatnonzero(values.view(np.uint32) == bits)
            yield members, fill_of_type(values[members[:1]].tolist(), self._numpy_type)

    def _padded_shapes(self, c: BatchContext, extents: np.ndarray) -> np.ndarray:
        """Shapes of all samples after padding, int64 ``(samples, ndim)``."""
        largest = extents.max(axis=0, initial=0)
        if "axes" not in self.tensor_args:
            axes = list(self._axes(c.args, extents.shape[1]))
            wanted = self._each(c, "shape", len(axes), 0)
            align = self._each(c, "align", len(axes), 1)
            if wanted is not None and align is not None and (align > 0).all():
                padded = np.maximum(np.where(wanted > 0, wanted, largest[axes]), extents[:, axes])
                shapes = extents.copy()
                shapes[:, axes] = padded + -padded % align
                return shapes
        names = ("shape", "align", "axes")
        columns = zip(*(c.values(name) for name in names), strict=True)
        shapes = np.empty_like(extents)
        for index, values in enumerate(columns):
            args = SimpleNamespace(**dict(zip(names, values, strict=True)))
            own = tuple(extents[index].tolist())
            try:
                shapes[index] = self._padded(args, own, tuple(largest.tolist()))
            except Exception as error:
                raise c.located(error, index) from error
        return shapes

    def _each(self, c: BatchContext, name: str, count: int, default: int) -> np.ndarray | None:
        """An argument with one value for each axis; `None` if samples have to be looked at."""
        if not self.given(name) or (name not in self.tensor_args and not getattr(c.args, name)):
            return np.full((1, count), default, np.int64)
        return vectors(c, name, count, np.int64, repeat=True)


class BatchPad(BatchOperator):
    """Pads samples to the largest of their batch."""

    takes = Pad.takes
    returns_lazy = Pad.returns_lazy

    def __init__(self, args: dict[str, Any], tensor_args: dict[str, Spec] | None = None) -> None:
        super().__init__(args, tensor_args)
        self._each = Pad(args, tensor_args)

    def infer(self, data: Spec) -> Spec:
        return self._each.infer(data)

    def reduce(self, c: Any, samples: Sequence[np.ndarray]) -> np.ndarray:
        """The largest extents of the batch."""
        largest: np.ndarray = np.max([data.shape for data in samples], axis=0)
        return largest

    def apply(self, c: SampleContext, data: np.ndarray, largest: np.ndarray) -> np.ndarray:
        """Pad one sample."""
        return self._each.padded(c, data, tuple(largest.tolist()))

    def gpu(self, c: BatchContext, data: LazyBatch) -> LazyBatch:
        return self._each.gpu(c, data)


BatchPad.schema = Pad.schema


def _one_each(name: str, values: Sequence[int] | None, count: int) -> Sequence[int] | None:
    """One value for each axis, of as many or of one; `None` where nothing is given."""
    if not values:
        return None
    if len(values) == 1:
        return [values[0]] * count
    if len(values) != count:
        raise ShapeError(
            f"`{name}` has {len(values)} values, but {count} axes are padded. Give one for each of "
            "them, or one for all."
        )
    return values


def _check_align(value: int) -> None:
    if value <= 0:
        raise ArgumentValueError(f"`align` must be positive, got {value}.")


@overload
def _samples(batch: StridedBatch, some: Any) -> StridedBatch: ...
@overload
def _samples(batch: DeviceBatch, some: Any) -> DeviceBatch: ...
def _samples(batch: StridedBatch | DeviceBatch, some: Any) -> StridedBatch | DeviceBatch:
    """Some samples of a batch."""
    pointers, shapes = batch.pointers[some], batch.shapes[some]
    if isinstance(batch, DeviceBatch):
        return DeviceBatch(batch.runtime, batch.owners, pointers, shapes, batch.dtype)
    strides = batch.strides[some]
    return StridedBatch(batch.runtime, batch.owners, pointers, shapes, strides, batch.dtype)
