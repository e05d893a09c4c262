"""Workers that help the threads which want single batches done."""

from __future__ import annotations

import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from headrace.errors import UsageError
from headrace.executor.cpu.chunks import chunk_size
from headrace.executor.cpu.concurrency import Concurrency
from headrace.executor.cpu.worker import WorkerThread
from headrace.executor.monitor import Monitor, interruption

if TYPE_CHECKING:
    from headrace.executor.cpu.program import Program
    from headrace.executor.cpu.runner import SampleRunner
    from headrace.executor.iteration import Iteration
    from headrace.executor.threads import Task

    Failures = list[tuple[int, BaseException]]
    """Numbers of failed samples, and their errors."""

_WORTH_SHARING_SECONDS = 5e-4
"""Work on a batch from which on it pays to wake another thread."""


class _SharedWork:
    """Work shared by threads; all fields are guarded by the lock of `WorkerThreads`.

    `pieces`: groups of numbers that no thread has taken yet. `do`: does a piece; returns the
    numbers that failed. `threads`: number of threads that may take part, including the caller.
    `in_flight`: number of pieces that workers are at. `failures`: errors so far.
    """

    __slots__ = ("do", "failures", "in_flight", "pieces", "threads")

    def __init__(
        self, pieces: Iterable[Sequence[int]], do: Callable[[Sequence[int]], Failures], threads: int
    ) -> None:
        self.pieces = deque(pieces)
        self.do = do
        self.threads = threads
        self.in_flight = 0
        self.failures: Failures = []

    def wants_help(self) -> bool:
        """True if a worker should take a piece."""
        return bool(self.pieces) and self.in_flight + 1 < self.threads

    def note(self, failures: Failures) -> None:
        """Take note that a piece is done; after a failure the others are left out."""
        if failures:
            self.failures += failures
            self.pieces.clear()


class WorkerThreads:
    """Workers that help the calling thread with a batch.

    They are started when there is something for them to do.
    """

    def __init__(self, threads: int) -> None:
        self.threads = threads
        self._begin()

    def _begin(self) -> None:
        self._monitor = Monitor()
        self._queue: list[_SharedWork] = []
        self._workers: list[WorkerThread] = []
        self._limits: weakref.WeakKeyDictionary[Program, Concurrency] = weakref.WeakKeyDictionary()
        """Tuned number of threads for each program."""
        self._end = weakref.finalize(self, self._monitor.close)
        self._end.atexit = False

    def carry(
        self, iteration: Iteration, program: Program, runner: Callable[[], SampleRunner]
    ) -> None:
        """Carry all samples of a batch through a stage."""

        def do(samples: Sequence[int]) -> Failures:
            start, worked = time.perf_counter(), time.thread_time()
            own = runner()
            own.bind(iteration)
            try:
                return own.run(list(samples))
            finally:
                own.release()
                worked = time.thread_time() - worked
                program.note_time(time.perf_counter() - start, worked, len(samples))

        size, threads = iteration.size, 1
        if self.threads > 1 and program.processor_seconds * size > _WORTH_SHARING_SECONDS:
            with self._monitor.lock:
                concurrency = self._limits.get(program)
                if concurrency is None:
                    # It is told of whole batches, which are few: with a few threads it would take
                    # long to find out that all are better.
                    concurrency = Concurrency(self.threads, first=self.threads)
                    self._limits[program] = concurrency
                threads = concurrency.limit
        else:
            concurrency = None
        pieces: list[Sequence[int]] = [range(size)]
        if threads > 1:
            iteration.run_all()
            pieces.clear()
            while samples := iteration.take(chunk_size(iteration, program, threads)):
                pieces.append(samples)
        start = time.perf_counter()
        self._run(_SharedWork(pieces, do, threads))
        if concurrency is not None:
            # What counts is the whole batch: there is no other one to go on with meanwhile.
            seconds = (time.perf_counter() - start) / size
            with self._monitor.lock:
                concurrency.note(threads, threads * seconds, all_needed=program.needs_all_threads)

    def each(self, function: Callable[[int], object], count: int) -> None:
        """Call a function with each number below `count`."""

        def do(numbers: Sequence[int]) -> Failures:
            function(numbers[0])
            return []

        self._run(_SharedWork(((k,) for k in range(count)), do, self.threads))

    def _run(self, work: _SharedWork) -> None:
        """Do some work, with the help of workers."""
        try:
            with self._monitor.lock:
                piece = work.pieces.popleft() if work.pieces else None
                if work.wants_help():
                    self._start()
                    self._queue.append(work)
                    self._monitor.work.notify()
            while piece is not None:
                failures = self._done(work, piece)
                with self._monitor.lock:
                    work.note(failures)
                    piece = work.pieces.popleft() if work.pieces else None
            # Workers write to the samples until then, also if a piece has failed.
            with self._monitor.lock:
                while work.in_flight:
                    self._monitor.finished.wait()
        except RuntimeError as failed:
            raise interruption(failed) from None
        finally:
            with self._monitor.lock:
                work.pieces.clear()
                if work in self._queue:
                    self._queue.remove(work)
        if work.failures:
            raise min(work.failures, key=_number)[1]

    def _start(self) -> None:
        """Start the workers, once. The caller holds the lock."""
        for number in range(len(self._workers), self.threads - 1):
            worker = WorkerThread(number, self._monitor, [self], looks_at=frozenset())
            worker.start()
            self._workers.append(worker)

    def find_task(self) -> Task | None:
        """A piece of the oldest work that wants help. The caller holds the lock."""
        for work in self._queue:
            if work.wants_help():
                work.in_flight += 1
                piece = work.pieces.popleft()
                if work.wants_help():
                    self._monitor.work.notify()
                return self._help, work, piece
        return None

    def _help(self, work: _SharedWork, piece: Sequence[int], _worker: WorkerThread) -> None:
        failures = self._done(work, piece)
        with self._monitor.lock:
            work.note(failures)
            work.in_flight -= 1
            if not work.in_flight:
                self._monitor.finished.notify_all()

    def _done(self, work: _SharedWork, piece: Sequence[int]) -> Failures:
        """Do a piece; return its failures."""
        try:
            if self._monitor.closed:
                raise UsageError("The program ended before this was done.")
            return work.do(piece)
        except BaseException as error:  # of any kind: a thread waits for the rest
            return [(piece[0], error)]

    def stop(self) -> list[threading.Thread]:
        """Drop pieces not begun and let the workers end; return them."""
        self._monitor.close()
        return list(self._workers)

    def after_fork(self) -> None:
        """Forget the workers, which exist in the parent process only, and the locks they held."""
        self._end.detach()
        lost = UsageError("This was being worked on when the process was forked; do it again.")
        for work in self._queue:
            if work.in_flight:
                work.in_flight = 0
                work.failures.append((0, lost))
        self._begin()


def _number(failure: tuple[int, BaseException]) -> int:
    return failure[0]
