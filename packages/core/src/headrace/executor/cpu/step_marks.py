"""Record of the steps that a runner carries samples through, in a profiled pipeline."""

from __future__ import annotations

from time import perf_counter_ns, thread_time_ns
from typing import TYPE_CHECKING, Any

from headrace.executor.cpu.profile_labels import codes_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.executor.cpu.program import Program
    from headrace.executor.step import Step
    from headrace.profiling.rows import SpanRows

_KEPT_NANOSECONDS = 50_000_000
"""Longest delay until other threads see what a thread recorded, except for its present step."""
_READ_NANOSECONDS = 4_000_000
"""A thread's time of the processor is read when so much has passed since the last time: the system
takes longer to tell it than for all else that is noted of a step."""


class StepMarks:
    """Notes the steps of a chunk and the chunk as a whole, as rows of a profile.

    A step begins where the one before it ended.
    """

    def __init__(self, program: Program, rows: SpanRows, base: int) -> None:
        self.rows = rows
        self.pixel_steps: list[tuple[Step, Any]] = []
        """Those that groups go through."""
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
        self._chunk = 0, 0
        """Begin of the chunk by both clocks."""
        self._begin = self._worked = self._read = self._due = 0
        """Begin of the next span by both clocks, time of the last read of the processor clock, and
        deadline for turning marks into rows."""

    def begin(self, iteration: int) -> None:
        """Begin a chunk."""
        self._number = iteration
        self._chunk = self._begin, self._worked = perf_counter_ns(), thread_time_ns()
        self._read, self._due = self._begin, self._begin + _KEPT_NANOSECONDS

    def end(self, indices: list[int]) -> None:
        """End the chunk of these samples."""
        end, now = perf_counter_ns(), thread_time_ns()
        self._write(now)
        (begin, worked), count = self._chunk, len(indices)
        self.rows.note(self._chunk_code, self._number, count, indices[0], begin, end, now - worked)

    def whole(self, step: Step, count: int, first: int) -> None:
        """End a step of the whole chunk, which worked on `count` samples."""
        now = perf_counter_ns()
        self._unread.append((self._codes[id(step)], count, first, now))
        if now - self._read > _READ_NANOSECONDS:
            self._read = now
            self._write(thread_time_ns())

    def group(self, indices: list[int]) -> None:
        """Begin the steps on pixels of a group; `indices` are those of the chunk."""
        if self._read > self._due:
            self._write(thread_time_ns())
        self._marks += (None, indices)

    def step(self, positions: Sequence[int]) -> None:
        """End the next step of the group, which these samples went through."""
        mark, now = self._marks.append, perf_counter_ns()
        mark(positions)
        mark(now)
        if now - self._read > _READ_NANOSECONDS:
            self._read = now
            mark(...)
            mark(thread_time_ns())

    def _write(self, worked_now: int) -> None:
        """Turn marks into rows; the thread has used `worked_now` of the processor.

        Steps share what the thread has used of the processor from one time that this was read to
        the next, as they share the time by the clock.
        """
        marks, unread = self._marks, self._unread
        if not marks or marks[-2] is not ...:
            marks += (..., worked_now)
        note, number = self.rows.note, self._number
        codes = [self._codes[id(step)] for step, _ in self.pixel_steps]
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
