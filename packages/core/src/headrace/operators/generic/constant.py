"""`fn.constant`, and the operator behind constants that are part of an expression."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headrace.errors import ArgumentValueError
from headrace.kernels.gpu import shared_sample as _shared_sample
from headrace.layout import check_layout
from headrace.operators.support.argument_types import (
    DataTypeArg,
    FloatListArg,
    IntListArg,
    LayoutArg,
    ObjectArg,
)
from headrace.operators.support.operator import BatchContext, SampleOperator, operator
from headrace.operators.support.planning import PlanContext, Planned
from headrace.operators.support.schema import REQUIRED, Arg, Spec
from headrace.types import DALIDataType, constant_array, to_dali_type

if TYPE_CHECKING:
    from headrace.tensors.gpu.batch import DeviceBatch


class _SameForAll(SampleOperator):
    """An operator without inputs whose output is one array for every sample."""

    array: np.ndarray
    _on_gpu: _shared_sample.SharedSample | None = None

    plans_values = True

    def plan(self, c: PlanContext) -> Planned:
        return Planned(values=np.broadcast_to(self.array, (c.size, *self.array.shape)))

    def gpu(self, c: BatchContext) -> DeviceBatch:
        if self._on_gpu is None:
            self._on_gpu = _shared_sample.SharedSample(c.queue, self.array)
        return self._on_gpu.batch(c.queue, c.size)


@operator(
    "constant",
    args=(
        Arg(
            "fdata",
            FloatListArg,
            None,
            "The values, as real numbers (float32 unless `dtype` is given).",
        ),
        Arg("idata", IntListArg, None, "The values, as integers (int32 unless `dtype` is given)."),
        Arg(
            "dtype",
            DataTypeArg,
            None,
            "Element type. Values are rounded (halves away from zero) and kept inside its range.",
        ),
        Arg(
            "shape",
            IntListArg,
            None,
            "Shape of each sample, which a single value fills; one axis when not given.",
        ),
        Arg("layout", LayoutArg, "", "Layout of each sample."),
    ),
    dynamic=False,
    hidden=True,
    is_constant=True,
)
class Constant(_SameForAll):
    """Give every sample the same tensor.

    The values are in `fdata` or `idata`, of which exactly one must be given.
    `headrace.types.Constant` is a shorter way to write it.
    """

    def infer(self) -> Spec:
        fdata, idata = self.args.fdata, self.args.idata
        if fdata is not None and idata is not None:
            raise ArgumentValueError("`fdata` and `idata` exclude one another; give one of them.")
        if fdata is None and idata is None:
            raise ArgumentValueError("The values are missing: give `fdata` or `idata`.")
        if fdata is not None:
            values, default = fdata, DALIDataType.FLOAT
        else:
            values, default = idata, DALIDataType.INT32
        dtype = default if self.args.dtype is None else self.args.dtype
        shape = (len(values),) if self.args.shape is None else self.args.shape
        self.array = constant_array(list(values), dtype, shape)
        self.array.flags.writeable = False
        return Spec(dtype, len(shape), check_layout(self.args.layout, len(shape)))


@operator(
    "_constant_tensor",
    args=(
        Arg("value", ObjectArg, REQUIRED, "The NumPy array every sample gets."),
        Arg("dtype", DataTypeArg, None, "Element type, where it is an enumeration kept as int32."),
        Arg("layout", LayoutArg, "", "Layout of each sample."),
    ),
    hidden=True,
    written="a constant",
    is_constant=True,
)
class ConstantTensor(_SameForAll):
    """Give every sample the same NumPy array: what arrays and lists in a graph are made into."""

    def infer(self) -> Spec:
        # A copy that cannot be written to: every sample of every iteration shares it.
        self.array = np.array(self.args.value, order="C")
        self.array.flags.writeable = False
        dtype = to_dali_type(self.array.dtype) if self.args.dtype is None else self.args.dtype
        return Spec(dtype, self.array.ndim, check_layout(self.args.layout, self.array.ndim))
