"""The operands of `and`, `or` and `not` in pipelines with conditional execution."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.errors import ArgumentValueError, DataTypeError, ShapeError
from headrace.operators.generic.merge import check_predicate
from headrace.operators.support.argument_types import BoolArg, StringArg
from headrace.operators.support.operator import (
    BatchContext,
    SampleContext,
    SampleOperator,
    operator,
)
from headrace.operators.support.planning import PlanContext, Planned, Samples
from headrace.operators.support.schema import REQUIRED, Arg, Input, Spec
from headrace.tensors.gpu.batch import DeviceBatch
from headrace.types import DALIDataType


def restricted(expression: str, *, boolean: bool = False) -> str:
    """The beginning of what is said of an operand that cannot be one."""
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
                f"{restricted(name, boolean=True)} Got a {value.ndim}-d input as the {side} "
                "operand in logical expression. Take one of the elements, as in `data[0]`."
            )
        if value.dtype is not DALIDataType.BOOL:
            raise DataTypeError(
                f"{restricted(name, boolean=True)} Got an input of type "
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
                f"{restricted('not')} Got a {value.ndim}-d input in logical expression. "
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


@operator(
    "_validate_merge",
    inputs=(
        Input("data", "What was merged."),
        Input("split", "A number for each sample: which part it was in.", device="cpu"),
        Input("merge", "The same, as it was merged by.", device="cpu"),
    ),
    args=(Arg("negated", BoolArg, False, "Whether parts came the other way round."),),
    hidden=True,
)
class ValidateMerge(SampleOperator):
    """Checks that a batch is merged as it was split."""

    def infer(self, data: Spec, split: Spec, merge: Spec) -> Spec:
        check_predicate(merge)
        return data

    def cpu(
        self, c: SampleContext, data: np.ndarray, split: np.ndarray, merge: np.ndarray
    ) -> np.ndarray:
        self._check(bool(split), bool(merge))
        return data

    def gpu(self, c: BatchContext, data: DeviceBatch, split: Any, merge: Any) -> DeviceBatch:
        for one, other in zip(split.rows, merge.rows, strict=True):
            self._check(bool(one), bool(other))
        return data

    def _check(self, split: bool, merge: bool) -> None:
        if (split != self.args.negated) != merge:
            part = "first" if split != self.args.negated else "second"
            raise ArgumentValueError(
                f"`fn._conditional.merge` got a `predicate` of {merge} for a sample that is in the "
                f"{part} of the two parts. Merge by the predicate that the batch was split by."
            )
