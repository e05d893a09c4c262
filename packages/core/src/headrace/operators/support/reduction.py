"""Shared code of operators that reduce data along axes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from headrace.errors import DataTypeError, ShapeError
from headrace.kernels.gpu import reduce as _gpu
from headrace.operators.support.argument_types import BoolArg, IntListArg, LayoutArg
from headrace.operators.support.axes import checked_axes, named_axes
from headrace.operators.support.operator import BatchContext, ChunkContext, SampleOperator
from headrace.operators.support.planning import PlanContext, Planned, Samples, plan_batch
from headrace.operators.support.schema import Arg, Input, Spec
from headrace.tensors.gpu.batch import DeviceBatch
from headrace.tensors.rows import Rows
from headrace.types import DALIDataType, to_numpy_type
from headrace.types.dtypes import INTEGERS

_BLOCK_BYTES = 1 << 19
"""Of data that is reduced at a time: samples that a core's cache holds, so many that they are worth
a call of NumPy's."""
_UNSIGNED = (DALIDataType.UINT8, DALIDataType.UINT16, DALIDataType.UINT32, DALIDataType.UINT64)
DATA = Input("data", "Numbers of any rank and layout.", dtypes=(*INTEGERS, DALIDataType.FLOAT))
AXES = (
    Arg(
        "axes",
        IntListArg,
        None,
        "Axes along which is reduced; negative ones count from the last. All when neither these "
        "nor `axis_names` are given, none for an empty list.",
    ),
    Arg("axis_names", LayoutArg, None, "The same by letters of the layout, such as ``HW``."),
    Arg("keep_dims", BoolArg, False, "Keep reduced axes, with an extent of 1."),
)
_SMALL_BYTES = 64 << 10
"""Of samples that are copied side by side to be reduced in one call."""


def widest(dtype: DALIDataType) -> DALIDataType:
    """The type that sums have: 64 bits for integers, float32 for floats."""
    if dtype == DALIDataType.FLOAT:
        return dtype
    return DALIDataType.UINT64 if dtype in _UNSIGNED else DALIDataType.INT64


class Reduction(SampleOperator):
    """Reduces samples along axes.

    A sub-class says what comes out in `reduced`, and how the GPU does it in `formula`.
    """

    def dtypes(self, data: DALIDataType) -> tuple[DALIDataType, ...]:
        """Element types of the output, the one by default first."""
        return (data,)

    def reduced(self, data: np.ndarray, axes: tuple[int, ...], *centre: np.ndarray) -> np.ndarray:
        """The result for one sample, or for several along a first axis, in any type; reduced axes
        stay.
        """
        raise NotImplementedError

    def formula(self) -> _gpu.Formula:
        """Formula that the GPU computes."""
        raise NotImplementedError

    def infer(self, *inputs: Spec) -> Spec:
        data, args = inputs[0], self.args
        allowed = self.dtypes(data.dtype)
        dtype = getattr(args, "dtype", None) or allowed[0]
        if dtype not in allowed:
            raise DataTypeError(
                f"`dtype` is {dtype.name}; allowed for data of type {data.dtype.name} are "
                f"{', '.join(dict.fromkeys(t.name for t in allowed))}. Use `fn.cast` for others."
            )
        self._source = np.dtype(to_numpy_type(data.dtype))
        self._dtype = np.dtype(to_numpy_type(dtype))
        self._layout = data.layout
        self._known_axes: tuple[int, ...] | None = None
        if data.ndim is None:
            return Spec(dtype, None)
        axes = self._known_axes = self._axes(data.ndim)
        if args.keep_dims:
            return data._replace(dtype=dtype)
        layout = "".join(c for k, c in enumerate(data.layout) if k not in axes)
        return Spec(dtype, data.ndim - len(axes), layout)

    def _axes(self, ndim: int) -> tuple[int, ...]:
        """The axes that are reduced, ascending."""
        if self._known_axes is not None:
            return self._known_axes
        args = self.args
        if args.axis_names is not None:
            asked = named_axes(args.axis_names, self._layout)
        elif args.axes is None:
            asked = tuple(range(ndim))
        else:
            asked = args.axes
        return tuple(sorted(checked_axes(asked, ndim)))

    def plan(self, c: PlanContext, *inputs: Samples) -> Planned:
        shapes = inputs[0].shapes
        axes = list(self._axes(shapes.shape[1]))
        kept = shapes.copy()
        kept[:, axes] = 1
        for centre in inputs[1:]:
            groups, given = kept.prod(axis=1), centre.shapes.prod(axis=1)
            wrong = (given != 1) & (given != groups)
            if wrong.any():
                k = int(wrong.argmax())
                raise ShapeError(
                    f"`mean` has {given[k % len(given)]} elements and the output "
                    f"{groups[k % len(groups)]}; reduce along the same axes for it, or give a "
                    "single number."
                )
        if not self.args.keep_dims:
            kept = np.ascontiguousarray(np.delete(kept, axes, axis=1))
        return Planned(kept)

    chunked = True

    def cpu_chunk(self, c: ChunkContext, data: Rows, *centres: Rows) -> Rows:
        out = c.out()
        whole, target = data.dense, out.dense
        if whole is None and target is not None and not centres:
            whole = self._gathered(c, data)
        if whole is None or target is None or centres:
            for k, row in enumerate(data):
                self._reduce(row, self._axes(row.ndim), out[k], *[each[k] for each in centres])
            return out
        axes = tuple([axis + 1 for axis in self._axes(whole.ndim - 1)])
        together = max(_BLOCK_BYTES * len(whole) // max(whole.nbytes, 1), 1)
        for k in range(0, len(whole), together):
            self._reduce(whole[k : k + together], axes, target[k : k + together])
        return out

    def _gathered(self, c: ChunkContext, data: Rows) -> np.ndarray | None:
        """Small samples of one shape side by side: a copy takes less than a call for each."""
        shapes = data.shapes
        if len(data) < 2 or data[0].nbytes > _SMALL_BYTES or (shapes != shapes[0]).any():
            return None
        whole = c.temp((len(data), *data[0].shape), data.dtype)
        return np.stack(data.rows, out=whole)

    def _reduce(
        self, data: np.ndarray, axes: tuple[int, ...], out: np.ndarray, *centre: np.ndarray
    ) -> None:
        if out.size:
            found = self.reduced(data, axes, *centre)
            if out.dtype.kind in "iu" and found.dtype.kind == "f":
                found = np.trunc(found).astype(np.int64)
            np.copyto(out, found.reshape(out.shape), casting="unsafe")

    def gpu(self, c: BatchContext, *inputs: Any) -> DeviceBatch:
        data = inputs[0]
        out = c.empty(plan_batch(self, c, *inputs).shapes[0], self._dtype)
        _gpu.reduce(c.queue, data, out, self._axes(data.ndim), self.formula(), *inputs[1:])
        return out


def count_of(data: np.ndarray, axes: tuple[int, ...]) -> int:
    """Number of input elements for each element of the output."""
    return math.prod(data.shape[k] for k in axes)
