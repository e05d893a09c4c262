"""Carries samples through the steps of a stage, and notes how long each step takes."""

from __future__ import annotations

import os
from time import perf_counter_ns, thread_time_ns
from typing import TYPE_CHECKING

from penstock.executor.cpu.profile_labels import codes_of
from penstock.executor.cpu.runner import SampleRunner
from penstock.profiling.rows import Rows

if TYPE_CHECKING:
    from penstock.executor.cpu.arena import Arena
    from penstock.executor.cpu.chunk import Chunk, Group
    from penstock.executor.cpu.program import Program
    from penstock.executor.planning import SamplePlans
    from penstock.executor.step import Step
    from penstock.operators.support.contexts import SampleContext

_ROWS = 1024
"""Rows that a worker keeps until it answers: it has few steps and groups for a task."""


class ProfiledRunner(SampleRunner):
    """A `SampleRunner` that notes its steps, and each chunk as a whole.

    Parameters
    ----------
    program, arena, materialise_views
        Those of `SampleRunner`.
    rows
        Where rows go; of the thread that runs samples.
    base
        Code of the first step.
    """

    def __init__(
        self, program: Program, arena: Arena, *, materialise_views: bool, rows: Rows, base: int
    ) -> None:
        super().__init__(program, arena, materialise_views=materialise_views)
        self._note = rows.note
        self._codes = codes_of(program, base)
        self._chunk_code = base + len(program.steps)
        self._number = 0
        self._now = self._worked = 0
        """When the last step ended, by the clock and in time of the processor."""

    def run(self, indices: list[int]) -> list[tuple[int, BaseException]]:
        """Carry the samples of these numbers through all steps; return what failed, and how."""
        begin = self._now = perf_counter_ns()
        worked = self._worked = thread_time_ns()
        self._number = self._iteration.number
        try:
            return super().run(indices)
        finally:
            used = thread_time_ns() - worked
            self._note(
                self._chunk_code,
                self._number,
                len(indices),
                indices[0],
                begin,
                perf_counter_ns(),
                used,
            )

    def _load(self, step: Step, context: SampleContext, chunk: Chunk) -> None:
        indices = chunk.indices
        count, first = len(indices), indices[0]
        try:
            super()._load(step, context, chunk)
        finally:
            self._end(step, count, first)

    def _planned(
        self, step: Step, context: SampleContext, chunk: Chunk, places: list[int] | None
    ) -> SamplePlans | None:
        plans = super()._planned(step, context, chunk, places)
        # Samples are counted where their pixels are worked on, if they have any.
        done = 0 if plans is None or plans.values is None else len(chunk.indices)
        self._end(step, done, chunk.indices[0])
        return plans

    def _do(self, step: Step, context: SampleContext, group: Group, chunk: Chunk) -> None:
        positions = group.positions
        if not positions:
            return
        count, first = len(positions), chunk.indices[positions[0]]
        try:
            super()._do(step, context, group, chunk)
        finally:
            self._end(step, count, first)

    def _end(self, step: Step, count: int, first: int) -> None:
        """Note a step, which has begun where the one before it ended: a clock is read once."""
        now, worked = perf_counter_ns(), thread_time_ns()
        self._note(
            self._codes[id(step)],
            self._number,
            count,
            first,
            self._now,
            now,
            worked - self._worked,
        )
        self._now, self._worked = now, worked


class WorkerRunner(ProfiledRunner):
    """A `ProfiledRunner` whose rows travel with the answer; its first step has the code 0."""

    def __init__(self, program: Program, arena: Arena, *, materialise_views: bool) -> None:
        self._rows = Rows(rows=_ROWS)
        super().__init__(
            program, arena, materialise_views=materialise_views, rows=self._rows, base=0
        )

    def spans(self) -> tuple[int, bytes]:
        """Number of this process, and the rows since the last call."""
        return os.getpid(), self._rows.taken()
