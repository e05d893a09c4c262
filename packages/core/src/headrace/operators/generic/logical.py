"""The operands of `and`, `or` and `not` in pipelines with conditional execution."""

from __future__ import annotations

import numpy as np

from headrace.errors import DataTypeError, ShapeError
from headrace.operators.support.argument_types import StringArg
from headrace.operators.support.operator import SampleContext, SampleOperator, operator
from headrace.operators.support.planning import PlanContext, Planned, Samples
from headrace.operators.support.schema import REQUIRED, Arg, Input, Spec
from headrace.types import DALIDataType


def _restricted(expression: str, *, boolean: bool = False) -> str:
    of_type = " of `bool` type" if boolean else ""
    return (
        f"Logical expression `{expression}` is restricted to scalar (0-d tensors) inputs{of_type}, "
        "that are placed on CPU."
    )


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
                f"{_restricted(name, boolean=True)} Got a {value.ndim}-d input as the {side} "
                "operand in logical expression. Take one of the elements, as in `data[0]`."
            )
        if value.dtype is not DALIDataType.BOOL:
            raise DataTypeError(
                f"{_restricted(name, boolean=True)} Got an input of type "
                f"`{value.dtype.name.lower()}` as the {side} operand in logical expression. A "
                "comparison gives a boolean, as in `data != 0`."
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
                f"{_restricted('not')} Got a {value.ndim}-d input in logical expression. "
                "`data == 0` compares each element."
            )
        return value._replace(dtype=DALIDataType.BOOL)

    plans_values = True
    needs_plan = False

    def plan(self, c: PlanContext, value: Samples) -> Planned:
        values = value.values
        return Planned(value.shapes) if values is None else Planned(values=values == 0)

    def cpu(self, c: SampleContext, value: np.ndarray) -> np.ndarray:
        return np.asarray(value == 0)
