"""Runs iterations of a plan ahead of the consumer, on a pool of threads.

Iterations begin in order; their samples are handed out one by one, those of the oldest iteration
first. A thread that finds no sample left in the oldest iteration goes on with the next one, so no
thread waits for the last sample of a batch.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Any

from penstock.errors import EndOfData
from penstock.executor.bad_samples import (
    BadSample,
    NoGoodSampleError,
    check_policy,
    replacements,
    report,
)
from penstock.executor.batch import BatchBuffer
from penstock.executor.batch_step import draw_whole_batch, run_batch_step
from penstock.executor.iteration import Iteration
from penstock.executor.program import Program
from penstock.executor.statistics import Statistics
from penstock.executor.worker import Worker

if TYPE_CHECKING:
    from penstock.executor.plan import Plan
    from penstock.operators.schema import Spec

_LARGEST_CHUNK = 4


class Executor:
    """In-flight iterations of one pipeline and the threads that work on them.

    Parameters
    ----------
    plan
        The graph, cut into stages.
    readers
        The opened reader of each reader node, by ``id(node)``.
    num_threads
        Number of worker threads.
    fuse
        Whether neighbouring operators may be merged.
    on_bad_sample
        ``"raise"``, ``"skip"`` or ``"replace"``.
    set_affinity
        Bind each thread to a processor of its own.
    """

    def __init__(
        self,
        plan: Plan,
        readers: dict[int, Any],
        *,
        num_threads: int,
        fuse: bool,
        on_bad_sample: str,
        set_affinity: bool = False,
    ) -> None:
        self.plan = plan
        self.readers = readers
        self.bad_samples: list[BadSample] = []
        self.statistics = Statistics()
        self.fuse = fuse
        self._policy = check_policy(on_bad_sample)
        self._programs: dict[tuple[Any, ...], Program] = {}
        self._lock = threading.Lock()
        self._work = threading.Condition(self._lock)
        self._finished = threading.Condition(self._lock)
        self._queue: deque[Iteration] = deque()
        """Scheduled and not yet handed over, oldest first."""
        self._beginning = False
        self._stopping = False
        self._pid = os.getpid()
        self._num_threads = num_threads
        self._set_affinity = set_affinity
        self._threads: list[Worker] = []

    # -- the consumer's side ---------------------------------------------------------------

    def start(self) -> None:
        """Start the threads, once."""
        if not self._threads:
            self._threads = [
                Worker(self, k, bind=self._set_affinity) for k in range(self._num_threads)
            ]
            for thread in self._threads:
                thread.start()

    def schedule(self, iteration: Iteration) -> None:
        """Take in the next iteration."""
        with self._lock:
            self._queue.append(iteration)
            self._work.notify_all()

    def pending(self) -> int:
        """How many iterations are scheduled and not yet handed over."""
        with self._lock:
            return len(self._queue)

    def take(self) -> Iteration:
        """Wait for the oldest iteration and hand it over.

        Raises
        ------
        Exception
            What went wrong in that iteration, which is dropped; the next one can be taken.
        """
        waited = time.perf_counter()
        with self._lock:
            iteration = self._queue[0]
            while not iteration.done:
                self._finished.wait()
            self._queue.popleft()
        self.statistics.waited(time.perf_counter() - waited)
        if iteration.error is not None:
            error, iteration.error = iteration.error, None
            raise error
        return iteration

    def cancel(self) -> dict[int, Any] | None:
        """Drop all scheduled iterations; return the readers' states from before them."""
        with self._lock:
            dropped = list(self._queue)
            for iteration in dropped:
                iteration.next = iteration.size
                iteration.queue.clear()
                if iteration.error is None:
                    iteration.error = EndOfData("cancelled")
            while self._beginning or any(i.in_flight for i in dropped):
                self._finished.wait()
            self._queue.clear()
            return dropped[0].states if dropped and dropped[0].begun else None

    def shutdown(self) -> None:
        """Stop the threads; running samples are finished, the rest is dropped."""
        with self._lock:
            self._stopping = True
            self._queue.clear()
            self._work.notify_all()
        if self._pid == os.getpid():
            for thread in self._threads:
                if thread is not threading.current_thread():
                    thread.join()
        self._threads = []

    # -- the workers' side -----------------------------------------------------------------

    def next_task(self) -> tuple[Iteration, list[int] | None] | None:
        """Wait for work: samples of an iteration, or (with `None`) an iteration to begin.

        `None` when the executor shuts down.
        """
        with self._lock:
            while not self._stopping:
                task = self._find_task()
                if task is not None:
                    return task
                self._work.wait()
            return None

    def _find_task(self) -> tuple[Iteration, list[int] | None] | None:
        for iteration in self._queue:
            if iteration.done or iteration.error is not None:
                continue
            if not iteration.begun:
                # Readers draw in the order of iterations, one at a time. Where bad samples are
                # made up for by later ones of the reader, those must not be drawn yet.
                if self._beginning or (self._policy == "skip" and self._has_reading_before()):
                    return None
                self._beginning = True
                iteration.begun = True
                return iteration, None
            if iteration.program is None:
                continue
            remaining = iteration.size - iteration.next
            chunk = min(_LARGEST_CHUNK, remaining // (4 * self._num_threads) + 1)
            samples = iteration.take(chunk)
            if samples:
                iteration.in_flight += 1
                return iteration, samples
        return None

    def _has_reading_before(self) -> bool:
        return any(i.begun and not i.done and i.stage < 1 for i in self._queue)

    def begin(self, iteration: Iteration) -> None:
        """Draw from the readers and make the first stage ready."""
        try:
            iteration.started = time.perf_counter()
            iteration.buffers = [None] * len(self.plan.consumers)
            for register, batch in iteration.fed.items():
                iteration.buffers[register] = batch
            for node in self.plan.readers:
                reader = self.readers[id(node)]
                iteration.states[id(node)] = reader.state()
                iteration.entries[id(node)] = reader.draw(iteration.size)
            program = self._enter_stage(iteration, 0)
        except Exception as error:
            program = None
            iteration.error = error
        with self._lock:
            self._beginning = False
            iteration.program = program
            if iteration.error is not None:
                self._finish(iteration)
            self._advance(iteration)
            self._work.notify_all()
            self._finished.notify_all()

    def _enter_stage(self, iteration: Iteration, number: int) -> Program:
        stage = self.plan.stages[number]
        specs: dict[int, Spec] = {
            r: b.spec for r, b in enumerate(iteration.buffers) if b is not None
        }
        key = (number, tuple(sorted(specs.items())))
        program = self._programs.get(key)
        if program is None:
            program = Program(self.plan, stage, specs, self.readers, self.fuse)
            self._programs[key] = program
        size, history = iteration.size, self.plan.history
        for r in program.written:
            iteration.buffers[r] = BatchBuffer(size, program.specs[r], history[r])
        for step, draw in program.drawn:
            r = step.outputs[0]
            spec = program.specs[r]
            iteration.buffers[r] = draw_whole_batch(step, draw, iteration, spec, history[r])
        iteration.stage = number
        iteration.next = 0 if program.steps else size
        return program

    def finish_samples(
        self, iteration: Iteration, failures: list[tuple[int, BaseException]]
    ) -> None:
        """Note that a chunk of samples is done, and go on with the iteration if it was the last."""
        with self._lock:
            iteration.in_flight -= 1
            for index, error in failures:
                iteration.failures[index] = error
            if failures and self._policy == "raise":
                iteration.next = iteration.size  # the rest of the batch is of no use any more
            self._advance(iteration)
            self._finished.notify_all()

    def _advance(self, iteration: Iteration) -> None:
        """Go on to whatever comes next, if nothing is left to do in the stage. Holds the lock."""
        while (
            not iteration.done
            and iteration.program is not None
            and iteration.in_flight == 0
            and iteration.next >= iteration.size
            and not iteration.queue
            and iteration.error is None
        ):
            program = iteration.program
            iteration.program = None  # nobody else advances it meanwhile
            iteration.in_flight += 1
            self._lock.release()
            try:
                following = self._complete_stage(iteration, program)
            except Exception as error:
                following = None
                failed: BaseException | None = error
            else:
                failed = None
            finally:
                self._lock.acquire()
                iteration.in_flight -= 1
            if failed is not None and iteration.error is None:
                iteration.error = failed
            iteration.program = following
            if following is None:
                self._finish(iteration)
            self._work.notify_all()
        if iteration.error is not None and iteration.in_flight == 0:
            self._finish(iteration)

    def _complete_stage(self, iteration: Iteration, program: Program) -> Program | None:
        """Deal with failures, run batch operators; return the next program, `None` at the end."""
        if iteration.failures and self._settle_failures(iteration, program):
            return program
        for step in program.batch_steps:
            run_batch_step(step, program, iteration, self.plan.history)
        number = iteration.stage + 1
        if number < len(self.plan.stages):
            return self._enter_stage(iteration, number)
        return None

    def _settle_failures(self, iteration: Iteration, program: Program) -> bool:
        """Act on the failed samples of a stage; return whether some have to be run again."""
        first = iteration.failures[min(iteration.failures)]
        policy = self._policy
        if policy == "raise":
            raise first
        if policy == "skip" and (iteration.stage > 0 or not self.plan.readers):
            raise NoGoodSampleError(
                'on_bad_sample="skip" can only make up for samples of a reader, before an '
                "operator that takes whole batches; use "
                '"replace" here.'
            ) from first
        for index in sorted(iteration.failures):
            error = iteration.failures[index]
            self.bad_samples.append(report(error, iteration.number, index, policy))
        if policy == "replace":
            self._replace(iteration, program, first)
            return False
        return self._redraw(iteration, first)

    def _replace(self, iteration: Iteration, program: Program, first: BaseException) -> None:
        good = replacements(iteration)
        if good is None:
            raise NoGoodSampleError(
                f"All {iteration.size} samples of iteration {iteration.number} are bad; there is "
                "none to replace them by."
            ) from first
        for index, other in good.items():
            for r in program.written:
                buffer = iteration.buffers[r]
                assert buffer is not None
                buffer.duplicate(index, other)
        iteration.failures.clear()

    def _redraw(self, iteration: Iteration, first: BaseException) -> bool:
        failed = sorted(iteration.failures)
        if iteration.draw_numbers is None:
            iteration.draw_numbers = list(range(iteration.size))
        for number, index in enumerate(failed, iteration.size + iteration.skipped):
            iteration.draw_numbers[index] = number
        iteration.redraws += len(failed)
        iteration.skipped += len(failed)
        epoch = max(int(self.readers[id(n)].meta()["epoch_size"]) for n in self.plan.readers)
        none_good = len(failed) == iteration.size
        # An operator that can work on no sample at all must not eat up the whole data set.
        patience = 4 * iteration.size + 64 if none_good else max(epoch, iteration.size)
        if iteration.redraws > patience:
            raise NoGoodSampleError(
                f"{iteration.redraws} bad samples were skipped for iteration {iteration.number} "
                "alone, which is too many to go on; here is the last one's error."
            ) from first
        for node in self.plan.readers:
            entries = self.readers[id(node)].draw(len(failed), refill=True)
            for index, entry in zip(failed, entries, strict=True):
                iteration.entries[id(node)][index] = entry
        iteration.failures.clear()
        iteration.queue = failed[::-1]
        return True

    def _finish(self, iteration: Iteration) -> None:
        """Mark an iteration as done. Holds the lock."""
        if not iteration.done:
            iteration.done = True
            iteration.seconds = time.perf_counter() - iteration.started
            self.statistics.finished(iteration)
            self._finished.notify_all()
            self._work.notify_all()
