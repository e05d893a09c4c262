"""Carries samples through the steps of a stage, and notes how long each step takes."""

from __future__ import annotations

import os
from time import perf_counter_ns, thread_time_ns
from typing import TYPE_CHECKING, Any

from headrace.executor.cpu.profile_labels import codes_of
from headrace.executor.cpu.runner import BoundSteps, SampleRunner
from headrace.profiling.rows import SpanRows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.executor.cpu.arena import Arena
    from headrace.executor.cpu.chunk import Chunk, Group
    from headrace.executor.cpu.program import Program
    from headrace.executor.planning import SamplePlans
    from headrace.executor.step import Step
    from headrace.operators.support.contexts import SampleContext

_ROWS = 1024
"""Rows that a worker keeps until it answers: it has few steps and groups for a task."""
_KEPT_NANOSECONDS = 50_000_000
"""Longest delay until other threads see what a thread recorded, except for its present step."""
_READ_NANOSECONDS = 4_000_000
"""A thread's time of the processor is read when so much has passed since the last time: the system
takes longer to tell it than for all else that is noted of a step."""


class ProfiledRunner(SampleRunner):
    """A `SampleRunner` that notes its steps, and each chunk as a whole."""

    def __init__(
        self, program: Program, arena: Arena, *, materialise_views: bool, rows: SpanRows, base: int
    ) -> None:
        super().__init__(program, arena, materialise_views=materialise_views)
        self._note = rows.note
        self._codes = codes_of(program, base)
        self._chunk_code = base + len(program.steps)
        self._number = 0
        self._marks: list[Any] = []
        """Pairs: None and the numbers of a chunk's samples, where a group of them begins; positions
        of the samples of its next step, and when that had ended; ``...``, and what the thread had
        used of the processor by then.

        They become rows at the end of the chunk. Between two steps on pixels little else is done:
        these have the processor's caches, and what touches memory takes ten times as long there.
        """
        self._unread: list[tuple[int, int, int, int]] = []
        """Steps of the whole chunk before those: code, samples, the first of them, and the end."""
        self._pixel_steps: list[tuple[Step, SampleContext]] = []
        """Those that groups go through."""
        self._begin = self._worked = self._read = self._due = 0
        """Begin of the next span by both clocks, time of the last read of the processor clock, and
        deadline for turning marks into rows."""

    def run(self, indices: list[int]) -> list[tuple[int, BaseException]]:
        """Carry these samples through all steps; return the failed ones with their errors."""
        begin = self._begin = self._read = perf_counter_ns()
        worked = self._worked = thread_time_ns()
        self._due = begin + _KEPT_NANOSECONDS
        self._number = self._iteration.number
        count, first = len(indices), indices[0]
        try:
            return super().run(indices)
        finally:
            end, now = perf_counter_ns(), thread_time_ns()
            self._write(now)
            used = now - worked
            self._note(self._chunk_code, self._number, count, first, begin, end, used)

    def _load(self, step: Step, context: SampleContext, chunk: Chunk) -> None:
        indices = chunk.indices
        count, first = len(indices), indices[0]
        try:
            super()._load(step, context, chunk)
        finally:
            self._end(step, count, first)

    def _planned(
        self, step: Step, context: SampleContext, chunk: Chunk, places: Sequence[int] | None
    ) -> SamplePlans | None:
        plans = super()._planned(step, context, chunk, places)
        # Samples are counted where their pixels are worked on, if they have any.
        done = 0 if plans is None or plans.values is None else len(chunk.indices)
        self._end(step, done, chunk.indices[0])
        return plans

    def _end(self, step: Step, count: int, first: int) -> None:
        """Note a step of the whole chunk. It has begun where the one before it ended."""
        now = perf_counter_ns()
        self._unread.append((self._codes[id(step)], count, first, now))
        if now - self._read > _READ_NANOSECONDS:
            self._read = now
            self._write(thread_time_ns())

    def _take_each(
        self, steps: list[tuple[Step, SampleContext]], positions: Sequence[int], chunk: Chunk
    ) -> None:
        self._pixel_steps = steps
        super()._take_each(steps, positions, chunk)

    def _alone(self, steps: BoundSteps, position: int, chunk: Chunk) -> None:
        mark, alone = self._marks.append, (position,)
        mark(None)
        mark(chunk.indices)
        failed = len(chunk.failures)
        for step in steps:
            super()._alone([step], position, chunk)
            self._mark(alone)
            if len(chunk.failures) > failed:
                break
        if self._read > self._due:
            self._write(thread_time_ns())

    def _mark(self, positions: Sequence[int]) -> None:
        """Note that these samples have gone through the next step."""
        mark, now = self._marks.append, perf_counter_ns()
        mark(positions)
        mark(now)
        if now - self._read > _READ_NANOSECONDS:
            self._read = now
            mark(...)
            mark(thread_time_ns())

    def _through(self, steps: list[tuple[Step, SampleContext]], group: Group, chunk: Chunk) -> None:
        do, mark = self._do, self._marks.append
        self._pixel_steps = steps
        mark(None)
        mark(chunk.indices)
        for step, context in steps:
            branch = group.branch(step.guard)
            positions = branch.positions
            if positions:
                do(step, context, branch, chunk)
            self._mark(positions)
            if not group.positions:
                break
        if self._read > self._due:
            self._write(thread_time_ns())

    def _write(self, worked_now: int) -> None:
        """Turn marks into rows; the thread has used `worked_now` of the processor.

        Steps share what the thread has used of the processor from one time that this was read to
        the next, as they share the time by the clock.
        """
        marks, unread = self._marks, self._unread
        if not marks or marks[-2] is not ...:
            marks += (..., worked_now)
        note, number = self._note, self._number
        codes = [self._codes[id(step)] for step, _ in self._pixel_steps]
        begin, worked = self._begin, self._worked
        indices: list[int] = []
        k = 0
        for what, value in zip(*[iter(marks)] * 2, strict=True):
            if what is None:
                indices, k = value, 0
            elif what is not ...:
                if what:
                    unread.append((codes[k], len(what), indices[what[0]], value))
                k += 1
            elif unread:
                share = (value - worked) / max(unread[-1][3] - begin, 1)
                for code, count, first, end in unread:
                    note(code, number, count, first, begin, end, int((end - begin) * share))
                    begin = end
                unread.clear()
                worked = value
        self._begin, self._worked = begin, worked
        self._due = begin + _KEPT_NANOSECONDS
        marks.clear()


class WorkerRunner(ProfiledRunner):
    """A `ProfiledRunner` whose rows travel with the answer; its first step has the code 0."""

    def __init__(self, program: Program, arena: Arena, *, materialise_views: bool) -> None:
        self._rows = SpanRows(rows=_ROWS)
        super().__init__(
            program, arena, materialise_views=materialise_views, rows=self._rows, base=0
        )

    def spans(self) -> tuple[int, bytes]:
        """Number of this process, and the rows since the last call."""
        return os.getpid(), self._rows.taken()
