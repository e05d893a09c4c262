"""What workers do: begin iterations, enter stages on the CPU, carry samples through them."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from penstock.executor.cpu.chunks import chunk_size
from penstock.executor.cpu.runner import SampleRunner
from penstock.executor.iteration import COPYING, ENTERING, RUNNING, SCHEDULED

if TYPE_CHECKING:
    from penstock.executor.cpu.program import Program
    from penstock.executor.cpu.worker import Worker
    from penstock.executor.iteration import Iteration
    from penstock.executor.plan import Plan
    from penstock.executor.processes.remote import RemoteRunner, WorkerProcesses
    from penstock.executor.schedule import Schedule
    from penstock.executor.stages import Stages
    from penstock.executor.starting import Starter
    from penstock.executor.threads import Task


class CpuTasks:
    """Finds something for a worker to do, and does it.

    Parameters
    ----------
    plan
        The graph, cut into stages.
    schedule
        Where iterations are.
    starter
        What begins iterations.
    stages
        What makes a stage ready.
    fuse
        Whether neighbouring operators may be merged.
    fails_at_once
        Whether a bad sample ends its iteration.
    threads
        How many workers there are.
    processes
        Processes that carry the samples for them.
    """

    def __init__(
        self,
        plan: Plan,
        schedule: Schedule,
        starter: Starter,
        stages: Stages,
        *,
        fuse: bool,
        fails_at_once: bool,
        threads: int,
        processes: WorkerProcesses | None = None,
    ) -> None:
        self._plan = plan
        self._schedule = schedule
        self._starter = starter
        self._stages = stages
        self._fuse = fuse
        self._fails_at_once = fails_at_once
        self._processes = processes
        self._runners: list[dict[Program, SampleRunner | RemoteRunner]] = [
            {} for _ in range(threads)
        ]
        """What each worker runs samples with; not the worker's own, who must not keep alive what
        programs refer to.
        """

    def find_task(self) -> Task | None:
        """Samples of an iteration, or one that is to begin or to enter a stage.

        The caller holds the lock.
        """
        first_is_full = False
        schedule = self._schedule
        for iteration in schedule.queue:
            if iteration.error is not None:
                continue
            state = iteration.state
            if state is RUNNING:
                program = iteration.program
                assert program is not None
                if program.concurrency.is_full():
                    first_is_full |= iteration.stage == 0
                    continue
                if iteration.next >= iteration.size and not iteration.queue:
                    continue
                limit, batches = program.concurrency.limit, len(schedule.queue)
                samples = iteration.take(chunk_size(iteration, program, limit, batches))
                if samples:
                    iteration.in_flight += 1
                    program.concurrency.enter()
                    schedule.wake_worker()
                    return self._run, iteration, samples
            elif state is SCHEDULED:
                if first_is_full or schedule.first_stream or not schedule.may_begin():
                    return None
                schedule.begin(iteration)
                return self._begin, iteration, None
            elif state is COPYING:
                iteration.change(ENTERING)
                return self._enter, iteration, None
        return None

    def _begin(self, iteration: Iteration, _nothing: None, _worker: Worker) -> None:
        self._starter.begin(iteration)

    def _enter(self, iteration: Iteration, _nothing: None, _worker: Worker) -> None:
        """Wait for copies from the GPU, and make the stage that reads them ready."""
        program: Program | None = None
        failed: BaseException | None = None
        try:
            for r in self._plan.stages[iteration.stage + 1].reads:
                buffer = iteration.buffers[r]
                if buffer is not None:  # no sample took the branch
                    buffer.wait()
            program = self._stages.enter(iteration, iteration.stage + 1)
        except BaseException as error:  # whatever it is, somebody waits for this iteration
            failed = error
        schedule = self._schedule
        with schedule.monitor.lock:
            schedule.follow(iteration, program, failed)
            schedule.advance(iteration)
            schedule.tell_progress()

    def _run(self, iteration: Iteration, samples: list[int], worker: Worker) -> None:
        """Carry samples through their stage; go on with the iteration if they were the last."""
        program = iteration.program
        assert program is not None
        failures: list[tuple[int, BaseException]] = []
        failed: BaseException | None = None
        elsewhere = 0.0
        beside = program.concurrency.busy
        start, worked = time.perf_counter(), time.thread_time()
        try:
            runners = self._runners[worker.number]
            runner = runners.get(program)
            if runner is None:
                runner = SampleRunner(program, worker.arena, materialise_views=not self._fuse)
                if self._processes is not None and not (program.is_light and self._plan.streams):
                    runner = self._processes.runner(program, worker.number, runner)
                runners[program] = runner
            runner.bind(iteration)
            try:
                failures = runner.run(samples)
            finally:
                runner.release()
            elsewhere = runner.processor_seconds
        except BaseException as error:  # whatever it is, somebody waits for this iteration
            failed = error
        worked = (time.thread_time() - worked + elsewhere) / len(samples)
        seconds = (time.perf_counter() - start) / len(samples)
        program.note_time(seconds, worked)
        schedule = self._schedule
        with schedule.monitor.lock:
            iteration.in_flight -= 1
            if program.is_sent != bool(elsewhere):
                program.is_sent = bool(elsewhere)
                program.concurrency.start_over(tries=not elsewhere)
            program.concurrency.leave(beside, seconds, program.processor_seconds)
            if failed is not None and iteration.error is None:
                iteration.error = failed
            iteration.failures.update(failures)
            if failures and self._fails_at_once:
                iteration.next = iteration.size  # the rest of the batch is of no use any more
            schedule.advance(iteration)
            schedule.tell_progress()
