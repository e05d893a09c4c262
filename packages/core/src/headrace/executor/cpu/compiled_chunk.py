"""Chunks carried through all steps of a program by one compiled loop."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.config import CHECK
from headrace.executor.cpu.chunk_plans import plans_of
from headrace.executor.cpu.compiled_checks import carry_checked
from headrace.executor.cpu.compiled_program import CompiledProgram
from headrace.operators.support.compiled_steps import (
    PlannedColumns,
    SampleColumns,
)
from headrace.operators.support.planning import Samples
from headrace.tensors.addresses import neighbours
from headrace.tensors.rows import Rows

if TYPE_CHECKING:
    from headrace.executor.cpu.arena import Arena
    from headrace.executor.cpu.batch import BatchBuffer
    from headrace.executor.cpu.chunk import Chunk
    from headrace.executor.cpu.program import Program
    from headrace.executor.cpu.step_marks import StepMarks
    from headrace.operators.support.contexts import SampleContext

_NO_MEMORY = np.empty(0, np.uint8)
_NO_SLOTS = np.empty((0, 5), np.int64)
_FEWEST_OF_ONE_STEP, _FEWEST_DECODED = 12, 4
"""To describe fewer samples as columns takes longer than what it saves, where there is one step;
fewer small images are as quick to decode one after the other."""
_LONGEST_REST = 64
"""Chunks that are left to the other way after several with samples that a plan has refused."""


class CompiledChunks:
    """The steps of a program as instructions, where each of them can be written so.

    Samples go through all steps one after the other, hot in the cache, without the interpreter:
    one call plans all samples of a chunk, a second one carries them through. Samples that a plan
    refuses are for the ordinary way, which also finds out what is wrong with them.
    """

    def __init__(self, program: CompiledProgram) -> None:
        from headrace.kernels.cpu import step_loops

        self._loops = step_loops
        self._program = program
        self._checks = CHECK.value() == "1"
        self._steps = steps = program.steps
        self._given = list(program.given.items())
        self._leaving = program.leaving
        self._made = program.made
        self._counts = program.counts
        self.heads = program.heads
        self.decodes = any(
            getattr(step.op, "cpu_light", None) is not None for step in program.heads
        )
        """True if some of these hand on lazy values otherwise."""
        self._slots = np.array(steps.slots, np.int64).reshape(-1, step_loops.SLOT_PARTS)
        self._rest = self._wait = 0

    @cached_property
    def _instructions(self) -> np.ndarray:
        """The table of instructions, compiled once samples come that are for them."""
        steps, loops = self._steps, self._loops
        table = np.zeros((len(steps.words), loops.PARTS), np.int64)
        for k, (plan, carry) in enumerate(zip(steps.plans, steps.carries, strict=True)):
            table[k, loops.PLAN] = 0 if plan is None else loops.address_of(plan)
            table[k, loops.CARRY] = loops.address_of(carry)
            table[k, loops.WORDS] = steps.words[k].ctypes.data
        return table

    @classmethod
    def of(cls, program: Program) -> CompiledChunks | None:
        """The steps of a program after those that read; `None` if one has no instructions."""
        made = CompiledProgram()
        return cls(made) if made.takes(program) else None

    def leaves(self, count: int) -> bool:
        """Return True if a chunk of so many samples is left to the other way: it has little to do,
        or several before it were.
        """
        if (len(self._counts) + len(self.heads) == 1 and count < _FEWEST_OF_ONE_STEP) or (
            self.decodes and count < _FEWEST_DECODED
        ):
            return True
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
        contexts: Mapping[int, SampleContext],
    ) -> bool:
        """Carry the samples of a chunk through all steps; return False if they are left."""
        loops = self._loops
        count = len(chunk.indices)
        if self._steps.are_small and not chunk.has_few_bytes():
            return self.leave()
        columns = np.empty((self._steps.columns, count), np.int64)
        kept = []
        for r, own in self._given:
            memory = _describe(chunk.columns[r], own, columns)
            if memory is None:
                return self.leave()
            kept.append(memory)
        size = self._planned(chunk, columns, contexts)
        if size < 0:
            return self.leave()
        self._rest = 0
        try:
            self._take_rows(chunk, columns, buffers)
            memory = arena.empty((size,), np.uint8) if size else _NO_MEMORY
        except (MemoryError, ValueError):  # which sample is too large, the other way finds out
            return False
        if size:
            loops.place_slots(columns, self._slots, memory.__array_interface__["data"][0])
        if self._checks:
            carry_checked(self._program, columns, memory, self._slots, self._carry_one(columns))
        elif marks is None:
            loops.carry_steps(self._instructions, columns, 0, count)
        else:
            self._carry_marked(chunk, columns, marks)
        return True

    def _carry_one(self, columns: np.ndarray) -> Callable[[int, int, int], None]:
        """A function that carries a sample through some instructions."""

        def carry(k: int, first: int, last: int) -> None:
            self._loops.carry_steps(self._instructions[first:last], columns, k, k + 1)

        return carry

    def _planned(
        self, chunk: Chunk, columns: np.ndarray, contexts: Mapping[int, SampleContext]
    ) -> int:
        """Plan all samples; the bytes of scratch memory for one, or -1 if they are left."""
        plan, instructions = self._loops.plan_steps, self._instructions
        begin = 0
        shown: list[int] = []
        try:
            for planned in self._steps.planned:
                end = planned.instruction
                if end > begin and plan(instructions[begin:end], columns, _NO_SLOTS) < 0:
                    return -1
                begin = end
                step = planned.step
                for r in step.inputs:
                    own = self._made.get(r)
                    if isinstance(own, SampleColumns) and chunk.columns[r] is None:
                        extents = columns[own.extents : own.extents + own.ndim]
                        chunk.columns[r] = Samples(shapes=np.ascontiguousarray(extents.T))
                        shown.append(r)
                if not _fill_in(planned, chunk, contexts[id(step)], columns):
                    return -1
            size: int = plan(instructions[begin:], columns, self._slots)
            return size
        finally:
            for r in shown:
                chunk.columns[r] = None

    def _take_rows(
        self, chunk: Chunk, columns: np.ndarray, buffers: list[BatchBuffer | None]
    ) -> None:
        """Take memory of batches for what leaves the program."""
        for r, own in self._leaving:
            buffer = buffers[r]
            assert buffer is not None
            shapes = np.ascontiguousarray(columns[own.extents : own.extents + own.ndim].T)
            columns[own.address] = buffer.addresses_for(chunk.indices, shapes)

    def _carry_marked(self, chunk: Chunk, columns: np.ndarray, marks: StepMarks) -> None:
        """Carry samples through the steps with a mark after each."""
        carry = self._carry_one(columns)
        marks.pixel_steps = [(step, None) for step, _ in self._counts]
        for k in range(len(chunk.indices)):
            marks.group(chunk.indices)
            first = 0
            for _, count in self._counts:
                carry(k, first, first + count)
                marks.step((k,))
                first += count


def _fill_in(
    planned: PlannedColumns, chunk: Chunk, context: SampleContext, columns: np.ndarray
) -> bool:
    """Have the plan of an operator fill in its columns; False where it cannot, for some sample."""
    step = planned.step
    context.indices, context.sources = chunk.indices, chunk.sources.get(step.origin)
    plans = plans_of(step, context, chunk, None, is_strict=False)
    if plans is None or plans.values is not None:
        return False
    for own, shapes in zip(planned.outputs, plans.shape_arrays, strict=True):
        columns[own.extents : own.extents + own.ndim] = shapes.T
    part = columns[planned.first : planned.first + planned.columns]
    at = 0
    for each in plans.distinct_table():
        if each.dtype.names is not None:
            each = np.stack([each[name] for name in each.dtype.names], axis=-1, dtype=np.float64)
        rows = each.reshape(len(each), -1).T
        (part if each.dtype.kind != "f" else part.view(np.float64))[at : at + len(rows)] = rows
        at += len(rows)
    return at == planned.columns


def _describe(samples: Samples | None, own: SampleColumns, columns: np.ndarray) -> Any:
    """Fill in the columns of samples that are there; what keeps their memory, or `None`."""
    assert samples is not None
    dense = samples.dense
    if dense is not None:
        shape = dense.shape
        if len(shape) - 1 != own.ndim:
            return None
        if not (dense.flags.c_contiguous or dense[0].flags.c_contiguous):
            return None
        begin, pitch = dense.__array_interface__["data"][0], dense.strides[0]
        if shape[0] == 1:
            columns[own.address, 0] = begin
            for axis in range(own.ndim):
                columns[own.extents + axis, 0] = shape[1 + axis]
            return dense
        columns[own.address] = neighbours(begin, pitch, shape[0])
        for axis in range(own.ndim):
            columns[own.extents + axis] = shape[1 + axis]
        return dense
    known = samples.rows
    rows = known if type(known) is Rows else Rows(list(known))
    if rows.flat is None and not all(row.flags.c_contiguous for row in rows.rows):
        return None
    shapes = rows.shapes
    if shapes.shape[1] != own.ndim:
        return None
    columns[own.address] = rows.addresses.view(np.int64)
    columns[own.extents : own.extents + own.ndim] = shapes.T
    return rows
