"""Runner of worker processes that collects their records."""

from __future__ import annotations

from time import perf_counter_ns, thread_time_ns
from typing import TYPE_CHECKING, Any

from headrace.executor.processes.remote import RemoteRunner

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.executor.cpu.program import Program
    from headrace.executor.cpu.runner import SampleRunner
    from headrace.executor.iteration import Iteration
    from headrace.executor.processes.messages import TaskResult
    from headrace.executor.processes.pipeline_processes import WorkerProcesses
    from headrace.executor.processes.remote import SentSamples
    from headrace.profiling.recorder import ProfileRecorder


class ProfiledRemoteRunner(RemoteRunner):
    """A `RemoteRunner` that collects the records of worker processes, and records its own waits."""

    def __init__(
        self,
        program: Program,
        processes: WorkerProcesses,
        own: SampleRunner,
        *,
        recorder: ProfileRecorder,
        base: int,
        engine: int,
        waiting: int,
    ) -> None:
        super().__init__(program, processes, own)
        self._recorder = recorder
        self._note_since = recorder.here().note_since
        self._base = base
        self._engine, self._waiting = engine, waiting

    def send(
        self,
        iteration: Iteration,
        indices: list[int],
        previous: SentSamples | None = None,
        *,
        spreads: bool = True,
    ) -> SentSamples:
        """Send samples of an iteration to a worker; see `RemoteRunner.send`."""
        number, begin, worked = iteration.number, perf_counter_ns(), thread_time_ns()
        try:
            return super().send(iteration, indices, previous, spreads=spreads)
        finally:
            self._note_since(self._engine, number, len(indices), indices[0], begin, worked)

    def wait(self, sent: Sequence[SentSamples | None], wakeup: int) -> list[int]:
        """Wait until some of the samples have become something; see `RemoteRunner.wait`."""
        begin, worked = perf_counter_ns(), thread_time_ns()
        try:
            return super().wait(sent, wakeup)
        finally:
            self._note_since(self._waiting, -1, 0, 0, begin, worked)

    def receive(self, sent: SentSamples) -> list[tuple[int, BaseException]]:
        """Wait until samples were carried through all steps; see `RemoteRunner.receive`."""
        indices, number = sent.indices, sent.iteration.number
        begin, worked = perf_counter_ns(), thread_time_ns()
        try:
            return super().receive(sent)
        finally:
            # What the thread has carried itself after all, its own rows tell.
            if sent.worker is not None:
                self._note_since(self._waiting, number, len(indices), indices[0], begin, worked)

    def _taken(
        self, answer: TaskResult, good: list[int], blocks: list[Any]
    ) -> list[tuple[int, BaseException]]:
        if answer.spans is not None:
            pid, packed = answer.spans
            self._recorder.process(pid).add(packed, self._base)
        return super()._taken(answer, good, blocks)
