"""`DataNode.shape()`: the extents of each sample as data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.errors import DataTypeError
from headrace.operators.support.argument_types import DataTypeArg
from headrace.operators.support.operator import BatchContext, SampleOperator, operator
from headrace.operators.support.planning import PlanContext, Planned, Samples
from headrace.operators.support.schema import Arg, Input, Spec, data_types
from headrace.tensors.gpu.batch import LazyBatch
from headrace.types import DALIDataType, to_numpy_type

if TYPE_CHECKING:
    from headrace.tensors.gpu.batch import DeviceBatch

_ALLOWED = data_types("INT32 UINT32 INT64 UINT64 FLOAT FLOAT64")


_DATA = Input("data", "Data whose shapes are wanted.", device="any")
_DTYPE = Arg("dtype", DataTypeArg, DALIDataType.INT64, "Element type of the output.")


@operator(
    "_shape", inputs=_DATA, args=(_DTYPE,), written=".shape()", hidden=True, reads_metadata=True
)
class Shape(SampleOperator):
    """Give the shape of each sample, a 1-D tensor with one extent an axis."""

    def infer(self, data: Spec) -> Spec:
        former = getattr(self.args, "type", None)  # only `shapes` has it
        dtype = self.args.dtype if former is None else former
        if dtype not in _ALLOWED:
            allowed = ", ".join(t.name for t in _ALLOWED)
            raise DataTypeError(f"`dtype`={dtype.name} cannot hold a shape; allowed are {allowed}.")
        self.dtype = np.dtype(to_numpy_type(dtype))
        return Spec(dtype, 1)

    plans_values = True

    def plan(self, c: PlanContext, data: Samples) -> Planned:
        return Planned(values=data.shapes.astype(self.dtype))

    takes = (LazyBatch,)

    def gpu(self, c: BatchContext, data: Any) -> DeviceBatch:
        shapes = data.shapes if isinstance(data, LazyBatch) else [row.shape for row in data.rows]
        values = c.queue.pinned.empty((c.size, len(shapes[0])), self.dtype)
        values[...] = shapes
        out = c.empty(values.shape[1:], self.dtype)
        c.queue.keep(values)
        if values.nbytes:
            queue = c.queue
            queue.runtime.copy(
                int(out.pointers[0]), values.ctypes.data, values.nbytes, queue.stream
            )
        return out


@operator(
    "shapes",
    inputs=_DATA,
    args=(_DTYPE, Arg("type", DataTypeArg, None, "Former name of `dtype`.", deprecated="dtype")),
    deprecated="DataNode.shape",
    dynamic=False,
    hidden=True,
    reads_metadata=True,
)
class Shapes(Shape):
    """Give the shape of each sample, as ``DataNode.shape`` does."""
