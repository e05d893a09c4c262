"""A profiled pipeline: its executor, and the sources that its consumer's thread asks."""

from __future__ import annotations

import functools
from collections.abc import Callable
from time import perf_counter_ns, thread_time_ns
from typing import TYPE_CHECKING, Any

from headrace.executor.executor import Executor
from headrace.executor.processes.choice import processors
from headrace.pipeline.input_queues import InputQueues
from headrace.profiling.profile import current_profile
from headrace.profiling.recorder import Label, ProfileRecorder, Setup
from headrace.profiling.rows import SpanRows
from headrace.tensors.gpu.runtime import is_available

if TYPE_CHECKING:
    from headrace.executor.cpu.batch import BatchBuffer
    from headrace.executor.gpu.batch import GpuBatch
    from headrace.executor.plan import Plan
    from headrace.pipeline.settings import Settings


class ProfiledInputQueues(InputQueues):
    """`InputQueues` that note how long external sources take."""

    def record(self, recorder: ProfileRecorder) -> None:
        """Have rows go to a recorder."""
        names = ", ".join(node.name for node, _ in self._fed)
        kind = "source" if any(node.input_queue.has_source for node, _ in self._fed) else "engine"
        where = self._fed[0][0].user_line if self._fed else ""
        label = Label(f"external source {names}".strip(), kind, where=where)
        self._code = recorder.add_labels([label])
        self._rows: SpanRows = recorder.lanes.setdefault("consumer", SpanRows())

    def collect(self) -> tuple[int, dict[int, BatchBuffer | GpuBatch]]:
        """Size and fed batches of the next iteration; see `InputQueues.collect`."""
        if not self._fed:
            return super().collect()
        begin, worked, number, size = perf_counter_ns(), thread_time_ns(), self.iteration, 0
        try:
            size, fed = super().collect()
            return size, fed
        finally:
            self._rows.note_since(self._code, number, size, 0, begin, worked)


class Profiling:
    """Factory of an engine's parts, plain or profiled; chosen once, when it is built."""

    def __init__(self, settings: Settings) -> None:
        self._profile = settings.profile if settings.profile is not None else current_profile()
        self.is_on = self._profile is not None
        self.make_executor: Callable[..., Executor] = Executor
        self.make_queues: Callable[..., InputQueues] = InputQueues
        self._recorder = ProfileRecorder()
        if self._profile is not None:
            from headrace.executor.profiled.executor import ProfiledExecutor

            self._profile.begin(self._recorder)
            self.make_executor = functools.partial(ProfiledExecutor, self._profile, self._recorder)
            self.make_queues = self._queues

    def _queues(self, *args: Any) -> InputQueues:
        queues = ProfiledInputQueues(*args)
        queues.record(self._recorder)
        return queues

    def describe(self, settings: Settings, plan: Plan, *, threads: int, processes: bool) -> None:
        """Record facts that do not change while the pipeline runs."""
        if not self.is_on:
            return
        self._recorder.setup = Setup(
            name=self._recorder.setup.name,
            batch_size=settings.batch_size or 0,
            threads=threads,
            workers="processes" if processes else "threads",
            depth=settings.depth,
            processors=processors(),
            has_gpu=is_available(),
            device="gpu" if plan.streams else "cpu",
            has_python=any(node.schema.calls_user for node in plan.nodes),
        )
