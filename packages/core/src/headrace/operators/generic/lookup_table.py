"""`lookup_table`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.errors import ArgumentValueError, DataTypeError
from headrace.kernels.cpu.cast import converter
from headrace.kernels.gpu import lookup as _gpu
from headrace.operators.support.argument_types import (
    DataTypeArg,
    FloatArg,
    FloatListArg,
    IntListArg,
)
from headrace.operators.support.operator import (
    BatchContext,
    SampleContext,
    SampleOperator,
    operator,
)
from headrace.operators.support.planning import PlanContext, Planned, Samples
from headrace.operators.support.schema import Arg, Input, Spec
from headrace.types import DALIDataType, to_numpy_type

if TYPE_CHECKING:
    from headrace.tensors.gpu.batch import DeviceBatch

_INTEGERS = tuple(DALIDataType(t) for t in range(DALIDataType.UINT8, DALIDataType.INT64 + 1))
_LARGEST_KEY = 0xFFFF


@operator(
    "lookup_table",
    inputs=Input("data", "Integers of any rank and layout.", dtypes=_INTEGERS),
    args=(
        Arg("default_value", FloatArg, 0.0, "Value of numbers that are no key."),
        Arg(
            "dtype",
            DataTypeArg,
            DALIDataType.FLOAT,
            "Element type of the output. In integers, values are rounded, halves away from zero, "
            "and saturate.",
        ),
        Arg("keys", IntListArg, (), f"Numbers in the table, from 0 to {_LARGEST_KEY}."),
        Arg("output_dtype", DataTypeArg, None, "Former name of `dtype`.", deprecated="dtype"),
        Arg("values", FloatListArg, (), "Value of each of `keys`."),
    ),
    output_docs=("The values, in the shape and layout of the input.",),
)
class LookupTable(SampleOperator):
    """Replaces numbers by the values that a table has for them.

    Where a key is given more than once, its last value counts.

    Examples
    --------
    >>> classes = fn.lookup_table(labels, keys=[7, 9], values=[0, 1], dtype=types.INT32)
    """

    def check_constants(self) -> None:
        args = self.args
        self._to = args.dtype if args.output_dtype is None else args.output_dtype
        try:
            self._dtype = np.dtype(to_numpy_type(self._to))
        except KeyError:
            raise DataTypeError(
                f"`dtype` must be a type of numbers or BOOL, got {self._to.name}."
            ) from None
        keys, values = args.keys, args.values
        if len(keys) != len(values):
            raise ArgumentValueError(
                f"`keys` has {len(keys)} numbers and `values` {len(values)}; give a value for "
                "each key."
            )
        wrong = [key for key in keys if not 0 <= key <= _LARGEST_KEY]
        if wrong:
            raise ArgumentValueError(
                f"`keys` must be from 0 to {_LARGEST_KEY}, got {wrong[0]}. Subtract the smallest "
                "key from data and keys."
            )

    def infer(self, data: Spec) -> Spec:
        from headrace.kernels.cpu.lookup import look_up

        args, dtype = self.args, self._dtype
        source: Any = np.dtype(to_numpy_type(data.dtype))
        entries = np.full((1 << min(8 * source.itemsize, 16)) + 1, args.default_value, np.float32)
        for key, value in zip(args.keys, args.values, strict=True):
            if key <= np.iinfo(source).max:  # negative numbers are seen as unsigned ones
                entries[key] = value
        self._table = np.empty(len(entries), dtype)
        converter(entries.dtype, dtype)(entries, self._table)
        self._look_up = look_up
        self._gpu_table: Any = None
        self.plans_values = data.ndim in (0, 1)  # as labels are, which take no way of their own
        return data._replace(dtype=self._to)

    def plan(self, c: PlanContext, data: Samples) -> Planned:
        small = data.values if self.plans_values else None
        if small is None:
            return Planned(data.shapes)
        out = np.empty(small.shape, self._table.dtype)
        self._look_up(small, self._table, out)
        return Planned(values=out)

    def cpu(self, c: SampleContext, data: np.ndarray) -> np.ndarray:
        out = c.out
        self._look_up(data, self._table, out)
        return out

    def gpu(self, c: BatchContext, data: DeviceBatch) -> DeviceBatch:
        if self._gpu_table is None:
            self._gpu_table = _gpu.LookupTable(self._table)
        out = c.empty(data.extents, self._table.dtype)
        self._gpu_table.run(c.queue, data, out)
        return out
