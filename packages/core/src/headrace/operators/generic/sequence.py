"""`element_extract` and `sequence_rearrange`: chosen elements of sequences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace.errors import (
    ArgumentChoiceError,
    ArgumentValueError,
    LayoutError,
    OutOfRangeError,
    ShapeError,
)
from headrace.kernels.cpu import copy_rows as _cpu
from headrace.kernels.gpu import strided_copy as _gpu
from headrace.operators.support.argument_types import IntListArg
from headrace.operators.support.operator import BatchContext, ChunkContext, SampleOperator, operator
from headrace.operators.support.planning import PlanContext, Planned, Samples, plan_batch, repeated
from headrace.operators.support.schema import REQUIRED, Arg, Input, Spec
from headrace.tensors.gpu.batch import DeviceBatch, volumes
from headrace.tensors.rows import Rows

_SEQUENCES = Input(
    "sequences", 'Data of two dimensions or more, whose first axis is "F", if it has a layout.'
)


_WAY_OUT = "`fn.transpose` brings another axis to the front, `fn.reshape(layout=...)` renames it."


def _elements(args: dict[str, Any]) -> int:
    """Number of outputs of `element_extract`."""
    elements = args["element_map"]
    if not elements:
        raise ArgumentChoiceError("`element_map` must have at least one index.")
    if min(elements) < 0:
        raise ArgumentChoiceError(
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
        if data.layout and data.layout[0] != "F":
            raise LayoutError(
                "Input layout must describe a sequence - it must start with 'F', got "
                f"'{data.layout}' instead. {_WAY_OUT}"
            )
        if data.ndim is not None and data.ndim < 2:
            raise ShapeError(
                "Input must have at least two dimensions - outermost for sequence and at least one "
                f"for data elements. It has {data.ndim}."
            )
        ndim = None if data.ndim is None else data.ndim - 1
        return (Spec(data.dtype, ndim, data.layout[1:]),) * len(self.args.element_map)

    def plan(self, c: PlanContext, data: Samples) -> Planned:
        shapes, last = data.shapes, max(self.args.element_map)
        if (shapes[:, 0] <= last).any():
            raise OutOfRangeError(
                f"Index `{last}` from `element_map` is out of bounds for sample with sequence "
                f"length equal `{shapes[:, 0].min()}`."
            )
        return Planned((shapes[:, 1:],) * len(self.args.element_map))

    chunked = True

    def cpu_chunk(self, c: ChunkContext, data: Rows) -> tuple[Rows, ...]:
        elements = self.args.element_map
        if data.flat is None or data.begins is None:
            return tuple([Rows([row[k, ...] for row in data.rows]) for k in elements])
        shapes = data.shapes[:, 1:]
        steps = volumes(shapes)
        return tuple([Rows.of_memory(data.flat, data.begins + k * steps, shapes) for k in elements])

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

    def check_constants(self) -> None:
        if self.args.new_order == ():
            raise ArgumentValueError(
                "`new_order` is empty; it needs at least one number: Empty result sequences are "
                "not allowed."
            )

    def infer(self, data: Spec) -> Spec:
        if data.layout and data.layout[0] != "F":
            raise LayoutError(
                "Expected sequence as the input, where outermost dimension represents frames "
                f'dimension `F`, got data with layout = "{data.layout}". {_WAY_OUT}'
            )
        if data.ndim is not None and data.ndim < 2:
            raise ShapeError(
                "Sequences must have at least two dimensions, their elements and one of these; got "
                f"{data.ndim}."
            )
        order = self.tensor_args.get("new_order")
        if order is not None and order.ndim not in (1, None):
            raise ShapeError(
                f"`new_order` must have one dimension. Input with dimension {order.ndim} cannot be "
                "converted to dimension 1."
            )
        return data

    def plan(self, c: PlanContext, data: Samples) -> Planned:
        shapes, orders = data.shapes, c.values("new_order")
        counts = np.array([len(order) for order in orders], np.int64)
        if not counts.all():
            raise ArgumentValueError(
                f"Empty `new_order` for sample {c.indices[int(counts.argmin())]} is not allowed. "
                "Empty result sequences are not allowed."
            )
        lengths = np.broadcast_to(shapes[:, 0], len(orders))
        for sample, order, length in zip(c.indices, orders, lengths, strict=True):
            wrong = [(k, v) for k, v in enumerate(order) if not 0 <= v < length]
            for k, value in wrong[:1]:
                raise OutOfRangeError(
                    f"new_order[{k}] must be between 0 and input_sequence_length = {length} for "
                    f"sample {sample}, but it is: {value}. The last frame is {length - 1}."
                )
        rest = np.broadcast_to(shapes[:, 1:], (len(orders), shapes.shape[1] - 1))
        return Planned(np.column_stack([counts, rest]), (orders,))

    chunked = True

    def cpu_chunk(self, c: ChunkContext, data: Rows) -> Rows:
        out = c.out()
        steps, counts = volumes(out.shapes[:, 1:]) * out.dtype.itemsize, out.shapes[:, 0]
        if self.tensor_args:
            begins = np.cumsum(counts) - counts
            taken = np.array([k for order in c.table[0] for k in order], np.int64)
        else:  # all have the same elements
            begins, taken = np.zeros_like(counts), np.array(self.args.new_order, np.int64)
        _cpu.copy_elements(data.addresses, out.addresses, steps, begins, counts, taken)
        return out

    def gpu(self, c: BatchContext, data: DeviceBatch) -> DeviceBatch:
        planned = plan_batch(self, c, data)
        shapes = repeated(planned.shapes[0], c.size)
        orders = planned.table[0] if len(planned.table[0]) == c.size else planned.table[0] * c.size
        out = c.empty(shapes, data.dtype)
        step = volumes(shapes[:, 1:]) * data.dtype.itemsize
        sources, targets, sizes = _pieces(orders, step, data.pointers, out.pointers)
        pieces = DeviceBatch(c.queue.runtime, out.owners, targets, sizes[:, None], np.dtype("u1"))
        _gpu.gather(c.queue, sources, sizes, pieces)
        return out


def _pieces(
    orders: Sequence[Sequence[int]], step: np.ndarray, sources: np.ndarray, targets: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Addresses that each element of the outputs is read from and written to, uint64, and its
    bytes.

    Each element is a piece of memory of its own; ``step[k]`` bytes of sample `k`, whose input and
    output begin at `sources` and `targets`.
    """
    counts = np.array([len(order) for order in orders], np.int64)
    places = np.arange(counts.sum()) - np.repeat(np.cumsum(counts) - counts, counts)
    taken = np.concatenate([np.asarray(order, np.int64) for order in orders])
    sizes = np.repeat(step, counts)
    sources = np.repeat(sources, counts) + (taken * sizes).astype(np.uint64)
    targets = np.repeat(targets, counts) + (places * sizes).astype(np.uint64)
    return sources, targets, sizes
