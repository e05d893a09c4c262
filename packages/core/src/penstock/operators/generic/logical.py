"""The operands of `and`, `or` and `not` in pipelines with conditional execution."""

from __future__ import annotations

import numpy as np

from penstock.errors import DataTypeError, ShapeError
from penstock.operators.support.argument_types import StringArg
from penstock.operators.support.operator import SampleContext, SampleOperator, operator
from penstock.operators.support.planning import PlanContext, Planned, Samples
from penstock.operators.support.schema import REQUIRED, Arg, Input, Spec
from penstock.types import DALIDataType


@operator(
    "_conditional.validate_logical",
    inputs=Input("value", "A boolean for each sample."),
    args=(
        Arg("expression_name", StringArg, REQUIRED, "The operation: ``and`` or ``or``."),
        Arg("expression_side", StringArg, REQUIRED, "Which operand: ``left`` or ``right``."),
    ),
    devices=("cpu",),
    hidden=True,
)
class ValidateLogical(SampleOperator):
    """Checks that an operand of `and` or `or` is a boolean."""

    def infer(self, value: Spec) -> Spec:
        name, side = self.args.expression_name, self.args.expression_side
        if value.ndim:
            raise ShapeError(
                f"Logical expression `{name}` is restricted to scalar (0-d tensors) inputs: the "
                f"{side} operand has {value.ndim} dimensions. Take one of the elements, as in "
                "`data[0]`."
            )
        if value.dtype is not DALIDataType.BOOL:
            raise DataTypeError(
                f"Logical expression `{name}` is restricted to scalar inputs of `bool` type: the "
                f"{side} operand is {value.dtype.name}. A comparison gives a boolean, as in "
                "`data != 0`."
            )
        return value

    plans_values = True
    needs_plan = False

    def plan(self, c: PlanContext, value: Samples) -> Planned:
        values = value.values
        return Planned(value.shapes) if values is None else Planned(values=values)

    def cpu(self, c: SampleContext, value: np.ndarray) -> np.ndarray:
        return value


@operator(
    "_conditional.not_",
    inputs=Input("value", "A number for each sample."),
    devices=("cpu",),
    hidden=True,
)
class Not(SampleOperator):
    """True for zero, false for other numbers."""

    def infer(self, value: Spec) -> Spec:
        if value.ndim:
            raise ShapeError(
                "Logical expression `not` is restricted to scalar (0-d tensors) inputs, got "
                f"{value.ndim} dimensions. `data == 0` compares each element."
            )
        return value._replace(dtype=DALIDataType.BOOL)

    plans_values = True
    needs_plan = False

    def plan(self, c: PlanContext, value: Samples) -> Planned:
        values = value.values
        return Planned(value.shapes) if values is None else Planned(values=values == 0)

    def cpu(self, c: SampleContext, value: np.ndarray) -> np.ndarray:
        return np.asarray(value == 0)
