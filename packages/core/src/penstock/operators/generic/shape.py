"""`DataNode.shape()`: the extents of each sample as data."""

from __future__ import annotations

import numpy as np

from penstock.errors import DataTypeError
from penstock.operators.argument_types import DTYPE
from penstock.operators.operator import Operator, SampleContext, operator
from penstock.operators.registry import register
from penstock.operators.schema import Arg, Input, Spec
from penstock.types import DALIDataType, to_numpy_type

_ALLOWED = (
    DALIDataType.INT32,
    DALIDataType.UINT32,
    DALIDataType.INT64,
    DALIDataType.UINT64,
    DALIDataType.FLOAT,
    DALIDataType.FLOAT64,
)


@operator(
    "_shape",
    inputs=Input("data", "Data whose shapes are wanted."),
    args=(Arg("dtype", DTYPE, DALIDataType.INT64, "Element type of the output."),),
    class_name="_Shape",
    written=".shape()",
    hidden=True,
)
class Shape(Operator):
    """Give the shape of each sample, a 1-D tensor with one extent an axis."""

    def infer(self, *inputs: Spec) -> Spec:
        former = getattr(self.args, "type", None)  # only `shapes` has it
        dtype = self.args.dtype if former is None else former
        if dtype not in _ALLOWED:
            allowed = ", ".join(t.name for t in _ALLOWED)
            raise DataTypeError(f"`dtype`={dtype.name} cannot hold a shape; allowed are {allowed}.")
        self.dtype = np.dtype(to_numpy_type(dtype))
        return Spec(dtype, 1)

    def cpu(self, c: SampleContext, *inputs: np.ndarray) -> np.ndarray:
        out = c.empty((inputs[0].ndim,), self.dtype)
        out[:] = inputs[0].shape
        return out


register(
    Shape.schema.with_name(
        "shapes",
        class_name="Shapes",
        deprecated="DataNode.shape",
        hidden=True,
        args={
            **Shape.schema.args,
            "type": Arg("type", DTYPE, None, "Former name of `dtype`.", deprecated="dtype"),
        },
    )
)
