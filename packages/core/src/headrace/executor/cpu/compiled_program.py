"""Steps of a program written as instructions of a compiled loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headrace.errors import HeadraceError
from headrace.operators.support.compiled_steps import (
    CompiledStepContext,
    CompiledSteps,
    SampleColumns,
)
from headrace.operators.support.operator import BatchOperator, SampleOperator
from headrace.types import storage_dtype

if TYPE_CHECKING:
    from headrace.executor.cpu.program import Program
    from headrace.executor.step import Step


class CompiledProgram:
    """Instructions of the steps of a program, and what surrounds them.

    Attributes
    ----------
    steps
        The instructions, and their columns.
    heads
        Steps in front of these that take all samples of a chunk at once.
    given
        Columns of the registers that these read and do not make.
    made
        Columns of the registers that they make.
    leaving
        Registers of batches, and the columns of what is written to them.
    counts
        Number of instructions of each step.
    """

    def __init__(self) -> None:
        self.steps = CompiledSteps()
        self.heads: list[Step] = []
        self.given: dict[int, SampleColumns] = {}
        self.made: dict[int, Any] = {}
        self.leaving: list[tuple[int, SampleColumns]] = []
        self.counts: list[tuple[Step, int]] = []

    def takes(self, program: Program) -> bool:
        """Write all steps of a program but those that read; False if one has no instructions."""
        for step in program.steps:
            if step.is_reader:
                continue
            reads = {*step.inputs, *(r for _, r, _ in step.tensor_args)}
            if step.guard or step.branches or step.reduces:
                return False
            if not self._writes(step, program):
                if not _is_head(step) or reads.intersection(self.made):
                    return False
                self.heads.append(step)
        return bool(self.counts) and self.steps.fits

    def _writes(self, step: Step, program: Program) -> bool:
        """Write the instructions of a step."""
        op = step.op
        # An operator of batches may be derived from one of samples.
        is_plain = isinstance(op, SampleOperator) and not isinstance(op, BatchOperator)
        if not is_plain or op.compiled is None:
            return False
        # Plans look at arguments before the instructions that make them have run.
        if any(r in self.made for _, r, _ in step.tensor_args):
            return False
        before = len(self.steps.words)
        inputs = [self._columns(r, program) for r in step.inputs]
        if not op.compiled_views:
            inputs = [self._contiguous(each) for each in inputs]
        given = {name: self._columns(r, program) for name, r, _ in step.tensor_args}
        tensors = {name: each for name, each in given.items() if each is not None}
        specs = [program.specs[r] for r in step.outputs]
        if None in inputs or len(tensors) < len(given) or any(s.ndim is None for s in specs):
            return False
        dtypes = [storage_dtype(spec.dtype) for spec in specs]
        rows = [program.leaving(r) for r in step.outputs]
        leaves = [r is not None for r in rows]
        context = CompiledStepContext(self.steps, tensors, specs, dtypes, leaves, step)
        try:
            found = op.compiled(context, *inputs)
        except HeadraceError:  # the other way says what is wrong, and where
            return False
        if found is not None and not isinstance(found, (SampleColumns, tuple)):
            found = found if _is_handed_on(found, step, program) else found.materialise(context)
        if found is None:
            return False
        results = found if type(found) is tuple else (found,)
        for r, row, result in zip(step.outputs, rows, results, strict=True):
            # What an operator hands on as it is may be an output already, with memory of its own.
            if row is not None and result.address not in self.steps.unplaced - self._leaves():
                result = self.steps.copy(result, leaves=True)
            self.made[r] = result
            if row is not None:
                self.leaving.append((row, result))
        self.counts.append((step, len(self.steps.words) - before))
        return True

    def _leaves(self) -> set[int]:
        """Columns of addresses of what leaves already."""
        return {columns.address for _, columns in self.leaving}

    def _columns(self, r: int, program: Program) -> Any:
        """Columns of a register, or a lazy value of these."""
        found = self.made.get(r, self.given.get(r))
        if found is None:
            spec = program.specs[r]
            if spec.ndim is None:
                return None
            found = self.given[r] = self.steps.samples(storage_dtype(spec.dtype), spec.ndim)
        return found

    def _contiguous(self, data: Any) -> Any:
        is_view = isinstance(data, SampleColumns) and data.strides >= 0
        return self.steps.copy(data, leaves=False) if is_view else data


def _is_handed_on(found: Any, step: Step, program: Program) -> bool:
    """Return True if the instructions of the only reader of a step take what it has returned."""
    if not step.is_lazy:
        return False
    reader = next(s for s in program.steps if step.outputs[0] in s.inputs)
    return isinstance(found, reader.op.compiled_takes)


def light_function(step: Step) -> Callable[..., Any] | None:
    """The function of a step in front of compiled ones that takes all samples of a chunk."""
    if step.parses:
        return step.light_function
    if step.chunked and not step.takes_lazy:
        return step.function
    return step.op.cpu_light if isinstance(step.op, SampleOperator) else None


def _is_head(step: Step) -> bool:
    """Return True if a step may take all samples at once: one that parses or decodes, or whose
    plan gives small values.
    """
    has_values = step.planner is not None and step.op.plans_values
    return has_values or light_function(step) is not None
