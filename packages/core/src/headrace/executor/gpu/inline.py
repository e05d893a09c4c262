"""Inline execution: the consumer's thread launches stages itself instead of waiting for others."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from headrace.executor.inline_choice import InlineChoice
from headrace.executor.interruption import interruption_of
from headrace.executor.iteration import (
    BEGINNING,
    DONE,
    LAUNCHING,
    QUEUED,
    SCHEDULED,
    UNDONE,
    IterationState,
)
from headrace.tensors.gpu.runtime import Runtime

if TYPE_CHECKING:
    from headrace.executor.gpu.stream import StreamExecutor
    from headrace.executor.gpu.tasks import GpuTasks
    from headrace.executor.iteration import Iteration
    from headrace.executor.plan import Plan
    from headrace.executor.schedule import Schedule

    InlinePosition = tuple[IterationState, int, int, str]
    """Position of an iteration without an owner: its state, its stage, the last complete stage, and
    the stream it is queued for."""


def may_run_inline(plan: Plan) -> bool:
    """Return True if the consumer's thread may do the work of streams.

    A Ctrl-C is raised in the consumer's thread, and the work it interrupts is repeated; that would
    be wrong for the user's functions and for operators that depend on the order of iterations.
    """
    return bool(plan.streams) and not any(
        node.schema.in_order or node.schema.is_typed_late(node.args)
        for stage in plan.stages
        for node in stage.batch_nodes
    )


class InlineExecution:
    """Launches stages in the consumer's thread, where they take only the interpreter's time.

    One thread at a time has the interpreter. To wake that of a stream, to wait, and to be woken by
    it takes the consumer a third of what the stream does for an iteration of few operators. So it
    does that itself where it would wait; and where that is quicker as a whole (`InlineChoice`), the
    stream's thread is not even told of an iteration. Else that works ahead as ever.
    """

    def __init__(self, tasks: GpuTasks, schedule: Schedule, runtime: Runtime) -> None:
        self._tasks = tasks
        self._schedule = schedule
        self._runtime = runtime
        self._choice = InlineChoice()
        self._before: InlinePosition | None = None
        """Position of the consumer's iteration before it began its present task."""
        self._stream: StreamExecutor | None = None
        """Stream on which it launches that task."""

    def begin_waiting(self, now: float) -> None:
        """Note when the consumer asked for an iteration, in seconds."""
        self._schedule.consumer.is_inline = self._choice.begin_waiting(now)

    def end_waiting(self, now: float) -> None:
        """Note when it got one, in seconds."""
        self._choice.end_waiting(now)

    def run_pending(self, iteration: Iteration) -> None:
        """Go on with the oldest iteration on its streams, in the consumer's thread."""
        if iteration.state is DONE:
            return
        consumer = self._schedule.consumer
        try:
            with self._runtime.active():
                consumer.thread = threading.get_ident()
                while (
                    iteration.state is not DONE and (stream := self._claim(iteration)) is not None
                ):
                    launched = self._tasks.launch(iteration, stream)
                    if launched is not None:
                        self._tasks.complete(iteration, stream, launched)
            if iteration.error is not None:
                interruption = interruption_of(iteration.error)
                if interruption is not None:
                    raise interruption
        except BaseException:
            if consumer.claimed is iteration and _is_lost(iteration):
                self._give_back(iteration)
            raise
        finally:
            consumer.thread = 0
            consumer.claimed = None

    def may_run(self, iteration: Iteration) -> bool:
        """Return True if the oldest iteration waits for a thread to continue it on a stream.

        The caller holds the lock.
        """
        schedule = self._schedule
        if iteration.state is QUEUED:
            return not self._tasks.streams[iteration.stream].busy and iteration.error is None
        return iteration.state is SCHEDULED and bool(schedule.first_stream) and schedule.may_begin()

    def _claim(self, iteration: Iteration) -> StreamExecutor | None:
        """Have the consumer go on with the oldest iteration, or begin it."""
        schedule = self._schedule
        with schedule.monitor.lock:
            if schedule.monitor.closed or not self.may_run(iteration):
                return None
            is_new = iteration.state is SCHEDULED
            stream = self._tasks.streams[schedule.first_stream if is_new else iteration.stream]
            state = BEGINNING if is_new else LAUNCHING
            iteration.check(state)
            self._before = iteration.state, iteration.stage, iteration.completed, iteration.stream
            self._stream = stream
            # Nothing is called from here on: a Ctrl-C comes before all of it, or after.
            schedule.consumer.claimed = iteration
            iteration.state = state
            if is_new:
                schedule.is_beginning = True
            else:
                iteration.stage += 1
                stream.busy = True
            return stream

    def _give_back(self, iteration: Iteration) -> None:
        """Put an iteration back to where it was before the consumer, interrupted, claimed it."""
        stream, schedule = self._stream, self._schedule
        assert stream is not None
        assert self._before is not None
        with schedule.monitor.lock:
            assert iteration.state in UNDONE
            iteration.state, iteration.stage, iteration.completed, iteration.stream = self._before
            iteration.program = None
            iteration.error = None
            if iteration.state is SCHEDULED:
                schedule.is_beginning = False
            else:
                stream.busy = False
            schedule.monitor.streams[stream.name].notify_all()


def _is_lost(iteration: Iteration) -> bool:
    """Return True if no thread would continue an iteration left in its present state."""
    error = iteration.error
    return iteration.state is not DONE or (error is not None and interruption_of(error) is not None)
