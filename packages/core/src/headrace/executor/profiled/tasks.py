"""Recorded tasks of workers: `CpuTasks` and `Stages` of a profiled pipeline."""

from __future__ import annotations

from time import perf_counter_ns, thread_time_ns
from typing import TYPE_CHECKING, Any

from headrace.executor.cpu.profile_labels import batch_label, labels_of, whole_label
from headrace.executor.cpu.profiled_runner import ProfiledRunner
from headrace.executor.cpu.tasks import CpuTasks
from headrace.executor.profiled.remote import ProfiledRemoteRunner
from headrace.executor.stages import Stages
from headrace.profiling.recorder import Label, ProfileRecorder

if TYPE_CHECKING:
    from collections.abc import Callable

    from headrace.executor.cpu.program import Program
    from headrace.executor.cpu.runner import SampleRunner
    from headrace.executor.cpu.shared_loops import SharedLoop
    from headrace.executor.cpu.worker import WorkerThread
    from headrace.executor.iteration import Iteration
    from headrace.executor.processes.remote import RemoteRunner
    from headrace.executor.step import Step


class ProfiledTasks(CpuTasks):
    """`CpuTasks` whose runners record their work."""

    recorder: ProfileRecorder
    """Destination of rows; set before threads begin."""

    def record(self, recorder: ProfileRecorder) -> None:
        """Have rows go to a recorder, from now on; no thread has begun."""
        self.recorder = recorder
        self._bases: dict[Program, int] = {}
        self._begins = recorder.add_labels(
            [
                Label("begin a batch: draw from readers", "engine"),
                Label("wait for copies from the GPU", "engine"),
                Label("send samples to a worker process", "engine"),
                Label("wait for a worker process", "process"),
            ]
        )

    def _make_runner(self, program: Program, worker: WorkerThread) -> SampleRunner | RemoteRunner:
        recorder = self.recorder
        base = self._bases.get(program)
        if base is None:  # two threads may come to it at once: one of the labels is of no use then
            base = self._bases.setdefault(program, recorder.add_labels(labels_of(program)))
        own = ProfiledRunner(
            program, worker.arena, materialise_views=not self._fuse, rows=recorder.here(), base=base
        )
        if not self._is_carried_elsewhere(program):
            return self._sharing(own, program)
        assert self._processes is not None
        return ProfiledRemoteRunner(
            *(program, self._processes, own),
            recorder=recorder,
            base=base,
            engine=self._begins + 2,
            waiting=self._begins + 3,
        )

    def _help(self, loop: SharedLoop, nothing: None, worker: WorkerThread) -> None:
        program, here = loop.program, self.recorder.here()
        base, steps = self._bases[program], program.steps
        own = next(k for k, step in enumerate(steps) if step.node is loop.node)
        begin, worked = perf_counter_ns(), thread_time_ns()
        super()._help(loop, nothing, worker)
        for code in (base + own, base + len(steps)):  # its samples count where the chunk is
            here.note_since(code, loop.iteration, 0, 0, begin, worked)

    def _begin(self, iteration: Iteration, nothing: None, worker: WorkerThread) -> None:
        self._timed(super()._begin, self._begins, iteration, worker)

    def _enter(self, iteration: Iteration, nothing: None, worker: WorkerThread) -> None:
        self._timed(super()._enter, self._begins + 1, iteration, worker)

    def _timed(
        self, do: Callable[..., Any], code: int, iteration: Iteration, worker: WorkerThread
    ) -> None:
        number, size = iteration.number, iteration.size
        begin, worked = perf_counter_ns(), thread_time_ns()
        do(iteration, None, worker)
        self.recorder.here().note_since(code, number, size, 0, begin, worked)


class ProfiledStages(Stages):
    """`Stages` that note how long operators take which work on whole batches."""

    recorder: ProfileRecorder

    def record(self, recorder: ProfileRecorder) -> None:
        """Have rows go to a recorder, from now on; no thread has begun."""
        self.recorder = recorder
        self._codes: dict[int, int] = {}
        self._whole_codes: dict[Program, int] = {}

    def enter(self, iteration: Iteration, number: int, part: tuple[int, ...] = ()) -> Program:
        """Make a stage on the CPU ready; see `Stages.enter`.

        What is drawn for the whole batch is noted, as one: it is worked out together.
        """
        begin, worked = perf_counter_ns(), thread_time_ns()
        program = super().enter(iteration, number, part)
        if program.whole_steps:
            code = self._whole_codes.get(program)
            if code is None:
                labels = [whole_label(program)]
                code = self._whole_codes.setdefault(program, self.recorder.add_labels(labels))
            self.recorder.here().note_since(
                code, iteration.number, iteration.size, 0, begin, worked
            )
        return program

    def _run_batch_step(self, step: Step, program: Program, iteration: Iteration) -> None:
        code = self._codes.get(step.node.serial)
        if code is None:
            labels = [batch_label(step, self._plan.nodes)]
            code = self._codes.setdefault(step.node.serial, self.recorder.add_labels(labels))
        begin, worked = perf_counter_ns(), thread_time_ns()
        try:
            super()._run_batch_step(step, program, iteration)
        finally:
            self.recorder.here().note_since(
                code, iteration.number, iteration.size, 0, begin, worked
            )
