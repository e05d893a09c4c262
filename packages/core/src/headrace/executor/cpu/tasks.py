"""Tasks of workers: begin iterations, enter stages on the CPU, carry samples through them."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING

from headrace.compilation_notice import compiling
from headrace.executor.cpu.chunk_run import ChunkRun
from headrace.executor.cpu.chunks import chunk_size
from headrace.executor.cpu.dispatcher import WORKERS_A_THREAD, Dispatcher
from headrace.executor.cpu.profile_labels import labels_of
from headrace.executor.cpu.runner import SampleRunner
from headrace.executor.cpu.shared_loops import ChunkLoops, SharedLoops
from headrace.executor.cpu.step_marks import StepMarks
from headrace.executor.iteration import COPYING, ENTERING, RUNNING, SCHEDULED
from headrace.operators.support.python_function import FunctionCaller
from headrace.profiling.recorder import NO_RECORD, Label, ProfileRecorder, SpanRecorder

if TYPE_CHECKING:
    from headrace.executor.cpu.program import Program
    from headrace.executor.cpu.shared_loops import SharedLoop
    from headrace.executor.cpu.worker import WorkerThread
    from headrace.executor.iteration import Iteration
    from headrace.executor.plan import Plan
    from headrace.executor.processes.pipeline_processes import WorkerProcesses
    from headrace.executor.processes.remote import RemoteRunner
    from headrace.executor.schedule import Schedule
    from headrace.executor.stages import Stages
    from headrace.executor.starting import Starter
    from headrace.executor.threads import Continuation, Task


_LABELS = (
    Label("begin a batch: draw from readers", "engine"),
    Label("wait for copies from the GPU", "engine"),
    Label("send samples to a worker process", "engine"),
    Label("wait for a worker process", "process"),
)


class CpuTasks:
    """Finds something for a worker to do, and does it."""

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
        recorder: SpanRecorder = NO_RECORD,
    ) -> None:
        self._recorder = recorder
        self._code = recorder.code("engine", lambda: _LABELS)
        self._plan = plan
        self._schedule = schedule
        self._starter = starter
        self._stages = stages
        self._fuse = fuse
        self._fails_at_once = fails_at_once
        self._processes = processes
        self.calls_functions = (
            processes is not None
            and processes.functions is not None
            and any(issubclass(n.schema.cls, FunctionCaller) for n in plan.nodes)
        )
        """True if a thread that continues an iteration may need a worker process for a function: it
        must give back those that it has before."""
        self._loops = SharedLoops(schedule.monitor)
        self._runners: list[dict[Program, SampleRunner | RemoteRunner]] = [
            {} for _ in range(threads)
        ]
        """Runners of each worker. The worker must not own them, as it would keep alive the objects
        that programs refer to."""

    def find_task(self, *, queued: bool = False) -> Task | None:
        """Samples of an iteration, or one that is to begin or to enter a stage.

        The caller holds the lock.
        """
        loop = None if queued else self._loops.find()
        if loop is not None:
            self._schedule.wake_worker()
            return self._help, loop, None
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
                if not program.is_sent if queued else concurrency.is_full():
                    first_is_full |= iteration.stage == 0 and not program.is_sent
                    continue
                if iteration.next >= iteration.size and not iteration.queue:
                    continue
                threads = concurrency.threads if program.is_sent else concurrency.limit
                batches = max(len(schedule.queue), schedule.tuner.most)
                samples = iteration.take(chunk_size(iteration, program, threads, batches))
                if samples:
                    # Counted under the lock they were taken under: until it is 0 again, `advance`
                    # does not complete the stage.
                    iteration.in_flight += 1
                    if not queued:
                        concurrency.enter()
                        schedule.wake_worker()
                    elif iteration.next < iteration.size:
                        schedule.monitor.wake_dispatcher()
                    return self._run, iteration, samples
            elif state is SCHEDULED:
                if first_is_full or schedule.first_stream or not schedule.may_begin():
                    return None
                if schedule.consumer.does_all:
                    return None
                if queued and self.calls_functions:
                    return None
                schedule.begin(iteration)
                return self._begin, iteration, None
            elif state is COPYING and not queued:
                iteration.change(ENTERING)
                return self._enter, iteration, None
        return None

    def find_more(self, *, is_short: bool) -> Task | None:
        """Something to do for a thread that waits for worker processes already. The caller holds
        the lock.
        """
        task = self.find_task(queued=True)
        if task is None and is_short and self._schedule.widen():
            task = self.find_task(queued=True)
        return task

    def _begin(self, iteration: Iteration, _nothing: None, _worker: WorkerThread) -> None:
        with self._recorder.span(self._code, iteration.number, iteration.size):
            self._starter.begin(iteration)

    def _enter(self, iteration: Iteration, _nothing: None, _worker: WorkerThread) -> None:
        """Wait for copies from the GPU, and make the stage that reads them ready."""
        program: Program | None = None
        failed: BaseException | None = None
        try:
            with self._recorder.span(self._code + 1, iteration.number, iteration.size):
                for r in self._plan.stages[iteration.stage + 1].reads:
                    buffer = iteration.buffers[r]
                    if buffer is not None:  # no sample took the branch
                        buffer.wait()
                program = self._stages.enter(iteration, iteration.stage + 1)
        except BaseException as error:  # of any kind: a thread waits for this iteration
            failed = error
        schedule = self._schedule
        with schedule.monitor.lock:
            schedule.follow(iteration, program, failed)
            schedule.advance(iteration)
            schedule.tell_progress()

    def _run(
        self, iteration: Iteration, samples: list[int], worker: WorkerThread
    ) -> Continuation | None:
        """Carry samples through their stage, and continue the iteration after the last ones; or
        send them to a worker process, and return the continuation that waits for it.
        """
        run = ChunkRun(iteration, samples)
        self.start(run, worker, None)
        if run.sent is not None:
            return Dispatcher(self, self._schedule.monitor, worker, run).go_on
        self.end(run, None)
        return None

    def start(
        self, run: ChunkRun, worker: WorkerThread, ahead: ChunkRun | None, *, spreads: bool = True
    ) -> None:
        """Carry samples, or send them to a worker process; see `RemoteRunner.send`."""
        worked = time.thread_time()
        try:
            runner = self._runner(run.program, worker)
            if isinstance(runner, SampleRunner):
                runner.bind(run.iteration)
                loops = runner.loops
                if loops is not None:
                    loops.begin()
                try:
                    run.failures = runner.run(run.samples)
                finally:
                    runner.release()
                    run.loops = loops
            else:
                run.runner = runner
                queued = None if ahead is None else ahead.sent
                run.sent = runner.send(run.iteration, run.samples, queued, spreads=spreads)
        except BaseException as error:  # of any kind: a thread waits for this iteration
            run.failed = error
        run.worked = time.thread_time() - worked

    def _help(self, loop: SharedLoop, _nothing: None, worker: WorkerThread) -> None:
        """Take part in the loop of a chunk that another worker has."""
        recorder, program = self._recorder, loop.program
        if not recorder.is_on:
            self._loops.help(loop, worker.arena)
            return
        base = self._base(program)
        own = next(k for k, step in enumerate(program.steps) if step.node is loop.node)
        # Its samples count where the chunk is.
        with (
            recorder.span(base + len(program.steps), loop.iteration),
            recorder.span(base + own, loop.iteration),
        ):
            self._loops.help(loop, worker.arena)

    def _base(self, program: Program) -> int:
        """Code of the first step of a program in the record."""
        return self._recorder.code(id(program), partial(labels_of, program))

    def _runner(self, program: Program, worker: WorkerThread) -> SampleRunner | RemoteRunner:
        runners = self._runners[worker.number]
        runner = runners.get(program)
        if runner is None:
            runner = runners[program] = self._make_runner(program, worker)
        return runner

    def _make_runner(self, program: Program, worker: WorkerThread) -> SampleRunner | RemoteRunner:
        recorder, base = self._recorder, self._base(program)
        marks = None
        if isinstance(recorder, ProfileRecorder):
            marks = StepMarks(program, recorder.here(), base)
        runner = SampleRunner(program, worker.arena, materialise_views=not self._fuse, marks=marks)
        if self._is_carried_elsewhere(program):
            assert self._processes is not None
            codes = base, self._code + 2, self._code + 3
            return self._processes.runner(program, runner, recorder, codes)
        if len(self._runners) > 1:  # other workers take part in its loops
            runner.share_loops(ChunkLoops(self._loops, program))
        return runner

    def _is_carried_elsewhere(self, program: Program) -> bool:
        """Return True if worker processes carry the samples of a program."""
        here = program.reads_apart or (program.is_pass_through and self._plan.streams)
        return self._processes is not None and not here

    def end(self, run: ChunkRun, following: ChunkRun | None) -> None:
        """Record the results of a chunk; the thread waits for `following` next, if any."""
        iteration, program = run.iteration, run.program
        count = len(run.samples)
        seconds = time.perf_counter() - run.started
        # A thread that compiles a kernel, or waits for one, takes a thousand times as long.
        is_usual = compiling.seconds == run.compiling_seconds
        worked, shared = run.worked + run.elsewhere, 0.0
        if run.loops is not None:
            seconds += run.loops.helped_seconds
            worked += run.loops.helped_processor_seconds
            shared = run.loops.seconds
        if is_usual:
            program.note_time(seconds, worked, count, shared)
        schedule = self._schedule
        with schedule.monitor.lock:
            iteration.in_flight -= 1
            is_sent = bool(run.elsewhere)
            if program.is_sent is not is_sent and run.failed is None:
                program.is_sent = is_sent
                threads = program.concurrency.threads
                if is_sent and not program.batch_steps and not self._plan.streams:
                    threads = -(-threads // WORKERS_A_THREAD)
                program.concurrency.start_over(tries=not is_sent, limit=threads)
            if run.is_counted:
                program.concurrency.leave(
                    run.beside,
                    seconds / count if is_usual else None,
                    all_needed=program.needs_all_threads,
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
