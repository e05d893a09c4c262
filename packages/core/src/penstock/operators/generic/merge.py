"""The operator that joins branches: see `penstock.graph.branches`."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.errors import DataTypeError, LayoutError, ShapeError
from penstock.operators.support.argument_types import StringArg, StringListArg
from penstock.operators.support.operator import BatchContext, SampleOperator, operator
from penstock.operators.support.planning import PlanContext, Planned, Samples
from penstock.operators.support.schema import Arg, Input, Spec
from penstock.tensors.gpu.batch import DeviceBatch


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
        """What is known of the joined samples; `None` where branches are not known yet.

        Of either branch, only samples that took it are looked at.
        """
        if not predicate.are_there:
            return None
        truth = predicate.values
        if truth is not None:
            holds = truth != 0
            if holds.all():
                return _known(if_true)
            if not holds.any():
                return _known(if_false)
            if if_true.has_arrays and if_false.has_arrays:
                values, others = if_true.values, if_false.values
                if values is None or others is None:
                    return Planned(_joined(holds, if_true.shapes, if_false.shapes))
                if values.shape == others.shape:
                    return Planned(values=_joined(holds, values, others))
        branches = [if_true if row else if_false for row in predicate.rows]
        if if_true.are_there and if_false.are_there:
            rows = [branch.rows[k] for k, branch in enumerate(branches)]
            values = Samples(rows).values
            if values is not None:
                return Planned(values=values)
            return Planned(Samples(rows).shapes)
        shapes = [
            branch.rows[k].shape if branch.are_there else branch.shape_tuples[k]
            for k, branch in enumerate(branches)
        ]
        return Planned(Samples(shapes=shapes).shapes)

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


def _known(samples: Samples) -> Planned:
    """What is known of samples, as that of an output which is the same."""
    values = samples.values
    return Planned(samples.shapes) if values is None else Planned(values=values)


def _joined(holds: np.ndarray, values: np.ndarray, others: np.ndarray) -> np.ndarray:
    """Rows of `values` where `holds`, else those of `others`."""
    return np.where(holds.reshape(-1, *[1] * (values.ndim - 1)), values, others)


def check_predicate(predicate: Spec) -> None:
    """Check that a predicate is a single number.

    Raises
    ------
    ShapeError
        If it is not.
    """
    if predicate.ndim:
        raise ShapeError(
            "Conditions inside `if` statements are restricted to scalar (0-d tensors) inputs, that "
            f"are placed on CPU. Got a {predicate.ndim}-d input as a condition of the `if` "
            "statement. Take one of the elements, as in `data[0]`, or reduce them to one."
        )
