"""Chunks carried through all steps of a program by one compiled loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.operators.support.compiled_steps import (
    CompiledStepContext,
    CompiledSteps,
    SampleColumns,
)
from headrace.operators.support.operator import BatchOperator, SampleOperator
from headrace.tensors.rows import Rows
from headrace.types import storage_dtype

if TYPE_CHECKING:
    from headrace.executor.cpu.arena import Arena
    from headrace.executor.cpu.batch import BatchBuffer
    from headrace.executor.cpu.chunk import Chunk
    from headrace.executor.cpu.program import Program
    from headrace.executor.cpu.step_marks import StepMarks
    from headrace.executor.step import Step
    from headrace.operators.support.planning import Samples

_LONGEST_REST = 64
"""Chunks that are left to the other way after several with samples that a plan has refused."""


class CompiledChunks:
    """The steps of a program as instructions, where each of them can be written so.

    Samples go through all steps one after the other, hot in the cache, without the interpreter:
    one call plans all samples of a chunk, a second one carries them through. Samples that a plan
    refuses are for the ordinary way, which also finds out what is wrong with them.
    """

    def __init__(
        self,
        steps: CompiledSteps,
        given: dict[int, SampleColumns],
        leaving: list[tuple[int, SampleColumns]],
        counts: list[tuple[Step, int]],
        heads: list[Step],
    ) -> None:
        from headrace.kernels.cpu import step_loops

        self._loops = step_loops
        self._steps = steps
        self._given = list(given.items())
        self._leaving = leaving
        self._counts = counts
        """Number of instructions of each step."""
        self.heads = heads
        """Steps in front of these that take all samples of a chunk at once."""
        table = np.zeros((len(steps.words), step_loops.PARTS), np.int64)
        for k, (plan, carry) in enumerate(zip(steps.plans, steps.carries, strict=True)):
            table[k, step_loops.PLAN] = 0 if plan is None else step_loops.address_of(plan)
            table[k, step_loops.CARRY] = step_loops.address_of(carry)
            table[k, step_loops.WORDS] = steps.words[k].ctypes.data
        self._instructions = table
        self._slots = np.array(steps.slots, np.int64).reshape(-1, step_loops.SLOT_PARTS)
        self._rest = self._wait = 0

    @classmethod
    def of(cls, program: Program) -> CompiledChunks | None:
        """The steps of a program after those that read, and those that make arrays of what was
        read; `None` if one has no instructions.
        """
        steps = CompiledSteps()
        heads: list[Step] = []
        given: dict[int, SampleColumns] = {}
        known: dict[int, Any] = {}
        leaving: list[tuple[int, SampleColumns]] = []
        counts: list[tuple[Step, int]] = []

        def columns(r: int) -> SampleColumns | None:
            found = known.get(r)
            if found is None:
                spec = program.specs[r]
                if spec.ndim is None:
                    return None
                found = known[r] = given[r] = steps.samples(storage_dtype(spec.dtype), spec.ndim)
            return found

        def contiguous(data: Any) -> Any:
            is_view = isinstance(data, SampleColumns) and data.strides >= 0
            return steps.copy(data, leaves=False) if is_view else data

        for step in program.steps:
            if step.is_reader:
                continue
            op = step.op
            if not (counts or step.guard or step.branches) and light_function(step) is not None:
                heads.append(step)
                continue
            plain = not (step.guard or step.branches or step.reduces or step.node.schema.random)
            # An operator of batches may be derived from one of samples.
            plain = plain and isinstance(op, SampleOperator) and not isinstance(op, BatchOperator)
            if not plain or op.compiled is None:
                return None
            inputs = [columns(r) for r in step.inputs]
            if not op.compiled_views:
                inputs = [contiguous(each) for each in inputs]
            found = {name: columns(r) for name, r, _ in step.tensor_args}
            tensors = {name: each for name, each in found.items() if each is not None}
            if None in inputs or len(tensors) < len(found):
                return None
            specs = [program.specs[r] for r in step.outputs]
            if any(spec.ndim is None for spec in specs):
                return None
            dtypes = [storage_dtype(spec.dtype) for spec in specs]
            rows = [program.leaving(r) for r in step.outputs]
            leaves = [r is not None for r in rows]
            context = CompiledStepContext(steps, tensors, specs, dtypes, leaves, step.read)
            before = len(steps.words)
            made = op.compiled(context, *inputs)
            if made is not None and not isinstance(made, (SampleColumns, tuple)):
                made = made if step.is_lazy else made.materialise(context)
            if made is None:
                return None
            results = made if type(made) is tuple else (made,)
            for r, row, result in zip(step.outputs, rows, results, strict=True):
                if row is not None and result.address not in steps.unplaced:
                    result = steps.copy(result, leaves=True)
                known[r] = result
                if row is not None:
                    leaving.append((row, result))
            counts.append((step, len(steps.words) - before))
        fits = bool(counts) and steps.fits
        return cls(steps, given, leaving, counts, heads) if fits else None

    def rests(self) -> bool:
        """Return True if a chunk is left to the other way, as several before it were."""
        if self._wait:
            self._wait -= 1
            return True
        return False

    def leave(self) -> bool:
        """Leave a chunk to the other way, and some after it if this happens again; False."""
        self._rest = min(2 * self._rest + 1, _LONGEST_REST)
        self._wait = self._rest // 2
        return False

    def carry(
        self,
        chunk: Chunk,
        buffers: list[BatchBuffer | None],
        arena: Arena,
        marks: StepMarks | None,
    ) -> bool:
        """Carry the samples of a chunk through all steps; return False if they are left."""
        loops = self._loops
        count = len(chunk.indices)
        columns = np.empty((self._steps.columns, count), np.int64)
        kept = [_describe(chunk.columns[r], own, columns) for r, own in self._given]
        described = all(memory is not None for memory in kept)
        size = loops.plan_steps(self._instructions, columns, self._slots) if described else -1
        if size < 0:
            return self.leave()
        self._rest = 0
        try:
            self._take_rows(chunk, columns, buffers)
            memory = arena.empty((size,), np.uint8)
        except (MemoryError, ValueError):  # which sample is too large, the other way finds out
            return False
        loops.place_slots(columns, self._slots, memory.__array_interface__["data"][0])
        if marks is None:
            loops.carry_steps(self._instructions, columns, 0, count)
        else:
            self._carry_marked(chunk, columns, marks)
        return True

    def _take_rows(
        self, chunk: Chunk, columns: np.ndarray, buffers: list[BatchBuffer | None]
    ) -> None:
        """Take memory of batches for what leaves the program."""
        for r, own in self._leaving:
            buffer = buffers[r]
            assert buffer is not None
            shapes = np.ascontiguousarray(columns[own.extents : own.extents + own.ndim].T)
            columns[own.address] = buffer.rows_for(chunk.indices, shapes).addresses.view(np.int64)

    def _carry_marked(self, chunk: Chunk, columns: np.ndarray, marks: StepMarks) -> None:
        """Carry samples through the steps with a mark after each."""
        marks.pixel_steps = [(step, None) for step, _ in self._counts]
        for k in range(len(chunk.indices)):
            marks.group(chunk.indices)
            first = 0
            for _, count in self._counts:
                part = self._instructions[first : first + count]
                self._loops.carry_steps(part, columns, k, k + 1)
                marks.step((k,))
                first += count


def light_function(step: Step) -> Callable[..., Any] | None:
    """The function of a step in front of compiled ones that takes all samples of a chunk."""
    if step.parses:
        return step.light_function
    return step.op.cpu_light if isinstance(step.op, SampleOperator) else None


def _describe(samples: Samples | None, own: SampleColumns, columns: np.ndarray) -> Any:
    """Fill in the columns of samples that are there; what keeps their memory, or `None`."""
    assert samples is not None
    dense = samples.dense
    if dense is not None:
        if dense.ndim - 1 != own.ndim or not dense[0].flags.c_contiguous:
            return None
        begin, pitch = dense.__array_interface__["data"][0], dense.strides[0]
        columns[own.address] = np.arange(len(dense)) * pitch + begin
        for axis in range(own.ndim):
            columns[own.extents + axis] = dense.shape[1 + axis]
        return dense
    known = samples.rows
    rows = known if type(known) is Rows else Rows(list(known))
    shapes = rows.shapes
    if shapes.shape[1] != own.ndim:
        return None
    columns[own.address] = rows.addresses.view(np.int64)
    columns[own.extents : own.extents + own.ndim] = shapes.T
    return rows
