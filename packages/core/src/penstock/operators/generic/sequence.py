"""`element_extract` and `sequence_rearrange`: chosen elements of sequences."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from penstock._lazy_module import lazy_module
from penstock.errors import ArgumentValueError, LayoutError, OutOfRangeError, ShapeError
from penstock.operators.support.argument_types import IntListArg
from penstock.operators.support.operator import (
    BatchContext,
    SampleContext,
    SampleOperator,
    operator,
)
from penstock.operators.support.planning import PlanContext, Planned, Samples, plan_batch
from penstock.operators.support.schema import REQUIRED, Arg, Input, Spec
from penstock.tensors.gpu.batch import DeviceBatch, volumes

if TYPE_CHECKING:
    from penstock.kernels.gpu import strided_copy as _gpu
else:
    _gpu = lazy_module("penstock.kernels.gpu.strided_copy")

_SEQUENCES = Input(
    "sequences", 'Data of two dimensions or more, whose first axis is "F", if it has a layout.'
)


def _check_sequence(data: Spec) -> None:
    if data.layout and data.layout[0] != "F":
        raise LayoutError(
            "Expected sequence as the input, where outermost dimension represents frames dimension "
            f'`F`, got data with layout = "{data.layout}". '
            "`fn.transpose` brings another axis to the front, `fn.reshape(layout=...)` renames it."
        )
    if data.ndim is not None and data.ndim < 2:
        raise ShapeError(
            "Sequences must have at least two dimensions, their elements and one of these; got "
            f"{data.ndim}."
        )


def _elements(args: dict[str, Any]) -> int:
    """How many outputs `element_extract` has."""
    elements = args["element_map"]
    if not elements:
        raise ArgumentValueError("`element_map` must have at least one index.")
    if min(elements) < 0:
        raise OutOfRangeError(
            f"Negative indices in `element_map` are not allowed, found: {min(elements)}."
        )
    return len(elements)


@operator(
    "element_extract",
    inputs=_SEQUENCES,
    args=(
        Arg("element_map", IntListArg, REQUIRED, "Number of the element for each output, from 0."),
    ),
    num_outputs=_elements,
    output_docs=("One element of each sequence, for each index.",),
)
class ElementExtract(SampleOperator):
    """Takes elements out of sequences, each as an output of its own.

    Examples
    --------
    >>> first, third = fn.element_extract(videos, element_map=[0, 2])
    """

    def infer(self, data: Spec) -> tuple[Spec, ...]:
        _check_sequence(data)
        ndim = None if data.ndim is None else data.ndim - 1
        return (Spec(data.dtype, ndim, data.layout[1:]),) * len(self.args.element_map)

    def plan(self, c: PlanContext, data: Samples) -> Planned:
        shapes, last = data.shapes, max(self.args.element_map)
        if (shapes[:, 0] <= last).any():
            raise OutOfRangeError(
                f"Index {last} from `element_map` is out of bounds for a sequence of "
                f"{shapes[:, 0].min()} elements."
            )
        return Planned((shapes[:, 1:],) * len(self.args.element_map))

    def cpu(self, c: SampleContext, data: np.ndarray) -> tuple[np.ndarray, ...]:
        return tuple([data[k, ...] for k in self.args.element_map])

    def gpu(self, c: BatchContext, data: DeviceBatch) -> tuple[DeviceBatch, ...]:
        shapes = plan_batch(self, c, data).shapes[0]
        sizes = volumes(shapes)
        return tuple([data.run(k * sizes, shapes) for k in self.args.element_map])


@operator(
    "sequence_rearrange",
    inputs=_SEQUENCES,
    args=(
        Arg(
            "new_order",
            IntListArg,
            REQUIRED,
            "For each element of the output, the number of the element of the input.",
            per_sample=True,
        ),
    ),
    output_docs=("The sequences of chosen elements, in the layout of the input.",),
)
class SequenceRearrange(SampleOperator):
    """Makes sequences of chosen elements, in any order, each as often as it is named.

    Examples
    --------
    >>> backwards = fn.sequence_rearrange(videos, new_order=[3, 2, 1, 0])
    """

    def infer(self, data: Spec) -> Spec:
        _check_sequence(data)
        order = self.tensor_args.get("new_order")
        if order is not None and order.ndim not in (1, None):
            raise ShapeError(
                "`new_order` has a number of dimensions other than one. Input with dimension "
                f"{order.ndim} cannot be converted to dimension 1."
            )
        return data

    def plan(self, c: PlanContext, data: Samples) -> Planned:
        shapes, orders = data.shapes, c.values("new_order")
        counts = np.array([len(order) for order in orders], np.int64)
        if not counts.all():
            raise ArgumentValueError(
                f"Empty `new_order` for sample {int(counts.argmin())} is not allowed. Empty result "
                "sequences are not allowed."
            )
        lengths = np.broadcast_to(shapes[:, 0], len(orders))
        for sample, (order, length) in enumerate(zip(orders, lengths, strict=True)):
            wrong = [(k, v) for k, v in enumerate(order) if not 0 <= v < length]
            for k, value in wrong[:1]:
                raise OutOfRangeError(
                    f"new_order[{k}] must be between 0 and input_sequence_length = {length} for "
                    f"sample {sample}, but it is: {value}"
                )
        rest = np.broadcast_to(shapes[:, 1:], (len(orders), shapes.shape[1] - 1))
        return Planned(np.column_stack([counts, rest]), (orders,))

    def cpu(self, c: SampleContext, data: np.ndarray) -> np.ndarray:
        # Indices are good; any other mode makes NumPy take a buffer first.
        return data.take(c.row[0], axis=0, out=c.out, mode="clip")

    def gpu(self, c: BatchContext, data: DeviceBatch) -> DeviceBatch:
        planned = plan_batch(self, c, data)
        shapes = np.broadcast_to(planned.shapes[0], (c.size, data.ndim))
        orders = planned.table[0] if len(planned.table[0]) == c.size else planned.table[0] * c.size
        out = c.empty(shapes, data.dtype)
        counts, sizes = shapes[:, 0], volumes(shapes[:, 1:]) * data.dtype.itemsize
        # Each element is a piece of memory of its own.
        places = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
        step = np.repeat(sizes, counts)
        taken = np.concatenate([np.asarray(order, np.int64) for order in orders])
        sources = np.repeat(data.pointers, counts) + (taken * step).astype(np.uint64)
        targets = np.repeat(out.pointers, counts) + (places * step).astype(np.uint64)
        pieces = DeviceBatch(c.queue.runtime, out.owners, targets, step[:, None], np.dtype("u1"))
        _gpu.gather(c.queue, sources, step, pieces)
        return out
