"""The beginning of an iteration: its readers draw, and its first stage is made ready."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.errors import UsageError, located
from headrace.executor.iteration import READING, RUNNING
from headrace.executor.step import with_place

if TYPE_CHECKING:
    from headrace.executor.cpu.program import Program
    from headrace.executor.iteration import FilesInFlight, Iteration
    from headrace.executor.plan import Plan
    from headrace.executor.schedule import Schedule
    from headrace.executor.sources.reading import BatchReader
    from headrace.executor.stages import Stages


class Starter:
    """Begins iterations, one at a time, in whatever thread has one to begin."""

    def __init__(
        self,
        plan: Plan,
        readers: dict[int, Any],
        stages: Stages,
        schedule: Schedule,
        batch_reader: BatchReader | None,
    ) -> None:
        self._plan = plan
        self._readers = readers
        self._stages = stages
        self._schedule = schedule
        self._batch_reader = batch_reader
        schedule.reads_files = batch_reader is not None
        planning = [node for node in plan.readers if readers[id(node)].plans_batches]
        others = [*planning[1:], *plan.fed_nodes] if planning else []
        if others:
            error = UsageError(
                "a reader with `bucket_by` says how many samples a batch has, and so does this: a "
                "pipeline has one of them."
            )
            raise located(error, others[0].where())
        self._drawing = [*planning, *(node for node in plan.readers if node not in planning)]
        self._fed_to_cpu = [
            plan.registers[id(node), k]
            for node in plan.fed_nodes
            if node.device == "cpu"
            for k in range(len(node.outputs))
        ]

    def prepare(self, iteration: Iteration) -> Program:
        """Draw from the readers and make the first stage ready."""
        iteration.started = time.perf_counter()
        iteration.buffers = [None] * len(self._plan.consumers)
        for register in self._fed_to_cpu:
            iteration.buffers[register] = iteration.fed[register]
        for node in self._drawing:
            reader = self._readers[id(node)]
            iteration.states[id(node)] = with_place(node, reader.state)
            drawn = with_place(node, reader.draw, iteration.size)
            if reader.plans_batches:
                iteration.size = len(drawn)
            iteration.entries[id(node)] = np.array(drawn, np.int64)
        return self._stages.enter(iteration, 0)

    def undo(self, iteration: Iteration) -> None:
        """Have readers draw for an iteration once more; no later one has begun."""
        for node in self._drawing:
            state = iteration.states.pop(id(node), None)
            if state is not None:
                self._readers[id(node)].go_back(state)
        iteration.entries.clear()

    def begin(self, iteration: Iteration) -> None:
        """Prepare an iteration, and have its samples taken."""
        program: Program | None = None
        files: FilesInFlight | None = None
        failed: BaseException | None = None
        try:
            program = self.prepare(iteration)
            if self._batch_reader is not None and program.reads_only:
                files = self._batch_reader.begin(iteration, program)
        except BaseException as error:  # of any kind: a thread waits for this iteration
            failed = error
        schedule = self._schedule
        with schedule.monitor.lock:
            schedule.is_beginning = False
            if files is not None and failed is None:
                self._leave_to_readers(iteration, files)
            else:
                self._run_first_stage(iteration, program, failed)
            schedule.wake_other()
            schedule.tell_progress()

    def _run_first_stage(
        self, iteration: Iteration, program: Program | None, failed: BaseException | None
    ) -> None:
        """Let workers take the samples of an iteration. The caller holds the lock."""
        schedule = self._schedule
        if failed is not None:
            iteration.error = failed
        if iteration.error is not None:
            schedule.finish(iteration)
            return
        assert program is not None
        iteration.check(RUNNING)
        iteration.program = program
        iteration.state = RUNNING
        schedule.advance(iteration)
        if iteration.stream != schedule.first_stream and not (
            self._plan.readers or program.has_work
        ):
            self._begin_on(iteration.stream)

    def _begin_on(self, stream: str) -> None:
        """Have the thread of a stream begin later iterations. The caller holds the lock."""
        schedule = self._schedule
        if stream and stream != schedule.first_stream:
            schedule.monitor.streams[stream].notify()
        schedule.first_stream = stream

    def _leave_to_readers(self, iteration: Iteration, files: FilesInFlight) -> None:
        """Let an iteration wait until its files are read. The caller holds the lock."""
        iteration.change(READING)
        iteration.files = files
        iteration.next = iteration.size
        self._begin_on(self._plan.stages[1].device)
        if iteration.error is not None:
            files.stop()

    def await_files(self, iteration: Iteration) -> None:
        """Wait until the files of an iteration are read, and go on with it."""
        files = iteration.files
        assert files is not None
        failed: BaseException | None = None
        left: list[int] = []
        try:
            left = files.wait()
        except BaseException as error:  # of any kind: a thread waits for this iteration
            failed = error
        schedule = self._schedule
        with schedule.monitor.lock:
            iteration.files = None
            iteration.program = files.program
            if iteration.error is None:
                iteration.error = failed
                iteration.queue = left[::-1]
            iteration.change(RUNNING)
            schedule.advance(iteration)
            if left:
                schedule.wake_worker()
            schedule.tell_progress()
