"""The iterations of an executor in their order, and how each goes on from stage to stage."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING

from headrace.executor.iteration import (
    BEGINNING,
    COMPLETING,
    COPYING,
    DONE,
    HELD,
    QUEUED,
    RUNNING,
    SCHEDULED,
)
from headrace.executor.stages import ENTER
from headrace.executor.threads import ExecutorThread

if TYPE_CHECKING:
    from headrace.executor.cpu.program import Program
    from headrace.executor.iteration import Iteration
    from headrace.executor.monitor import Monitor
    from headrace.executor.plan import Plan
    from headrace.executor.prefetch_tuner import PrefetchTuner
    from headrace.executor.stages import Stages
    from headrace.executor.statistics import Statistics


class Consumer:
    """The consumer's own part in iterations; see `headrace.executor.gpu.inline`."""

    __slots__ = ("claimed", "does_all", "is_inline", "is_inside", "thread")

    def __init__(self) -> None:
        self.claimed: Iteration | None = None
        """Iteration it works on, until it is released for others. Guarded by the monitor."""
        self.is_inside = False
        """True while it schedules an iteration or waits for one: the pipeline sets the pace."""
        self.is_inline = False
        """True if it launches all stages itself, so that no stream's thread is notified."""
        self.does_all = False
        """True if it does iterations itself, as a whole, so that no worker begins one; see
        `headrace.executor.cpu.inline`."""
        self.thread = 0
        """The number of its thread, while that works on an iteration."""

    @property
    def is_here(self) -> bool:
        """True if it is the calling thread, at work on an iteration."""
        return self.thread == threading.get_ident()


class Schedule:
    """Scheduled iterations, and the next step of each. All methods hold the monitor's lock."""

    def __init__(
        self,
        plan: Plan,
        stages: Stages,
        monitor: Monitor,
        statistics: Statistics,
        *,
        redraws: bool,
        shares_streams: bool,
        tuner: PrefetchTuner,
    ) -> None:
        self.monitor = monitor
        self.tuner = tuner
        self.queue: deque[Iteration] = deque()
        """Scheduled and not yet handed over, oldest first."""
        self.consumer = Consumer()
        self.is_beginning = False
        """True if an iteration is `BEGINNING`: readers draw for one at a time."""
        self.is_awaited = False
        """True if a thread waits for running samples, and not just for whole iterations."""
        self.first_stream = ""
        """Stream whose thread begins iterations, if workers have no work before it."""
        self.reads_files = False
        """True if files of whole batches are read before that stream."""
        self.in_order = stages_in_order(plan)
        """Stages that iterations complete one after the other."""
        self._stages = stages
        self._statistics = statistics
        self._redraws = redraws
        self._shares_streams = shares_streams
        self._last_stage_that_redraws = max(
            (stage.number for stage in plan.stages if stage.device == "mixed"), default=0
        )

    def add(self, iteration: Iteration) -> None:
        """Take in the next iteration."""
        self.queue.append(iteration)
        if not self.first_stream:
            self.wake_worker()
        elif not self.consumer.is_inline:
            self.monitor.streams[self.first_stream].notify()

    # -- who has something to do ---------------------------------------------------------------

    def may_begin(self) -> bool:
        """Return True if the oldest iteration that has not begun may begin.

        Readers draw in the order of iterations, one at a time. Where bad samples are replaced by
        later ones of the reader, those must not be drawn yet.
        """
        if self.is_beginning or (self.tuner.varies and self._in_progress() >= self.tuner.now):
            return False
        return not (self._redraws and self._may_redraw())

    def _in_progress(self) -> int:
        """Number of iterations that have begun: they do so in order."""
        for number, iteration in enumerate(self.queue):
            if iteration.state is SCHEDULED:
                return number
        return len(self.queue)

    def widen(self) -> bool:
        """Allow one more iteration in progress, if workers wait for that."""
        tuner = self.tuner
        if not (self.consumer.is_inside and tuner.now < tuner.most):
            return False
        if not tuner.now <= self._in_progress() < len(self.queue):
            return False
        tuner.widen()
        return True

    def hand_over(self) -> None:
        """Let go of the oldest iteration, which the consumer takes."""
        self.queue.popleft()
        if self.tuner.varies:
            self.tuner.note_taken([i.state is DONE for i in self.queue])
            self.wake_worker()

    def _may_redraw(self) -> bool:
        last = self._last_stage_that_redraws
        return any(
            i.state is not SCHEDULED and i.state is not DONE and i.stage <= last for i in self.queue
        )

    def begin(self, iteration: Iteration) -> None:
        """Have the calling thread begin an iteration."""
        iteration.change(BEGINNING)
        self.is_beginning = True

    def wake_worker(self) -> None:
        """Wake a worker if there is something to do for one.

        Waking a thread costs more than much of what there is to do, and even more where it finds
        nothing: it takes the interpreter from those that have work.
        """
        if self.consumer.does_all:
            return
        first_is_full = False
        for iteration in self.queue:
            state = iteration.state
            if state is DONE or iteration.error is not None:
                continue
            if state is SCHEDULED:
                if not first_is_full and self.may_begin():
                    if not self.first_stream:
                        self.monitor.work.notify()
                    elif self.reads_files:  # it may have had to wait for others
                        self.monitor.streams[self.first_stream].notify()
                return
            if state is RUNNING:
                program = iteration.program
                assert program is not None
                is_taken = iteration.next >= iteration.size and not iteration.queue
                if is_taken and program.is_sent:
                    continue  # most, where many worker processes have a batch each
                if program.concurrency.is_full():
                    if program.is_sent:
                        self.monitor.wake_dispatcher()
                    first_is_full |= iteration.stage == 0 and not program.is_sent
                    continue
                if is_taken:
                    continue
            elif state is not COPYING:
                continue
            self.monitor.work.notify()
            return

    def wake_other(self) -> None:
        """Wake a worker, if the calling thread is none that looks for something to do next, and
        wakes another one where it leaves something.
        """
        thread = threading.current_thread()
        if not (isinstance(thread, ExecutorThread) and thread.looks_for_samples):
            self.wake_worker()

    def wake_stream(self, stream: str) -> None:
        """Have an iteration looked at that is `QUEUED` for `stream`."""
        # A thread that is about to look for a task anyway finds it without a wake-up.
        if self._shares_streams and self.consumer.is_here:
            return
        thread = threading.current_thread()
        if not (isinstance(thread, ExecutorThread) and stream in thread.looks_at):
            self.monitor.streams[stream].notify()

    # -- from stage to stage -------------------------------------------------------------------

    def advance(self, iteration: Iteration) -> None:
        """Go on to whatever comes next, if nothing is left to do in the stage."""
        while (
            iteration.state is RUNNING
            and iteration.in_flight == 0
            and iteration.next >= iteration.size
            and not iteration.queue
            and iteration.error is None
        ):
            number = iteration.stage
            if number in self.in_order and is_early(self.queue, iteration, number):
                iteration.change(HELD)
                break
            program = iteration.program
            assert program is not None
            iteration.change(COMPLETING)
            following: Program | str | None = None
            failed: BaseException | None = None
            # Batch operators run here, for which the lock must be free. `COMPLETING` makes this
            # thread the owner meanwhile: other threads leave the iteration alone.
            self.monitor.lock.release()
            try:
                following = self._stages.complete(iteration, program)
            except BaseException as error:  # of any kind: a thread waits for this iteration
                failed = error
            finally:
                self.monitor.lock.acquire()
            self.follow(iteration, following, failed)
        if iteration.error is not None and not iteration.is_busy:
            self.finish(iteration)
        if self.in_order:
            self._advance_held()

    def _advance_held(self) -> None:
        """Go on with an iteration for which earlier ones do not have to complete a stage now."""
        for iteration in self.queue:
            if iteration.state is HELD and not is_early(self.queue, iteration, iteration.stage):
                iteration.change(RUNNING)
                self.wake_worker()  # the calling thread is going to be busy
                self.advance(iteration)  # which comes back here for the next
                return

    def follow(
        self, iteration: Iteration, following: Program | str | None, failed: BaseException | None
    ) -> None:
        """End the calling thread's work on a stage."""
        if failed is not None and iteration.error is None:
            iteration.error = failed
        if iteration.error is not None or following is None:
            self.finish(iteration)
            return
        consumer = self.consumer
        stream, program = "", None
        if not isinstance(following, str):
            state, program = RUNNING, following
        elif following is ENTER:
            state = COPYING
        else:
            state, stream = QUEUED, following
        iteration.check(state)
        # A Ctrl-C comes before all of the next statements, or after them: nothing is called.
        if consumer.claimed is iteration:
            consumer.claimed = None
        iteration.state = state
        iteration.program = program
        iteration.stream = stream
        if stream:
            self.wake_stream(stream)
        else:
            self.wake_other()

    def finish(self, iteration: Iteration) -> None:
        """Mark an iteration as done, whatever has become of it."""
        if iteration.state is DONE:
            return
        iteration.change(DONE)
        iteration.program = None
        iteration.seconds = time.perf_counter() - iteration.started
        self._statistics.finished(iteration)
        self.monitor.finished.notify_all()
        self.wake_other()  # the next iteration may begin now
        if self.in_order:  # a later one may have waited for this one
            for stream in self.monitor.streams.values():
                stream.notify()

    def tell_progress(self) -> None:
        """Notify a thread that waits for running samples of finished ones."""
        if self.is_awaited:
            self.monitor.finished.notify_all()


def stages_in_order(plan: Plan) -> set[int]:
    """Numbers of the stages with operators that want iterations in their order."""
    return {
        stage.number
        for stage in plan.stages
        if any(node.schema.in_order for node in stage.batch_nodes)
    }


def is_early(queue: Iterable[Iteration], iteration: Iteration, number: int) -> bool:
    """Return True if an iteration of `queue`, oldest first, before this one has yet to complete
    stage `number`.
    """
    for other in queue:
        if other is iteration:
            return False
        if other.state is not DONE and other.error is None and other.completed < number:
            return True
    return False
