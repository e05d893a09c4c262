"""`permute_batch` and `batch_permutation`: samples that change places within their batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace.errors import ArgumentValueError, OutOfRangeError, ShapeError
from headrace.kernels.cpu import sample_orders
from headrace.kernels.cpu.random import draw_below, fill_permutation
from headrace.operators.support.argument_types import BoolArg, IntListArg
from headrace.operators.support.operator import BatchContext, BatchOperator, operator
from headrace.operators.support.planning import PlanContext
from headrace.operators.support.schema import REQUIRED, Arg, Input, Spec
from headrace.tensors.gpu.batch import DeviceBatch
from headrace.types import DALIDataType


@operator(
    "permute_batch",
    inputs=Input("data", "Data of any type and layout."),
    args=(
        Arg(
            "indices",
            IntListArg,
            REQUIRED,
            "For each sample of the output, the number of the sample of the input: as many numbers "
            "as there are samples, or a tensor without axes.",
            per_sample=True,
        ),
    ),
    output_docs=("Samples of the input in another order.",),
    side_data=True,
)
class PermuteBatch(BatchOperator):
    """Gives each sample the place that `indices` say; a sample may occur several times, or never.

    Examples
    --------
    >>> shuffled = fn.permute_batch(images, indices=fn.batch_permutation())
    """

    def infer(self, data: Spec) -> Spec:
        indices = self.tensor_args.get("indices")
        if indices is not None and indices.ndim:
            raise ShapeError(
                "`indices` must be a single number for each sample, without axes, got "
                f"{indices.ndim} dimensions. `fn.squeeze` takes axes off."
            )
        return data

    def origins(self, c: PlanContext, known: Sequence[Sequence[str]]) -> list[str]:
        return [known[0][k] for k in self._moved(c)]

    def _moved(self, c: PlanContext) -> Sequence[int]:
        each = c.values("indices")
        indices: Sequence[int] = [index for (index,) in each] if self.tensor_args else each[0]
        if len(indices) != c.size:
            raise ArgumentValueError(
                f"The number of sample indices, {len(indices)}, does not match the current batch "
                f"size, which is {c.size}."
            )
        for k, index in enumerate(indices):
            if not 0 <= index < c.size:
                raise OutOfRangeError(
                    f"Sample index out of range. indices[{k}] = {index} is not a valid index for "
                    f"an input batch of {c.size} tensors."
                )
        return indices

    def cpu(self, c: Any, samples: Sequence[np.ndarray]) -> list[np.ndarray]:
        return [samples[k] for k in self._moved(c)]

    def gpu(self, c: BatchContext, data: DeviceBatch) -> DeviceBatch:
        return data.taken(np.array(self._moved(c), np.int64))


@operator(
    "_of_first",
    inputs=Input("data", "Data of any type and layout."),
    devices=("cpu",),
    dynamic=False,
    hidden=True,
)
class OfFirst(BatchOperator):
    """Gives all samples of a batch what the first one has."""

    def infer(self, data: Spec) -> Spec:
        return data

    def cpu(self, c: Any, samples: Sequence[np.ndarray]) -> list[np.ndarray]:
        return [samples[0]] * c.size


@operator(
    "batch_permutation",
    args=(
        Arg("allow_repetitions", BoolArg, False, "Whether numbers may occur more than once."),
        Arg(
            "no_fixed_points",
            BoolArg,
            False,
            "Whether no sample has its own number, except in a batch of one.",
        ),
    ),
    output_docs=("The number of a sample of the batch for each, int32, without axes.",),
    random=True,
    devices=("cpu",),
)
class BatchPermutation(BatchOperator):
    """Draws a permutation of the samples of a batch, to be used with `permute_batch`.

    All permutations that the arguments allow are equally likely.
    """

    def infer(self) -> Spec:
        return Spec(DALIDataType.INT32, 0)

    def cpu(self, c: Any) -> np.ndarray:
        """Numbers of samples: a permutation without fixed points is of a single cycle."""
        size, distinct = c.size, self.args.no_fixed_points
        if size == 1:
            return np.zeros(1, np.int32)
        order: np.ndarray
        if not (self.args.allow_repetitions or distinct):
            order = np.empty(size, np.int64)
            fill_permutation(order, c.seed, c.iteration)
            return order.astype(np.int32)
        if self.args.allow_repetitions:
            order = draw_below(np.full((1, size), size - distinct), c.seed, c.iteration, [0])[0]
            order[order >= np.arange(size)] += distinct
            return order.astype(np.int32)
        order = np.arange(size)
        steps = draw_below(np.arange(size - 1, 0, -1)[None], c.seed, c.iteration, [0])[0]
        sample_orders.swap_in_turn(order, 0, steps + order[1:])
        return order.astype(np.int32)
