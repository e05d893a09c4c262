"""The operators behind ``node[...]``."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import numpy as np

from headrace.errors import ArgumentValueError, DataTypeError, OutOfRangeError, ShapeError
from headrace.operators.support.argument_types import IntArg
from headrace.operators.support.arguments import scalars
from headrace.operators.support.operator import (
    BatchContext,
    SampleContext,
    SampleOperator,
    operator,
)
from headrace.operators.support.planning import PlanContext, Planned, Samples
from headrace.operators.support.schema import REQUIRED, Arg, Input, Spec, data_types
from headrace.operators.support.windows.arithmetic import FARTHEST
from headrace.operators.support.windows.subscript_batch import Subscripted, clipped
from headrace.tensors.gpu.batch import DeviceBatch, LazyBatch, StridedBatch
from headrace.types import DALIDataType

MAX_SUBSCRIPTS = 32
_PARTS = ("at", "lo", "hi", "step")
_INTEGERS = data_types("UINT8 UINT16 UINT32 UINT64 INT8 INT16 INT32 INT64")

Index = int | slice


def _subscript_args() -> list[Arg]:
    docs = {
        "at": "Index along axis {}, which is then gone.",
        "lo": "Where the range along axis {} begins.",
        "hi": "Where the range along axis {} ends, not included.",
        "step": "Step of the range along axis {}.",
    }
    return [
        Arg(f"{part}_{axis}", IntArg, None, docs[part].format(axis), per_sample=True)
        for axis in range(MAX_SUBSCRIPTS)
        for part in _PARTS
    ]


@operator(
    "_tensor_subscript",
    inputs=Input("data", "Data to take a part of."),
    args=(
        *_subscript_args(),
        Arg(
            "num_subscripts",
            IntArg,
            None,
            "How many axes are subscripted; by default up to the last one with an argument.",
        ),
    ),
    hidden=True,
    written="[...]",
)
class TensorSubscript(SampleOperator):
    """Take the part of each sample that Python's indexing would take, as a view.

    Subscript number `i`, counted without new axes, becomes arguments:

    * an integer: ``at_i``;
    * a slice: those of ``lo_i``, ``hi_i``, ``step_i`` that are not `None`;
    * a full slice ``:``: nothing.

    Each may be a number or an integer tensor without axes, with a value for each sample.
    `num_subscripts` is the number of subscripts, which tells of full slices at the end.
    ``x[1, :, a:]``
    is ``_tensor_subscript(x, at_0=1, lo_2=a, num_subscripts=3)``. New axes are put in afterwards by
    `expand_dims`; where there are nothing but full slices and new axes, `_subscript_dim_check`
    takes the place of this operator.
    """

    def infer(self, data: Spec) -> Spec:
        self.axes: list[tuple[int, tuple[str, ...]]] = []
        """Subscripted axes with the names of their arguments."""
        for axis in range(MAX_SUBSCRIPTS):
            names = tuple(n for p in _PARTS if self.given(n := f"{p}_{axis}"))
            if names:
                self._check(axis, names)
                self.axes.append((axis, names))
        used = 1 + max((axis for axis, _ in self.axes), default=-1)
        self.count = max(used, self.args.num_subscripts or 0)
        removed = [axis for axis, names in self.axes if names[0].startswith("at_")]
        self.fixed = None if self.tensor_args else self._index(self.args)
        if data.ndim is None:
            return Spec(data.dtype, None)
        _check_count(self.count, data.ndim)
        layout = "".join(a for i, a in enumerate(data.layout) if i not in removed)
        return Spec(data.dtype, data.ndim - len(removed), layout)

    def _check(self, axis: int, names: Sequence[str]) -> None:
        if len(names) > 1 and names[0].startswith("at_"):
            raise ArgumentValueError(
                f"Axis {axis} has both an index, `{names[0]}`, and a range, `{names[1]}`."
            )
        for name in names:
            spec = self.tensor_args.get(name)
            if spec is None:
                continue
            if spec.dtype not in _INTEGERS:
                raise DataTypeError(
                    f"Indices must have an integer type; that of axis {axis} has "
                    f"{spec.dtype.name}. `fn.cast` converts it."
                )
            if spec.ndim not in (0, None):
                raise ShapeError(
                    f"Indices must be scalars; that of axis {axis} has {spec.ndim} axes. Take an "
                    "element of it, as in `index[0]`."
                )
        if getattr(self.args, f"step_{axis}") == 0:
            raise _zero_step(axis)

    def _index(self, args: Any) -> tuple[Any, ...]:
        index: list[Any] = [slice(None)] * self.count
        for axis, names in self.axes:
            if names[0].startswith("at_"):
                index[axis] = getattr(args, names[0])
                continue
            step = getattr(args, f"step_{axis}")
            if step == 0:
                raise _zero_step(axis)
            index[axis] = slice(getattr(args, f"lo_{axis}"), getattr(args, f"hi_{axis}"), step)
        # The ellipsis makes NumPy return an array where no axis is left, not a scalar.
        return (*index, ...)

    plans_values = True
    needs_plan = False

    def plan(self, c: PlanContext, data: Samples) -> Planned | None:
        values = data.values
        if values is None:
            return None
        if self.fixed is not None:
            return Planned(values=values[(slice(None), *self.fixed)])
        index = list(self._index(c.args))
        for axis, names in self.axes:
            if not self.tensor_args.keys().isdisjoint(names):
                if not names[0].startswith("at_"):
                    return None  # samples differ in shape
                # Numbers that NumPy itself refuses need no cutting off.
                unsigned = self.tensor_args[names[0]].dtype == DALIDataType.UINT64
                index[axis] = (
                    self._numbers(c, names[0]) if unsigned else scalars(c, names[0], np.int64)
                )
        at = index[0] if len(index) == 2 else None
        if isinstance(at, np.ndarray) and not values.strides[0]:  # a table that all samples share
            return Planned(values=values[0].take(at, axis=0))
        return Planned(values=values[(np.arange(len(values)), *index)])

    def cpu(self, c: SampleContext, data: np.ndarray) -> np.ndarray:
        index = self.fixed if self.fixed is not None else self._index(c.args)
        try:
            return data[index]  # type: ignore[no-any-return]
        except (IndexError, OverflowError):
            _check_count(self.count, data.ndim)
            _check_index(index, data.shape)
            raise

    takes = (StridedBatch,)
    returns_lazy = (LazyBatch,)

    def gpu(self, c: BatchContext, batch: DeviceBatch | StridedBatch) -> LazyBatch:
        data = StridedBatch.of(batch)
        _check_count(self.count, data.ndim)
        wrong = np.zeros(c.size, np.bool_)
        found = Subscripted(data)
        for axis, names in self.axes:
            extent = data.shapes[:, axis]
            if names[0].startswith("at_"):
                index = self._numbers(c, names[0])
                assert index is not None
                wrong |= (index < -extent) | (index >= extent)
                found.pick(axis, index)
                continue
            step = self._numbers(c, f"step_{axis}")
            if step is not None:
                wrong |= step == 0
                step = np.where(step == 0, 1, step)
            low, high = (self._numbers(c, f"{part}_{axis}") for part in ("lo", "hi"))
            found.span(axis, low, high, step)
        if wrong.any():
            self._refuse(c, int(np.flatnonzero(wrong)[0]), data.shapes)
        return found.view()

    def _numbers(self, c: PlanContext, name: str) -> np.ndarray | None:
        """An argument of all samples, cut off far away from any data; `None` if not given."""
        spec = self.tensor_args.get(name)
        if spec is None:
            constant = getattr(self.args, name)
            return None if constant is None else np.full(c.size, clipped(constant), np.int64)
        if spec.dtype == DALIDataType.UINT64:
            unsigned = scalars(c, name, np.uint64)
            return np.minimum(unsigned, FARTHEST).astype(np.int64)  # type: ignore[arg-type]
        found = scalars(c, name, np.int64)
        # A third of what `np.clip` takes for a few numbers.
        return np.minimum(np.maximum(found, -FARTHEST), FARTHEST)  # type: ignore[arg-type]

    def _refuse(self, c: BatchContext, sample: int, shapes: np.ndarray) -> None:
        """Raise what is wrong with the indices of a sample."""
        names = [name for _, found in self.axes for name in found]
        args = SimpleNamespace(**vars(self.args))
        vars(args).update({name: c.values(name)[sample] for name in names})
        try:
            _check_index(self._index(args), tuple(shapes[sample].tolist()))
        except (ArgumentValueError, OutOfRangeError) as error:
            raise c.located(error, sample) from error


@operator(
    "_subscript_dim_check",
    inputs=Input("data", "Data that is subscripted."),
    args=(Arg("num_subscripts", IntArg, REQUIRED, "How many axes the data must have at least."),),
    hidden=True,
    written="[...]",
)
class SubscriptDimCheck(SampleOperator):
    """Check that samples have as many axes as there are subscripts, and pass them on."""

    def infer(self, data: Spec) -> Spec:
        if data.ndim is not None:
            _check_count(self.args.num_subscripts, data.ndim)
        return data

    def cpu(self, c: SampleContext, data: np.ndarray) -> np.ndarray:
        _check_count(self.args.num_subscripts, data.ndim)
        return data

    takes = (LazyBatch,)
    returns_lazy = (LazyBatch,)

    def gpu(self, c: BatchContext, data: LazyBatch) -> LazyBatch:
        _check_count(self.args.num_subscripts, data.ndim)
        return data


def _check_count(count: int, ndim: int) -> None:
    if count > ndim:
        raise OutOfRangeError(
            f"Too many indices ({count}): the data has not enough dimensions ({ndim})."
            if ndim
            else "Cannot apply an index to a scalar: the data has no axes."
        )


def _check_index(index: Sequence[Any], shape: tuple[int, ...]) -> None:
    for axis, at in enumerate(index[:-1]):
        extent = shape[axis]
        if isinstance(at, int) and not -extent <= at < extent:
            raise OutOfRangeError(
                f"Index {at} is out of range for axis {axis} of length {extent}, of a "
                f"sample of shape {shape}."
            ) from None


def _zero_step(axis: int) -> ArgumentValueError:
    return ArgumentValueError(f"Step cannot be zero, for the range along axis {axis}.")
