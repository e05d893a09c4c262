"""The operator that joins branches: see `headrace.graph.branches`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace.errors import DataTypeError, LayoutError, ShapeError
from headrace.operators.support.argument_types import StringArg, StringListArg
from headrace.operators.support.operator import BatchContext, SampleOperator, operator
from headrace.operators.support.planning import PlanContext, Planned, Samples
from headrace.operators.support.schema import Arg, Input, Spec
from headrace.tensors.gpu.batch import DeviceBatch


@operator(
    "_conditional.merge",
    inputs=(
        Input("if_true", "What samples of one branch have."),
        Input("if_false", "What the others have."),
        Input("predicate", "A number for each sample: which branch it took.", device="cpu"),
    ),
    args=(
        Arg("variable", StringArg, None, "What is joined, for messages."),
        Arg("lines", StringListArg, None, "Where either branch makes it."),
    ),
    merges=True,
    side_data=True,
    hidden=True,
)
class Merge(SampleOperator):
    """Gives each sample what it has in the branch that it took."""

    def infer(self, if_true: Spec, if_false: Spec, predicate: Spec) -> Spec:
        check_predicate(predicate)
        for what, of_one, of_other, error in (
            ("types", if_true.dtype.name, if_false.dtype.name, DataTypeError),
            ("sample dimensions", if_true.ndim, if_false.ndim, ShapeError),
            ("layouts", f'"{if_true.layout}"', f'"{if_false.layout}"', LayoutError),
        ):
            if of_one != of_other and None not in (of_one, of_other):
                of = f" of {self.args.variable}" if self.args.variable else ""
                lines = self.args.lines
                made = f" (made at {' and '.join(lines)})" if lines else ""
                raise error(
                    "Divergent data found in different branches of conditional operation. All "
                    "paths in conditional operation are merged into one batch which must have "
                    "consistent type, number of dimensions, layout and other metadata. Found "
                    f"distinct {what}{of}: {of_one} where the condition holds, {of_other} where "
                    f"it does not{made}. `fn.cast`, `fn.expand_dims` and "
                    "`fn.reshape(..., layout=...)` help, and for constants "
                    "`types.Constant(0).float32()` or another type."
                )
        return if_true if if_true.ndim is not None else if_false

    plans_values = True
    needs_plan = False

    def plan(
        self, c: PlanContext, if_true: Samples, if_false: Samples, predicate: Samples
    ) -> Planned | None:
        """Plan the joined samples; `None` where branches are not known yet.

        Of either branch, only samples that took it are looked at.
        """
        if not predicate.are_there:
            return None
        values = predicate.values
        truth = [bool(row) for row in predicate.rows] if values is None else values != 0
        holds = np.array(truth, bool)
        return joined(
            [(if_true, np.flatnonzero(holds)), (if_false, np.flatnonzero(~holds))], c.size
        )

    def gpu(
        self, c: BatchContext, if_true: DeviceBatch, if_false: DeviceBatch, predicate: Any
    ) -> DeviceBatch:
        """Join batches that have the samples of their branch only; no pixel is copied."""
        holds = np.array([bool(row) for row in predicate.rows], bool)
        if holds.all():
            return if_true
        if not holds.any():
            return if_false
        place = np.where(holds, np.cumsum(holds) - 1, len(if_true) + np.cumsum(~holds) - 1)
        return DeviceBatch(
            if_true.runtime,
            (*if_true.owners, *if_false.owners),
            np.concatenate([if_true.pointers, if_false.pointers])[place],
            np.concatenate([if_true.shapes, if_false.shapes])[place],
            if_true.dtype,
        )


def joined(
    parts: Sequence[tuple[Samples | None, Sequence[int] | np.ndarray]], count: int
) -> Planned | None:
    """Spec of `count` samples joined from several branches, or `None` if nothing is known of
    them.
    """
    found = []
    for samples, places in parts:
        if len(places):
            if samples is None:
                return None
            found.append((samples.taken(places) if len(places) < count else samples, places))
    rows: list[np.ndarray] = []
    if all(own.are_there for own, _ in found):
        rows = [values for own, _ in found if (values := own.values) is not None]
    are_values = len(rows) == len(found) and len({each.shape[1:] for each in rows}) == 1
    if not are_values:
        rows = [own.shapes for own, _ in found]
    if len(found) == 1 and len(found[0][1]) == count:
        made = rows[0]
    else:
        made = np.zeros((count, *rows[0].shape[1:]), rows[0].dtype)
        for (_, places), own in zip(found, rows, strict=True):
            made[places] = own
    return Planned(values=made) if are_values else Planned(made)


def check_predicate(predicate: Spec) -> None:
    """Check that a predicate is a single number."""
    if predicate.ndim:
        raise ShapeError(
            "Conditions inside `if` statements are restricted to scalar (0-d tensors) inputs, that "
            f"are placed on CPU. Got a {predicate.ndim}-d input as a condition of the `if` "
            "statement. Take one of the elements, as in `data[0]`, or reduce them to one."
        )
