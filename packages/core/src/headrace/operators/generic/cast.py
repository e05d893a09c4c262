"""`cast` and `cast_like`."""

from __future__ import annotations

import numpy as np

from headrace.errors import DataTypeError
from headrace.kernels.cpu.cast import converter
from headrace.kernels.gpu import cast as _gpu
from headrace.operators.support.argument_types import DataTypeArg
from headrace.operators.support.compiled_steps import CompiledStepContext, SampleColumns
from headrace.operators.support.operator import (
    BatchContext,
    SampleContext,
    SampleOperator,
    operator,
)
from headrace.operators.support.planning import PlanContext, Planned, Samples
from headrace.operators.support.pointwise.pointwise_batch import TAKEN, pointwise
from headrace.operators.support.schema import REQUIRED, Arg, Input, Spec
from headrace.tensors.gpu.batch import LazyBatch
from headrace.types import DALIDataType, storage_dtype
from headrace.types.dtypes import ENUM_TYPES, is_float, is_stored

_OUTPUT_DOC = "The numbers in their new type, in the layout of the input."


def _shown(dtype: DALIDataType) -> str:
    return dtype.name if dtype in ENUM_TYPES else dtype.name.lower()


class _Conversion(SampleOperator):
    """Shared code of `cast` and `cast_like`."""

    def _to(self, data: Spec, dtype: DALIDataType) -> Spec:
        for enum, other in ((data.dtype, dtype), (dtype, data.dtype)):
            if enum in ENUM_TYPES and is_float(other):
                raise DataTypeError(
                    f"Cannot cast from {_shown(data.dtype)} to {_shown(dtype)}. Enums can only "
                    "participate in casts with integral types, but not floating point types."
                )
        if not is_stored(dtype):
            raise DataTypeError(f"`dtype` must be a type of elements, got {dtype.name}.")
        source, target = storage_dtype(data.dtype), storage_dtype(dtype)
        self._source, self._target = source, target
        self._convert = None if source == target else converter(source, target)
        return data._replace(dtype=dtype)

    plans_values = True
    needs_plan = False

    def plan(self, c: PlanContext, data: Samples, like: Samples | None = None) -> Planned:
        values = data.values
        if values is None:
            return Planned(data.shapes)
        if self._convert is None:
            return Planned(values=values)
        out = np.empty(values.shape, self._target)
        self._convert(values, out)
        return Planned(values=out)

    def cpu(self, c: SampleContext, data: np.ndarray, like: np.ndarray | None = None) -> np.ndarray:
        if self._convert is None:
            return data
        out = c.empty(data.shape, self._target)
        self._convert(data, out)
        return out

    def compiled(self, c: CompiledStepContext, *inputs: SampleColumns) -> SampleColumns | None:
        from headrace.kernels.cpu import pointwise_steps, step_loops

        data = inputs[0]
        if self._convert is None:
            return data
        if not pointwise_steps.casts(self._source, self._target):
            return None
        out = c.out()
        carry = pointwise_steps.casting(data.dtype, out.dtype)
        c.steps.add(step_loops.plan_alike, carry, (*data.words, *out.words[:2]))
        return out

    takes = TAKEN
    returns_lazy = (LazyBatch,)

    def gpu(self, c: BatchContext, data: LazyBatch, like: LazyBatch | None = None) -> LazyBatch:
        if self._convert is None:
            return data
        return pointwise(c.queue, _gpu.cast_to(self._source, self._target), (data,), data.shapes)


@operator(
    "cast",
    inputs=Input("data", "Data of any rank and layout."),
    args=(Arg("dtype", DataTypeArg, REQUIRED, "Element type of the output."),),
    output_docs=(_OUTPUT_DOC,),
)
class Cast(_Conversion):
    """Converts numbers to another type.

    On the way to integers fractions are rounded to the nearest, halves away from zero, and values
    that do not fit become the nearest that does. Numbers whose rounded value is not 0 become true.
    On the way to float16, ties go to the even neighbour, and what is too large becomes infinite.

    Examples
    --------
    >>> pixels = fn.cast(features, dtype=types.UINT8)
    """

    def infer(self, data: Spec) -> Spec:
        return self._to(data, self.args.dtype)


@operator(
    "cast_like",
    inputs=(
        Input("data", "Data of any rank and layout."),
        Input(
            "like",
            "Data whose element type is taken on; nothing else of it is looked at.",
            device="any",
        ),
    ),
    output_docs=(_OUTPUT_DOC,),
)
class CastLike(_Conversion):
    """Converts numbers to the type of another input, by the rules of `cast`.

    Examples
    --------
    >>> same = fn.cast_like(mask, images)
    """

    def infer(self, data: Spec, like: Spec) -> Spec:
        return self._to(data, like.dtype)
