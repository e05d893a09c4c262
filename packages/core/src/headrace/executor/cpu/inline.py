"""Inline execution on the CPU: the consumer's thread carries the samples of light iterations."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from headrace._forking import no_fork
from headrace.executor.cpu.arena import Arena
from headrace.executor.cpu.runner import SampleRunner
from headrace.executor.inline_choice import InlineChoice
from headrace.executor.interruption import interruption_of
from headrace.executor.iteration import BEGINNING, DONE, SCHEDULED

if TYPE_CHECKING:
    from headrace.executor.cpu.program import Program
    from headrace.executor.iteration import Iteration
    from headrace.executor.plan import Plan
    from headrace.executor.programs import Programs
    from headrace.executor.schedule import Schedule
    from headrace.executor.stages import Stages
    from headrace.executor.starting import Starter

_LIGHT_SECONDS = 1e-3
"""Work on a batch up to which the consumer may do it: threads share the interpreter, of which such
a batch is mostly."""


def may_carry_inline(plan: Plan, readers: dict[int, Any]) -> bool:
    """Return True if the consumer's thread may do whole iterations.

    What a Ctrl-C interrupts there is done once more: so nothing of it may be the user's code, see
    the whole batch, or draw from a reader that cannot go back.
    """
    if plan.streams or not all(readers[id(node)].draws_again for node in plan.readers):
        return False
    return all(
        not stage.batch_nodes
        and not any(node.schema.calls_user for node in stage.sample_nodes)
        and all(node.schema.is_librarys for node in stage.sample_nodes)
        for stage in plan.stages
    )


class InlineCarrier:
    """Does light iterations in the consumer's thread, one after the other, without a hand-over.

    To wake a worker, to wait for it and to be woken takes as long as much of what there is to do.
    Whether that is quicker as a whole is found out by measuring (`InlineChoice`).

    An iteration that fails here is given to the workers as it was: they find the sample that is to
    blame, and do what the user wants done about it. What a signal's handler has raised comes up
    besides.
    """

    def __init__(
        self,
        schedule: Schedule,
        starter: Starter,
        stages: Stages,
        programs: Programs,
        *,
        fuse: bool,
    ) -> None:
        self._schedule = schedule
        self._starter = starter
        self._stages = stages
        self._programs = programs
        self._fuse = fuse
        self._choice = InlineChoice()
        self._arena = Arena()
        self._runners: dict[Program, SampleRunner] = {}

    def begin_waiting(self, now: float) -> None:
        """Note when the consumer asked for an iteration, in seconds."""
        self._go_on(alone=self._choice.begin_waiting(now) and self._is_light())

    def end_waiting(self, now: float) -> None:
        """Note when it got one, in seconds."""
        self._choice.end_waiting(now)

    def leave_to_workers(self) -> None:
        """Have workers do what is scheduled."""
        self._go_on(alone=False)

    def _go_on(self, *, alone: bool) -> None:
        schedule = self._schedule
        if schedule.consumer.does_all is not alone:
            with schedule.monitor.lock:
                schedule.consumer.does_all = alone
                schedule.wake_worker()

    def _is_light(self) -> bool:
        """Return True if iterations take as little as far as is known."""
        size = self._schedule.queue[0].size
        programs = self._programs.last_on_cpu()
        seconds = sum(p.processor_seconds * size for p in programs if p.steps)
        return bool(programs) and seconds < _LIGHT_SECONDS

    def may_run(self, iteration: Iteration) -> bool:
        """Return True if the oldest iteration is left to the consumer. It holds the lock."""
        schedule = self._schedule
        alone = schedule.consumer.does_all and iteration.state is SCHEDULED
        return alone and iteration.error is None and schedule.may_begin()

    def run_pending(self, iteration: Iteration) -> None:
        """Do the oldest iteration, if it is left to the consumer."""
        schedule = self._schedule
        monitor, consumer = schedule.monitor, schedule.consumer
        if iteration.state is not SCHEDULED:
            return
        try:
            with monitor.lock:
                if monitor.closed or not self.may_run(iteration):
                    return
                # Nothing is called from here on: a Ctrl-C comes before all of it, or after.
                consumer.claimed = iteration
                iteration.state = BEGINNING
                schedule.is_beginning = True
            with no_fork:
                self._carry(iteration)
            with monitor.lock:
                schedule.is_beginning = False
                schedule.finish(iteration)
                schedule.tell_progress()
        except BaseException as error:
            if consumer.claimed is iteration and iteration.state is not DONE:
                self._give_back(iteration)
                interruption = interruption_of(error)
                if interruption is None:
                    return
                raise interruption from None
            raise
        finally:
            consumer.claimed = None

    def _carry(self, iteration: Iteration) -> None:
        program: Program | str | None = self._starter.prepare(iteration)
        while program is not None:
            assert not isinstance(program, str), "there is no stage on a GPU"
            if program.steps:
                began = time.perf_counter()
                runner = self._runners.get(program)
                if runner is None:
                    runner = self._runners[program] = SampleRunner(
                        program, self._arena, materialise_views=not self._fuse, is_strict=True
                    )
                runner.bind(iteration)
                try:
                    failures = runner.run(list(range(iteration.size)))
                finally:
                    runner.release()
                if failures:
                    raise failures[0][1]
                seconds = time.perf_counter() - began
                program.note_time(seconds, seconds, iteration.size)
            program = self._stages.complete(iteration, program)

    def _give_back(self, iteration: Iteration) -> None:
        """Let workers do an iteration from its beginning on."""
        schedule = self._schedule
        with schedule.monitor.lock:
            iteration.state = SCHEDULED
            iteration.stage = iteration.completed = -1
            iteration.buffers = []
            self._starter.undo(iteration)
            schedule.is_beginning = schedule.consumer.does_all = False
            schedule.wake_worker()
            schedule.tell_progress()
