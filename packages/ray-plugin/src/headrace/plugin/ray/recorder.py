"""Rows of a profile: what each worker did, how long batches were on their way, who waited."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from headrace.profiling.recorder import CONSUMER, Label, ProfileRecorder
from headrace.profiling.rows import SpanRows

if TYPE_CHECKING:
    from headrace.executor.iteration import Iteration
    from headrace.plugin.ray.fleet import Member
    from headrace.plugin.ray.messages import Result, Task

_NANOSECONDS = 1e9
_LABELS = (
    Label("wait for a batch", "take"),
    Label("a batch in a worker", "chunk"),
    Label("a batch on its way to the trainer", "process"),
)


class ClusterRecorder:
    """Writes to the profile of a pipeline whose work workers on a cluster do."""

    def __init__(self, recorder: ProfileRecorder) -> None:
        self._recorder = recorder
        self._codes = recorder.code("cluster", lambda: _LABELS)
        self._consumer = recorder.lanes.setdefault(CONSUMER, SpanRows())
        self._has_ended = False

    def took(self, iteration: Iteration, began: float, ended: float) -> None:
        """Note a wait of the consumer."""
        begin, end = int(began * _NANOSECONDS), int(ended * _NANOSECONDS)
        waited = end - begin > 1_000_000
        self._consumer.note(
            self._codes, iteration.number, int(not waited), int(not waited), begin, end, 0
        )

    def arrived(self, member: Member, task: Task, result: Result) -> None:
        """Note a batch of a worker: the time that it was made in, and fetched in."""
        where = "" if member.place is None else f" on {member.place.host}"
        name = f"worker process {member.number}{where}"  # the page knows those by their beginning
        rows = self._recorder.lanes.setdefault(name, SpanRows())
        now = time.perf_counter_ns()
        there = now - int(member.fetched * _NANOSECONDS)
        begin = there - int(result.seconds * _NANOSECONDS)
        worked = there - begin
        rows.note(self._codes + 1, task.number, task.size, 0, begin, there, worked)
        rows.note(self._codes + 2, task.number, task.size, 0, there, now, 0)

    def end(self) -> None:
        """Have the page written, once."""
        if not self._has_ended:
            self._has_ended = True
            self._recorder.end()
