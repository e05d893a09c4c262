"""The operator behind arithmetic with `DataNode` and behind `headrace.math`."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.errors import ArgumentValueError
from headrace.kernels.cpu.arithmetic import IntegerDivisionByZeroError
from headrace.kernels.gpu import broadcast as _broadcast
from headrace.kernels.gpu import pointwise_terms as _terms
from headrace.kernels.gpu import transfer as _transfer
from headrace.operators.support.argument_types import ObjectArg
from headrace.operators.support.arithmetic.compiled import compiled_expression
from headrace.operators.support.arithmetic.expression import inputs_of, typed
from headrace.operators.support.arithmetic.program import ArrayProgram
from headrace.operators.support.arithmetic.scalars import compile_scalar
from headrace.operators.support.arithmetic.shapes import not_broadcastable
from headrace.operators.support.arithmetic.terms import DeviceProgram, device_program
from headrace.operators.support.compiled_steps import CompiledStepContext, SampleColumns
from headrace.operators.support.operator import (
    BatchContext,
    ChunkContext,
    SampleContext,
    SampleOperator,
    operator,
)
from headrace.operators.support.planning import PlanContext, Planned, Samples
from headrace.operators.support.pointwise.pointwise_batch import TAKEN, pointwise
from headrace.operators.support.schema import REQUIRED, Arg, Input, Spec
from headrace.tensors.gpu.batch import LazyBatch
from headrace.tensors.rows import Rows

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from headrace.kernels.gpu.pointwise_terms import Term


@operator(
    "_arithmetic_generic_op",
    inputs=Input("inputs", "What the expression reads.", device="any"),
    args=(Arg("expression", ObjectArg, REQUIRED, "Nested tuples; see the class."),),
    variadic=True,
    max_inputs=64,
    hidden=True,
    written="arithmetic",
    is_expression=True,
)
class ArithmeticGenericOp(SampleOperator):
    """Compute an expression of the inputs, element by element.

    `expression` is ``("input", k)`` for input number `k`, ``("const", value, dtype)`` for a
    number, or ``(operation, operand, ...)`` with a name of
    `headrace.operators.support.arithmetic.operations.OPERATIONS` and further expressions.
    ``x * 2 + y`` of inputs ``(x, y)`` is
    ``("add", ("mul", ("input", 0), ("const", 2, types.INT32)), ("input", 1))``.

    The shapes of a sample's operands broadcast to one, aligned at their last axes.
    """

    def infer(self, *inputs: Spec) -> Spec:
        root = typed(self.args.expression, inputs)
        if root.is_constant:
            raise ArgumentValueError(
                "The expression reads no input; it is the same for all samples."
            )
        self.root = root
        self.numpy_dtype = root.dtype
        try:
            self.scalar = compile_scalar(root, root.dtype) if root.is_scalar else None
            self.program = (
                ArrayProgram(root) if not root.is_scalar and root.kind != "input" else None
            )
            self.chunked = self.program is not None
            self._inputs = inputs
            self._used = set(inputs_of(self.args.expression))
            self._column_programs: dict[int, ArrayProgram] = {}
        except IntegerDivisionByZeroError:
            raise _division_by_zero() from None
        layout = root.layout if len(root.layout) == root.ndim else ""
        return Spec(root.dali_type, root.ndim, layout)

    plans_values = True
    needs_plan = False

    def plan(self, c: PlanContext, *inputs: Samples) -> Planned:
        if not all(samples.are_there for samples in inputs):
            return Planned(self._common_shapes(inputs))
        columns: list[Any] = []
        ndim = 0
        for k, samples in enumerate(inputs):
            values = samples.values
            if values is None:
                return Planned(self._common_shapes(inputs))
            columns.append(values)
            if k in self._used:
                ndim = max(ndim, values.ndim)
        if self.root.kind == "input":
            return Planned(values=columns[self.root.value])
        for k in self._used:
            if columns[k].ndim != ndim:
                columns[k] = _with_axes(columns[k], ndim)
        try:
            program = self._column_program(ndim)
            with _SILENT if program.is_quiet else np.errstate(all="ignore"):
                found = program.run(_NEW_MEMORY, columns, leaves=True)
        except IntegerDivisionByZeroError:
            raise _division_by_zero() from None
        return Planned(values=found)

    def _common_shapes(self, inputs: Sequence[Samples]) -> np.ndarray:
        if self.root.kind == "input":
            found: np.ndarray = inputs[self.root.value].shapes
            return found
        shapes, bad = _broadcast.common_shapes([samples.shapes for samples in inputs])
        if bad.size:
            index = int(bad[0])
            raise not_broadcastable([samples.shape_tuples[index] for samples in inputs])
        return shapes

    def _column_program(self, ndim: int) -> ArrayProgram:
        """Program that computes the expression for several samples, stacked along a first axis."""
        found = self._column_programs.get(ndim)
        if found is None:
            specs = [Spec(spec.dtype, ndim) for spec in self._inputs]
            found = ArrayProgram(typed(self.args.expression, specs))
            self._column_programs[ndim] = found
        return found

    def cpu(self, c: SampleContext, *inputs: np.ndarray) -> np.ndarray:
        if self.root.kind == "input":
            source: int = self.root.value
            return inputs[source]
        try:
            if self.scalar is None:
                assert self.program is not None
                with np.errstate(all="ignore"):
                    return self.program.run(c, inputs, leaves=True)
            value = self.scalar(inputs)
        except IntegerDivisionByZeroError:
            raise _division_by_zero() from None
        out = c.empty((), self.numpy_dtype)
        out[()] = value
        return out

    def cpu_chunk(self, c: ChunkContext, *inputs: Rows) -> Rows:
        program = self.program
        assert program is not None
        try:
            with np.errstate(all="ignore"):
                if len(inputs[0]) == 1:
                    memory = _ChunkMemory(c)
                    program.run(memory, [rows[0] for rows in inputs], leaves=True)
                    return memory.out
                return self._of_several(c, program, inputs)
        except IntegerDivisionByZeroError:
            raise _division_by_zero() from None

    def _of_several(self, c: ChunkContext, program: ArrayProgram, inputs: Sequence[Rows]) -> Rows:
        """The outputs of several samples, in one call where these are alike."""
        used = [inputs[k] for k in sorted(self._used)]
        shapes, bad = _broadcast.common_shapes([rows.shapes for rows in used])
        if bad.size:
            index = int(bad[0])
            raise not_broadcastable([rows[index].shape for rows in used])
        out = c.empty(shapes, self.numpy_dtype)
        whole = out.dense
        columns: list[Any] = [
            _column(rows) if k in self._used else None for k, rows in enumerate(inputs)
        ]
        if (
            program.is_exact
            and whole is not None
            and all(columns[k] is not None for k in self._used)
        ):
            for k in self._used:
                columns[k] = _with_axes(columns[k], whole.ndim)
            of_columns = self._column_program(whole.ndim)
            if not of_columns.run_once(columns, whole):
                of_columns.run(_Into(whole, c.temp), columns, leaves=True)
            return out
        for k, own in enumerate(out):
            program.run(_Into(own, c.temp), [rows[k] for rows in inputs], leaves=True)
        return out

    def compiled(self, c: CompiledStepContext, *inputs: SampleColumns) -> SampleColumns | None:
        return compiled_expression(c, self.root, inputs)

    takes = TAKEN
    returns_lazy = (LazyBatch,)

    @cached_property
    def device_program(self) -> DeviceProgram:
        """Program that computes the expression on the GPU; built on first use."""
        return device_program(self.root)

    def gpu(self, c: BatchContext, *inputs: Any) -> LazyBatch:
        if self.root.kind == "input":
            batch: LazyBatch = inputs[self.root.value]
            return batch
        try:
            program = self.device_program
        except IntegerDivisionByZeroError:
            raise _division_by_zero() from None
        term, batches, numbers = _placed(c, program.term, inputs)
        shapes = _common_shapes(c, batches)
        faults = (lambda i: c.located(_division_by_zero(), i),) if program.may_fault else ()
        return pointwise(c.queue, term, batches, shapes, numbers, faults)


def _placed(
    c: BatchContext, term: Term, inputs: Sequence[Any]
) -> tuple[Term, list[LazyBatch], tuple[np.ndarray, ...]]:
    """Bring host batches among the inputs to where a kernel reads them.

    Returns the term, the batches it reads, and the numbers it reads: scalars of the host.
    """
    if all(isinstance(batch, LazyBatch) for batch in inputs):
        return term, list(inputs), ()
    batches: list[LazyBatch] = []
    numbers: list[np.ndarray] = []
    leaves: list[Term] = []
    found = [None if isinstance(b, LazyBatch) else c.queue.scalars_of(b) for b in inputs]
    # The samples of some batch tell how many elements there are to compute.
    only_numbers = all(values is not None for values in found)
    for batch, values in zip(inputs, found, strict=True):
        if values is not None and not only_numbers:
            leaves.append(_terms.number(len(numbers), values.dtype))
            numbers.append(values)
            continue
        if not isinstance(batch, LazyBatch):
            batch = _transfer.to_device(c.queue, batch.rows)
        batches.append(batch)
        leaves.append(_terms.source(len(batches) - 1, batches[-1].dtype))
    return _terms.substituted(term, tuple(leaves), (), (0,)), batches, tuple(numbers)


def _common_shapes(c: BatchContext, batches: Sequence[LazyBatch]) -> np.ndarray:
    shapes, bad = _broadcast.common_shapes([batch.shapes for batch in batches])
    if bad.size:
        index = int(bad[0])
        raise c.located(
            not_broadcastable([tuple(b.shapes[index].tolist()) for b in batches]), index
        )
    return shapes


def _column(rows: Rows) -> np.ndarray | None:
    """Samples as one array, ``(samples, ...)``; `None` unless they are at hand as one, or are all
    the same array, as a constant is.
    """
    if rows.flat is not None:
        return rows.dense
    first = rows[0]
    if all(row is first for row in rows.rows):
        return np.broadcast_to(first, (len(rows), *first.shape))
    return None


def _with_axes(column: np.ndarray, ndim: int) -> np.ndarray:
    """`column`, ``(samples, ...)``, with so many axes: new ones stand after the first."""
    if column.ndim == ndim:
        return column
    found: np.ndarray = column.reshape(len(column), *[1] * (ndim - column.ndim), *column.shape[1:])
    return found


class _NewMemory:
    """Memory as `SampleContext` hands it out, outside of any sample."""

    def empty(self, shape: tuple[int, ...], dtype: DTypeLike, output: int = 0) -> np.ndarray:
        return np.empty(shape, dtype)

    def temp(self, shape: tuple[int, ...], dtype: DTypeLike) -> np.ndarray:
        return np.empty(shape, dtype)


_NEW_MEMORY = _NewMemory()
_SILENT = contextlib.nullcontext()


class _ChunkMemory:
    """The same for the only sample of a chunk."""

    def __init__(self, c: ChunkContext) -> None:
        self._c = c
        self.temp = c.temp
        self.out: Rows

    def empty(self, shape: tuple[int, ...], dtype: DTypeLike, output: int = 0) -> np.ndarray:
        self.out = self._c.empty(np.array([shape], np.int64), dtype)
        return self.out[0]


class _Into:
    """The same where memory for the output is there."""

    def __init__(self, out: np.ndarray, temp: Callable[..., np.ndarray]) -> None:
        self._out = out
        self.temp = temp

    def empty(self, shape: tuple[int, ...], dtype: DTypeLike, output: int = 0) -> np.ndarray:
        return self._out


def _division_by_zero() -> ArgumentValueError:
    return ArgumentValueError(
        "Integer division by zero. Bring one operand to a real type, or the divisor to 1 with "
        "`headrace.math.max`."
    )
