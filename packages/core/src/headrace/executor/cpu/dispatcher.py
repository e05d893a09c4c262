"""Keeps worker processes at work, from one thread."""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING

from headrace._forking import no_fork
from headrace.executor.cpu.chunk_run import ChunkRun

if TYPE_CHECKING:
    from headrace.executor.cpu.tasks import CpuTasks
    from headrace.executor.cpu.worker import WorkerThread
    from headrace.executor.monitor import Monitor
    from headrace.executor.processes.worker_process import WorkerProcess
    from headrace.executor.threads import Continuation

WORKERS_A_THREAD = 8
"""Worker processes that a thread keeps at work. Each thread more hands the interpreter to and fro,
and is woken on another core: with 16 processes and threads on 16 cores, log-mel spectrograms were
made at 38,000 clips a second, and at 52,000 where all threads were kept on one core."""
_CHUNKS_A_WORKER = 2
"""Chunks that a process has been sent: one that it is at, and the next."""


class Dispatcher:
    """Sends chunks of samples to worker processes, and takes their answers as they come."""

    def __init__(
        self, tasks: CpuTasks, monitor: Monitor, worker: WorkerThread, first: ChunkRun
    ) -> None:
        self._tasks = tasks
        self._monitor = monitor
        self._worker = worker
        self._pending: list[ChunkRun] = []
        """Chunks that have been sent, in that order."""
        self._lines: dict[WorkerProcess, list[ChunkRun]] = {}
        """The same by the worker process that has them."""
        self._may_be_woken = False
        """True if `Monitor.dispatchers` contains this thread."""
        self._answered: deque[ChunkRun] = deque()
        """Pending chunks that were answered, or that have no process."""
        self._looks_at, worker.looks_at = worker.looks_at, frozenset()
        """The streams that the thread looks at when it waits for nothing; until then, the streams'
        own threads are woken."""
        self._enter(first)

    def go_on(self) -> Continuation | None:
        """Send chunks to worker processes, wait for one answer, and return the continuation for the
        others.
        """
        pending = self._pending
        program = pending[0].program
        workers = -(-program.concurrency.threads // program.concurrency.limit)
        while (
            len(pending) < _CHUNKS_A_WORKER * workers
            and program.is_sent
            and not no_fork.is_awaited
            and not pending[0].runner.is_awaited()
            and self._send_another(workers)
        ):
            pass
        run = self._next_answered(workers)
        if self._may_be_woken:
            with self._monitor.lock:
                self._monitor.dispatchers.discard(self._worker.wakeup)
            self._may_be_woken = False
        if run is None:
            return self.go_on
        runs = [run]
        self._receive(run)
        while pending and self._tasks.calls_functions:
            runs.append(pending[0])
            self._receive(pending[0])
        if not pending:
            self._worker.looks_at = self._looks_at
        for run in runs:
            self._tasks.end(run, pending[0] if pending else None)
        return self.go_on if pending else None

    def _receive(self, run: ChunkRun) -> None:
        """Receive the results of a chunk; wait if needed."""
        self._leave(run)
        sent = run.sent
        assert sent is not None
        worked = time.thread_time()
        try:
            run.failures = run.runner.receive(sent)
            run.elsewhere = run.runner.processor_seconds
        except BaseException as error:  # of any kind: a thread waits for this iteration
            run.failed = error
        run.worked += time.thread_time() - worked

    def _send_another(self, workers: int) -> bool:
        """Do one more task, if there is any; samples are sent to one of `workers`. Return True if
        it did.
        """
        tasks = self._tasks
        with self._monitor.lock:
            closed, is_short = self._monitor.closed, len(self._pending) <= workers
            task = None if closed else tasks.find_more(is_short=is_short)
            if workers > 1 and task is None:
                # Under the same lock: a thread that leaves samples from now on sets the wakeup,
                # which ends the wait even if it has not begun yet.
                self._monitor.dispatchers.add(self._worker.wakeup)
                self._may_be_woken = True
        if task is None:
            return False
        do, iteration, samples = task
        if samples is None:
            do(iteration, None, self._worker)
            return True
        run = ChunkRun(iteration, samples, queued=True)
        lines = self._lines
        # The last chunk of the process that has been sent the fewest.
        ahead = min(lines.values(), key=len)[-1] if lines else None
        tasks.start(run, self._worker, ahead, spreads=len(lines) < workers)
        if run.sent is None:
            tasks.end(run, None)
        else:
            self._enter(run)
        return True

    def _enter(self, run: ChunkRun) -> None:
        """Wait for a chunk from now on."""
        assert run.sent is not None
        self._pending.append(run)
        worker = run.sent.worker
        if worker is None:
            self._answered.append(run)
        else:
            self._lines.setdefault(worker, []).append(run)

    def _leave(self, run: ChunkRun) -> None:
        """Wait for a chunk no more."""
        assert run.sent is not None
        self._pending.remove(run)
        worker = run.sent.worker
        if worker is not None:
            self._lines[worker].remove(run)
            if not self._lines[worker]:
                del self._lines[worker]

    def _next_answered(self, workers: int) -> ChunkRun | None:
        """Wait for an answer of one of `workers` and return its chunk; `None` if there may be
        samples to send first.

        Workers answer in the order in which they were sent chunks. One that is slow keeps none of
        the others waiting for their next.
        """
        answered = self._answered
        if not answered:
            for worker, line in self._lines.items():
                if worker.is_discarded:
                    return line[0]  # no answer will come
            runs = [line[0] for line in self._lines.values()]
            if workers > 1:
                wakeup = self._worker.wakeup
                sent = [run.sent for run in runs]
                answered += [runs[k] for k in runs[0].runner.wait(sent, wakeup.fileno())]
                if not answered and wakeup.was_set():
                    return None
            # Where none does for long, the thread that waits for the oldest handles it.
            answered = answered or deque(runs[:1])
        return answered.popleft()
