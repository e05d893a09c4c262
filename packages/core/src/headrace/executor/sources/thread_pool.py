"""Threads that run sources: nothing is pickled and nothing goes through shared memory."""

from __future__ import annotations

import contextlib
import os
import queue
import threading
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from headrace.errors import SourceWorkerError, UsageError
from headrace.operators.support.external.parallel.tasks import RewindTask, SourceRunner
from headrace.operators.support.external.parallel.wire_format import OutputSamples, copied
from headrace.operators.support.external.parallel.workers import SourceEntry, TaskHandle, raised_in
from headrace.tensors.pool import HostPool

if TYPE_CHECKING:
    from headrace.operators.support.external.parallel.tasks import Task

_POLL_SECONDS = 0.5
"""A Ctrl-C that comes just as a thread falls asleep does not wake it."""
_JOIN_TIMEOUT_SECONDS = 1.0


class DataTarget(Protocol):
    """Consumer of a source's data."""

    @property
    def copies_to(self) -> list[HostPool] | None:
        """Pools that host data is copied to, one for each output; None for no copies."""

    def take_from_gpu(self, data: Any) -> Any:
        """Take over data that is on a GPU."""


class _Job:
    """A task and all that is needed to do it: an idle thread refers to no source."""

    __slots__ = ("done", "handle", "owner", "runner")

    def __init__(
        self,
        handle: TaskHandle,
        runner: SourceRunner,
        owner: DataTarget | None,
        done: queue.SimpleQueue[None],
    ) -> None:
        self.handle = handle
        self.runner = runner
        self.owner = owner
        self.done = done

    def run(self) -> None:
        """Do the task."""
        task = self.handle.task
        if self.handle.discarded and not isinstance(task, RewindTask):
            outcome: tuple[Any, ...] = ("end",)
        else:
            try:
                outcome = ("done", self._owned(self.runner.run(task)))
            except StopIteration:
                outcome = ("end",)
            except BaseException as error:  # of any kind: a thread waits for this task
                outcome = ("failed", error, self.runner.at)
        self.handle.outcome = outcome
        self.done.put(None)

    def _owned(self, parts: list[OutputSamples]) -> list[OutputSamples]:
        """The parts, copied unless the source has promised not to touch its data any more."""
        owner = self.owner
        if owner is None:
            return parts
        pools: Sequence[HostPool | None] = owner.copies_to or [None] * len(parts)
        found = []
        for part, pool in zip(parts, pools, strict=False):
            if part.on_gpu is not None:
                # Here, as which stream is current is a matter of the thread.
                part.on_gpu = owner.take_from_gpu(part.on_gpu)
            found.append(part if pool is None else copied(part, pool))
        return found


def _work(jobs: queue.SimpleQueue[_Job | None]) -> None:
    while (job := jobs.get()) is not None:
        job.run()
        del job


class SourceThreads:
    """Threads of one pipeline that run sources."""

    def __init__(self, entries: list[SourceEntry], count: int) -> None:
        self.size = count
        self._entries = entries
        # Each thread has its own, which knows which sample it is at; what only goes forward
        # belongs to one thread.
        self._runners = [[SourceRunner(e.source, e.traits) for e in entries] for _ in range(count)]
        self._owners: dict[int, DataTarget] = {}
        self._done: queue.SimpleQueue[None] = queue.SimpleQueue()
        """Wakes the consumer. No lock, which a Ctrl-C might leave in an odd state."""
        self._given = 0
        self._pid = os.getpid()
        self._closed = False
        self._queues: list[queue.SimpleQueue[_Job | None]] = [
            queue.SimpleQueue() for _ in range(count)
        ]
        self._threads = [
            threading.Thread(target=_work, args=(q,), name=f"headrace-source-{k}", daemon=True)
            for k, q in enumerate(self._queues)
        ]
        self._end = weakref.finalize(self, _end_threads, self._queues)
        for thread in self._threads:
            thread.start()

    def set_owner(self, source: int, owner: DataTarget) -> None:
        """Set the target of a source's data."""
        self._owners[source] = owner

    def submit(self, source: int, task: Task, worker: int | None = None) -> TaskHandle:
        """Have a task done; see `Workers`."""
        self._check_open()
        if worker is None:
            waiting = [q.qsize() for q in self._queues]
            turn = self._given
            order = [(turn + k) % self.size for k in range(self.size)]
            worker = min(order, key=lambda k: waiting[k])
        handle = TaskHandle(self._given, source, task, worker)
        self._given += 1
        runner = self._runners[worker][source]
        self._queues[worker].put(_Job(handle, runner, self._owners.get(source), self._done))
        return handle

    def discard(self, handles: list[TaskHandle]) -> None:
        """Give up tasks; see `Workers`."""
        for handle in handles:
            handle.discarded = True
            handle.outcome = None

    def wait(self, handle: TaskHandle) -> list[OutputSamples]:
        """Wait for the result of a task; see `Workers`."""
        with contextlib.suppress(queue.Empty):
            while True:  # those of earlier tasks
                self._done.get_nowait()
        while handle.outcome is None:
            self._check_open()
            with contextlib.suppress(queue.Empty):
                self._done.get(timeout=_POLL_SECONDS)
        kind, *content = handle.outcome
        handle.outcome = ()
        if kind == "end":
            raise StopIteration
        if kind == "failed":
            error, sample = content
            at = f"sample {sample} of the batch, " if sample is not None else ""
            place = (
                f"a worker thread at {at}{handle.task}, for {self._entries[handle.source].where}"
            )
            raise raised_in(error, place)
        return content[0]  # type: ignore[no-any-return]

    def _check_open(self) -> None:
        if self._pid != os.getpid():
            raise UsageError(
                "The threads of parallel external sources belong to another process, of which "
                "this one is a fork. Build a pipeline of its own in each process."
            )
        if self._closed:
            raise SourceWorkerError("The workers of parallel external sources were ended.")

    def close(self) -> None:
        """End all threads; one that is inside of a source ends when that returns."""
        self._closed = True
        self._end()
        if self._pid == os.getpid():
            for thread in self._threads:
                if thread is not threading.current_thread():
                    thread.join(_JOIN_TIMEOUT_SECONDS / len(self._threads))


def _end_threads(queues: list[queue.SimpleQueue[_Job | None]]) -> None:
    for jobs in queues:
        while not jobs.empty():
            try:
                jobs.get_nowait()
            except queue.Empty:
                break
        jobs.put(None)
