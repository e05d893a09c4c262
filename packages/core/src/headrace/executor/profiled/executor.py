"""The executor of a profiled pipeline."""

from __future__ import annotations

import contextvars
from time import perf_counter_ns, thread_time_ns
from typing import TYPE_CHECKING, Any

from headrace.executor.executor import Executor
from headrace.executor.iteration import DONE
from headrace.executor.profiled.sampler import Sampler
from headrace.executor.profiled.tasks import ProfiledStages, ProfiledTasks
from headrace.executor.programs import Programs
from headrace.executor.threads import forks
from headrace.profiling.recorder import Label, ProfileRecorder
from headrace.profiling.rows import SpanRows

if TYPE_CHECKING:
    from headrace.executor.gpu.program import GpuProgram
    from headrace.executor.guards import Choices
    from headrace.executor.iteration import Iteration
    from headrace.executor.plan import Stage
    from headrace.operators.support.schema import Spec
    from headrace.profiling.profile import Profile


class ProfiledPrograms(Programs):
    """`Programs` whose stages on a GPU record their work."""

    recorder: ProfileRecorder

    def _gpu_class(self) -> type[GpuProgram]:
        from headrace.executor.profiled.gpu import ProfiledGpuProgram

        return ProfiledGpuProgram

    def _gpu_program(
        self, stage: Stage, specs: dict[int, Spec], choices: Choices
    ) -> GpuProgram | None:
        program: Any = super()._gpu_program(stage, specs, choices)
        if program is not None:
            program.record(self.recorder)
        return program  # type: ignore[no-any-return]


class ProfiledExecutor(Executor):
    """An `Executor` that records the work of its threads, and the waits of its consumer."""

    programs_class = ProfiledPrograms
    stages_class = ProfiledStages
    tasks_class = ProfiledTasks

    def __init__(
        self, profile: Profile, recorder: ProfileRecorder, *args: Any, **arguments: Any
    ) -> None:
        super().__init__(*args, **arguments)
        self._profile = profile
        self.recorder = recorder
        assert isinstance(self._programs, ProfiledPrograms)
        assert isinstance(self._stages, ProfiledStages)
        assert isinstance(self._cpu, ProfiledTasks)
        self._programs.recorder = recorder
        self._stages.record(recorder)
        self._cpu.record(recorder)
        self._take_code = recorder.add_labels([Label("wait for a batch", "take")])
        self._consumer_rows: SpanRows = recorder.lanes.setdefault("consumer", SpanRows())
        self._has_ended = False
        self._sampler = Sampler(
            recorder, self._schedule.queue, self.memory, has_processes=self.processes is not None
        )

    def start(self) -> None:
        """Start the threads, once."""
        if not self._threads:
            super().start()
            self._sampler.start()

    def take(self) -> Iteration:
        """Wait for the oldest iteration and hand it over; see `Executor.take`.

        Its row says how many iterations were complete, and how many in the queue.
        """
        states = [iteration.state for iteration in list(self._schedule.queue)]
        ready, queued = states.count(DONE), len(states)
        begin, worked = perf_counter_ns(), thread_time_ns()
        number = -1
        try:
            iteration = super().take()
            number = iteration.number
            return iteration
        finally:
            self._consumer_rows.note_since(self._take_code, number, ready, queued, begin, worked)

    def shutdown(self, wait_seconds: float = 1.0) -> None:
        """Stop the threads; see `Executor.shutdown`. The profile is complete then."""
        super().shutdown(wait_seconds)
        self._end(wait_seconds)

    def shut_down_at_exit(self) -> None:
        """Stop the threads, without waiting for them, because the program ends."""
        super().shut_down_at_exit()
        self._end(0.1)

    def _end(self, wait_seconds: float) -> None:
        """Look no more, and have the profile written; once, and not by a fork of the process."""
        if not self._has_ended and self._process == forks():
            self._has_ended = True
            self._sampler.stop(wait_seconds)
            # A finalizer may call no ufunc: on Python 3.11 it may run while `np.errstate` is being
            # left, and NumPy would remember the state that goes. In a context of its own it
            # remembers nothing.
            contextvars.Context().run(self._profile.ended, self.recorder)
