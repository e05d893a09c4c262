"""Runs chains: sample by sample on several threads, or batch by batch on a GPU."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from penstock.errors import UsageError
from penstock.executor.cpu.batch import BatchBuffer
from penstock.executor.cpu.batch_step import plan_whole_batches, run_batch_step
from penstock.executor.cpu.runner import SampleRunner
from penstock.executor.iteration import Iteration
from penstock.experimental.dynamic.lifetime import exiting
from penstock.experimental.dynamic.sharing import Sharing
from penstock.experimental.dynamic.slots import HostValue
from penstock.experimental.dynamic.solo import SCRATCH

if TYPE_CHECKING:
    from penstock.executor.cpu.program import Program
    from penstock.executor.gpu.stream import StreamExecutor
    from penstock.experimental.dynamic.chains import Chain
    from penstock.experimental.dynamic.invocations import Invocation
    from penstock.experimental.dynamic.thread_pools import ThreadPool

_WORTH_SHARING_SECONDS = 5e-4
"""Work on a batch from which on it pays to wake other threads."""


def run_chain(
    chain: Chain,
    given: Sequence[Any],
    size: int,
    invocations: Sequence[Invocation],
    pool: ThreadPool,
    executor: StreamExecutor | None,
) -> list[Any]:
    """Do the work of a chain once.

    Parameters
    ----------
    chain
        What to do.
    given
        The values that it reads.
    size
        Number of samples.
    invocations
        The calls, for their seeds.
    pool
        The threads that samples are shared out to.
    executor
        Where work for a GPU goes.

    Returns
    -------
    The values of the outputs that are wanted.

    Raises
    ------
    Exception
        What the first sample that failed raised, after the others have been dropped.
    """
    plan = chain.plan
    feeds = dict(zip(chain.given, given, strict=True))
    iteration = Iteration(0, size, feeds)
    iteration.seeds = {
        k: i.seed for k, i in enumerate(invocations) if i.form.operation.schema.random
    }
    buffers: list[Any] = [None] * len(plan.consumers)
    iteration.buffers = buffers
    for r, value in feeds.items():
        if not hasattr(value, "batch"):
            buffers[r] = value
    for number, stage in enumerate(plan.stages):
        program = chain.program(number, buffers, pool.num_threads)
        if stage.device != "cpu":
            assert executor is not None
            executor.run(program, iteration)  # type: ignore[arg-type]
            continue
        for r in stage.reads:
            buffers[r].wait()
        try:
            plan_whole_batches(program, iteration, plan.history)  # type: ignore[arg-type]
        except Exception:  # of some sample, which fails alone where each is planned alone
            program = chain.program(number, buffers, pool.num_threads, whole=False)
            plan_whole_batches(program, iteration, plan.history)  # type: ignore[arg-type]
        _run_samples(chain, number, program, iteration, pool)  # type: ignore[arg-type]
        for step in program.batch_steps:  # type: ignore[union-attr]
            run_batch_step(step, program, iteration, plan.history)  # type: ignore[arg-type]
    return [_finished(buffers[r]) for r in plan.outputs]


def _finished(buffer: Any) -> Any:
    return HostValue.of_buffer(buffer) if isinstance(buffer, BatchBuffer) else buffer


def _run_samples(
    chain: Chain,
    number: int,
    program: Program,
    iteration: Iteration,
    pool: ThreadPool,
) -> None:
    size, history, buffers = iteration.size, chain.plan.history, iteration.buffers
    for r, _ in program.written:
        buffers[r] = BatchBuffer(size, program.specs[r], history[r])
    if not program.steps or not size:
        return
    work = Work(chain, program, iteration)
    helpers = min(pool.num_threads, size) - 1
    if helpers > 0 and program.sample_seconds * size > _WORTH_SHARING_SECONDS:
        sharing = chain.sharing.setdefault(number, Sharing())
        shared = sharing.choose()
        start = time.perf_counter()
        if shared:
            work.share(size, helpers + 1)
            pool.call(work, helpers)
        work()
        work.wait()
        sharing.note(shared, (time.perf_counter() - start) / size)
    else:
        work()
        work.wait()
    if work.failures:
        raise min(work.failures, key=_sample)[1]


def _note_time(program: Program, seconds: float) -> None:
    """Take the time that a sample took into account.

    Down at once and up slowly: what takes longer now and then waits for other threads, which is no
    reason to wake more of them.
    """
    known = program.sample_seconds
    if seconds < known:
        program.sample_seconds = seconds + (known - seconds) / 4
    else:
        program.sample_seconds = known + (min(seconds, 2 * known) - known) / 16


def _sample(failure: tuple[int, BaseException]) -> int:
    return failure[0]


class Work:
    """The samples of one stage, taken by any number of threads until none is left."""

    __slots__ = (
        "_chain",
        "_chunks",
        "_finished",
        "_iteration",
        "_left",
        "_lock",
        "_program",
        "failures",
    )

    def __init__(
        self,
        chain: Chain,
        program: Program,
        iteration: Iteration,
    ) -> None:
        self._chain = chain
        self._program = program
        self._iteration = iteration
        self._chunks = deque([list(range(iteration.size))])
        self._left = iteration.size
        self._lock = threading.Lock()
        self._finished = threading.Lock()
        self._finished.acquire()
        self.failures: list[tuple[int, BaseException]] = []

    def share(self, size: int, threads: int) -> None:
        """Cut the samples into pieces for so many threads."""
        most = 8 if self._program.sample_seconds > 5e-5 else 16
        chunk = max(1, min(most, -(-size // (2 * threads))))
        self._chunks = deque(list(range(k, min(k + chunk, size))) for k in range(0, size, chunk))

    def __call__(self) -> None:
        """Take part until there is nothing left to take."""
        program, chunks = self._program, self._chunks
        runner: SampleRunner | None = None
        while True:
            try:
                indices = chunks.popleft()
            except IndexError:
                break
            start = time.perf_counter()
            try:
                if exiting.is_set():
                    raise UsageError("The program ended before this was done.")
                if runner is None:
                    runner = self._runner()
                failures = runner.run(indices)
            except BaseException as error:  # whatever it is, somebody waits for the batch
                failures = [(indices[0], error)]
            _note_time(program, (time.perf_counter() - start) / len(indices))
            if runner is not None and not chunks:
                runner.release()
            dropped = self._dropped() if failures else 0
            with self._lock:
                self.failures += failures
                self._left -= len(indices) + dropped
                last = self._left == 0
            if last:
                self._finished.release()

    def _dropped(self) -> int:
        """Drop the samples that nobody has begun, and return how many there were."""
        count = 0
        while True:
            try:
                count += len(self._chunks.popleft())
            except IndexError:
                return count

    def wait(self) -> None:
        """Return when all samples are done."""
        self._finished.acquire()

    def _runner(self) -> SampleRunner:
        runners = self._chain.runners
        key = (self._program, threading.get_ident())
        runner = runners.get(key)
        if runner is None or runner._arena is not SCRATCH.arena:
            runner = SampleRunner(self._program, SCRATCH.arena, materialise_views=False)
            runners[key] = runner
        runner.bind(self._iteration)
        return runner
