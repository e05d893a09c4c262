"""What workers do: begin iterations, enter stages on the CPU, carry samples through them."""

from __future__ import annotations

import functools
import operator
import time
from collections import deque
from typing import TYPE_CHECKING

from penstock._forking import no_fork
from penstock.executor.cpu.chunks import chunk_size
from penstock.executor.cpu.runner import SampleRunner
from penstock.executor.iteration import COPYING, ENTERING, RUNNING, SCHEDULED

if TYPE_CHECKING:
    from penstock.executor.cpu.program import Program
    from penstock.executor.cpu.worker import Worker
    from penstock.executor.iteration import Iteration
    from penstock.executor.plan import Plan
    from penstock.executor.processes.remote import RemoteRunner, SentSamples, WorkerProcesses
    from penstock.executor.schedule import Schedule
    from penstock.executor.stages import Stages
    from penstock.executor.starting import Starter
    from penstock.executor.threads import Rest, Task


_WORKERS_A_THREAD = 8
"""Worker processes that a thread keeps at work. Each thread more hands the interpreter to and fro,
and is woken on another core: with 16 processes and threads on 16 cores, log-mel spectrograms were
made at 38,000 clips a second, and at 52,000 where all threads were kept on one core."""
_CHUNKS_A_WORKER = 2
"""Chunks that a process has been sent: one that it is at, and the next."""
_MOST_IN_A_ROW = 256
"""Chunks that a thread sends before it waits for the last of them and looks at all there is to do
again."""


class ChunkRun:
    """A chunk of samples on its way through a stage.

    Parameters
    ----------
    iteration
        Whose samples they are.
    samples
        Their numbers.
    number
        How many chunks its thread has sent before it, without waiting for the last.
    """

    __slots__ = (
        "beside",
        "elsewhere",
        "failed",
        "failures",
        "is_counted",
        "iteration",
        "number",
        "program",
        "runner",
        "samples",
        "sent",
        "started",
        "worked",
    )

    def __init__(self, iteration: Iteration, samples: list[int], number: int = 0) -> None:
        program = iteration.program
        assert program is not None
        self.iteration = iteration
        self.samples = samples
        self.number = number
        self.program: Program = program
        self.runner: RemoteRunner
        self.sent: SentSamples | None = None
        """What a worker process was sent, where it is not done in the thread."""
        self.is_counted = not number
        """Whether its thread counts, for its sake, as one at work; see `Concurrency`."""
        self.beside = program.concurrency.busy
        """How many chunks were worked on when it began."""
        self.started = time.perf_counter()
        """When somebody took it."""
        self.worked = 0.0
        """Seconds of a processor that it has taken in the thread, ..."""
        self.elsewhere = 0.0
        """... and in a worker process."""
        self.failures: list[tuple[int, BaseException]] = []
        self.failed: BaseException | None = None
        """What has failed altogether."""


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

    def find_task(self, *, behind: bool = False) -> Task | None:
        """Samples of an iteration, or one that is to begin or to enter a stage.

        The caller holds the lock.

        Parameters
        ----------
        behind
            Whether it is for a thread that waits for worker processes already.
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
                concurrency = program.concurrency
                if not program.is_sent if behind else concurrency.is_full():
                    first_is_full |= iteration.stage == 0 and not program.is_sent
                    continue
                if iteration.next >= iteration.size and not iteration.queue:
                    continue
                threads = concurrency.threads if program.is_sent else concurrency.limit
                batches = len(schedule.queue)
                samples = iteration.take(chunk_size(iteration, program, threads, batches))
                if samples:
                    iteration.in_flight += 1
                    if not behind:
                        concurrency.enter()
                        schedule.wake_worker()
                    return self._run, iteration, samples
            elif state is SCHEDULED:
                if first_is_full or schedule.first_stream or not schedule.may_begin():
                    return None
                schedule.begin(iteration)
                return self._begin, iteration, None
            elif state is COPYING and not behind:
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

    def _run(self, iteration: Iteration, samples: list[int], worker: Worker) -> Rest | None:
        """Carry samples through their stage, and go on with the iteration if they were the last; or
        send them to a worker process, and return what waits for it.
        """
        run = ChunkRun(iteration, samples)
        self._start(run, worker, None)
        if run.sent is not None:
            return functools.partial(self._go_on, deque([run]), worker)
        self._end(run, None)
        return None

    def _start(
        self, run: ChunkRun, worker: Worker, ahead: ChunkRun | None, *, spreads: bool = True
    ) -> None:
        """Carry samples, or send them to a worker process; see `RemoteRunner.send`."""
        worked = time.thread_time()
        try:
            runner = self._runner(run.program, worker)
            if isinstance(runner, SampleRunner):
                runner.bind(run.iteration)
                try:
                    run.failures = runner.run(run.samples)
                finally:
                    runner.release()
            else:
                run.runner = runner
                behind = None if ahead is None else ahead.sent
                run.sent = runner.send(run.iteration, run.samples, behind, spreads=spreads)
        except BaseException as error:  # whatever it is, somebody waits for this iteration
            run.failed = error
        run.worked = time.thread_time() - worked

    def _runner(self, program: Program, worker: Worker) -> SampleRunner | RemoteRunner:
        runners = self._runners[worker.number]
        runner = runners.get(program)
        if runner is None:
            runner = runners[program] = self._make_runner(program, worker)
        return runner

    def _make_runner(self, program: Program, worker: Worker) -> SampleRunner | RemoteRunner:
        runner = SampleRunner(program, worker.arena, materialise_views=not self._fuse)
        if self._is_carried_elsewhere(program):
            assert self._processes is not None
            return self._processes.runner(program, runner)
        return runner

    def _is_carried_elsewhere(self, program: Program) -> bool:
        """Whether worker processes carry the samples of a program."""
        return self._processes is not None and not (program.is_light and self._plan.streams)

    def _go_on(self, pending: deque[ChunkRun], worker: Worker) -> Rest | None:
        """Send worker processes what they can take, wait for the first of the chunks that are
        `pending`, in the order in which they were sent, and return what waits for the others.
        """
        run = pending[0]
        program = run.program
        workers = -(-program.concurrency.threads // program.concurrency.limit)
        while (
            len(pending) < _CHUNKS_A_WORKER * workers
            and pending[-1].number < _MOST_IN_A_ROW
            and program.is_sent
            and not no_fork.is_awaited
            and self._send_another(pending, workers, worker)
        ):
            pass
        pending.popleft()
        sent = run.sent
        assert sent is not None
        worked = time.thread_time()
        try:
            run.failures = run.runner.receive(sent)
            run.elsewhere = run.runner.processor_seconds
        except BaseException as error:  # whatever it is, somebody waits for this iteration
            run.failed = error
        run.worked += time.thread_time() - worked
        self._end(run, pending[0] if pending else None)
        return functools.partial(self._go_on, pending, worker) if pending else None

    def _send_another(self, pending: deque[ChunkRun], workers: int, worker: Worker) -> bool:
        """Do what else there is to do, if anything; samples are sent to one of so many workers."""
        monitor = self._schedule.monitor
        with monitor.lock:
            task = None if monitor.closed else self.find_task(behind=True)
        if task is None:
            return False
        do, iteration, samples = task
        if samples is None:
            do(iteration, None, worker)
            return True
        run = ChunkRun(iteration, samples, pending[-1].number + 1)
        ahead, count = _least_busy(pending)
        self._start(run, worker, ahead, spreads=count < workers)
        if run.sent is None:
            self._end(run, None)
        else:
            pending.append(run)
        return True

    def _end(self, run: ChunkRun, following: ChunkRun | None) -> None:
        """Take in what became of a chunk, and that its thread waits for another one."""
        iteration, program = run.iteration, run.program
        count = len(run.samples)
        seconds = (time.perf_counter() - run.started) / count
        program.note_time(seconds, (run.worked + run.elsewhere) / count)
        schedule = self._schedule
        with schedule.monitor.lock:
            iteration.in_flight -= 1
            is_sent = bool(run.elsewhere)
            if program.is_sent is not is_sent and run.failed is None:
                program.is_sent = is_sent
                threads = program.concurrency.threads
                if is_sent and not program.batch_steps and not self._plan.streams:
                    threads = -(-threads // _WORKERS_A_THREAD)
                program.concurrency.start_over(tries=not is_sent, limit=threads)
            if run.is_counted:
                program.concurrency.leave(
                    run.beside,
                    seconds,
                    program.processor_seconds,
                    is_awaited=schedule.consumer.is_inside,
                )
            if following is not None:
                following.program.concurrency.enter()
                following.is_counted = True
            if run.failed is not None and iteration.error is None:
                iteration.error = run.failed
            iteration.failures.update(run.failures)
            if run.failures and self._fails_at_once:
                iteration.next = iteration.size  # the rest of the batch is of no use any more
            schedule.advance(iteration)
            schedule.tell_progress()


def _least_busy(pending: deque[ChunkRun]) -> tuple[ChunkRun | None, int]:
    """The last chunk of the worker process that has been sent the fewest, and how many processes
    there are.
    """
    last: dict[int, tuple[int, ChunkRun]] = {}
    for run in pending:
        if run.sent is not None and run.sent.worker is not None:
            key = id(run.sent.worker)
            last[key] = last[key][0] + 1 if key in last else 1, run
    if not last:
        return None, 0
    return min(last.values(), key=operator.itemgetter(0))[1], len(last)
