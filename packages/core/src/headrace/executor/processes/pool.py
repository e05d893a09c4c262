"""The worker processes of this program, which its pipelines share."""

from __future__ import annotations

import os
import threading
from collections import Counter, deque
from typing import TYPE_CHECKING

from headrace.executor.processes.server_process import SERVER
from headrace.executor.processes.worker_process import LostWorkerError, WorkerProcess

if TYPE_CHECKING:
    from headrace.executor.processes.graph import PackedGraph

_WAIT_TIMEOUT_SECONDS = 5.0
"""Time a thread waits for a process to be given back before it starts another: the present holder
may be waiting for this very thread, in a function of the user."""


class _Waiting:
    """A thread that waits for a process to come back."""

    __slots__ = ("bindings", "told", "worker")

    def __init__(self, bindings: list[tuple[int, ...]]) -> None:
        self.bindings = bindings
        self.worker: WorkerProcess | None = None
        """Process it was given."""
        self.told = threading.Event()
        """Set when it was given a process, or may start one in place of a lost one."""


class WorkerPool:
    """Lends a worker process to a thread for one task.

    There are never more of them than pipelines ask for, nor than threads that have a task at the
    same time, so pipelines that run in turns, as for training and validation, have one set of
    processes. A thread that needs one where all are lent waits for the next that comes back. Only
    in place of lost ones, or where none comes back for long, are further ones started.
    """

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._lock = threading.Lock()
        """Guards all else but `_left`, whose operations are single ones."""
        self._alive: set[WorkerProcess] = set()
        self._idle: list[WorkerProcess] = []
        """Idle ones, the one used last at the end."""
        self._wanted: dict[int, int] = {}
        """By graph, how many its pipeline asks for."""
        self._most = 0
        """Number of processes that all pipelines ask for."""
        self._changes = 0
        """Number of changes to that."""
        self._waiting: deque[_Waiting] = deque()
        """Threads that wait for a process, the one that has waited longest first."""
        self._left: deque[int] = deque()
        """Graphs whose pipelines were shut down, until a holder of the lock deals with them: the
        garbage collector may shut one down in a thread that has the lock."""

    def enter(self, graph: PackedGraph, bindings: list[tuple[int, ...]]) -> None:
        """Add a pipeline, whose processes are bound to the processors in `bindings`; start missing
        ones, without waiting for them.
        """
        with self._lock:
            self._wanted[graph.number] = len(bindings)
            self._note_change()
            there = Counter(worker.processors for worker in self._alive)
        self._tidy()
        missing = Counter(bindings) - there
        if missing:
            SERVER.prepare(graph.modules)
        for processors in missing.elements():
            self._put(self._started(graph, processors))

    def leave(self, graph: int) -> None:
        """Let go of a pipeline. May be called by the garbage collector."""
        # Without the lock, which this very thread may hold further up.
        self._left.append(graph)
        self._tidy()

    def lend(
        self,
        graph: PackedGraph,
        bindings: list[tuple[int, ...]],
        timeout_seconds: float | None,
        *,
        again: bool = False,
        waits: bool = True,
        starts: bool = True,
    ) -> WorkerProcess | None:
        """Return a process for the calling thread, which gives it back or discards it. `again`: the
        thread lost one already; `waits`: wait for one in use or not begun, else return `None`;
        `starts`: wait or start one if all are in use.
        """
        worker = self._taken(graph.number, bindings)
        # Those that have not begun may be of a server that is just being killed. Several of them,
        # one after the other, would make a sample bad that none has seen.
        while again and worker is not None and (worker.has_ended() or not worker.pid):
            self.discard(worker)
            worker = self._taken(graph.number, bindings)
        if worker is None:
            if starts:
                worker = self._another(graph, bindings, again=again, waits=waits)
            if worker is None:
                return None
        if not (waits or worker.is_ready()):
            self._put(worker)
            return None
        try:
            worker.lend(timeout_seconds)
            worker.know(graph)
        except BaseException:
            self.discard(worker)
            raise
        return worker

    def _another(
        self, graph: PackedGraph, bindings: list[tuple[int, ...]], *, again: bool, waits: bool
    ) -> WorkerProcess | None:
        """A process for a thread that found none idle: the next that comes back, or a new one."""
        waiting = _Waiting(bindings)
        while True:
            with self._lock:
                free = Counter(bindings) - Counter(worker.processors for worker in self._alive)
                starts = again or bool(free) or len(self._alive) < self._most
                # Looked for and queued under one lock: a process that is given back in between
                # would be missed.
                came = None if starts else self._idle_one(graph.number, bindings)
                if waits and came is None and not starts:
                    waiting.told.clear()
                    self._waiting.append(waiting)
            self._tidy()
            if came is not None:
                return came
            if not starts:
                if not waits:
                    return None
                starts = not self._await(waiting)
                if waiting.worker is not None:
                    return waiting.worker
            if starts:
                return self._started(graph, next(iter(free), bindings[0]))

    def _await(self, waiting: _Waiting) -> bool:
        """Wait for a process; whether there is news before patience ends."""
        try:
            is_told = waiting.told.wait(_WAIT_TIMEOUT_SECONDS)
        except BaseException:  # an interrupt
            self._stop_waiting(waiting)
            if waiting.worker is not None:
                self._put(waiting.worker)
            raise
        self._stop_waiting(waiting)
        return is_told

    def _stop_waiting(self, waiting: _Waiting) -> None:
        with self._lock:
            if waiting in self._waiting:
                self._waiting.remove(waiting)
        self._tidy()

    def is_short(self) -> bool:
        """True if there are fewer processes than pipelines ask for."""
        return len(self._alive) < self._most

    def is_awaited(self) -> bool:
        """True if a thread waits for a process: holders of some must give them back."""
        return bool(self._waiting)

    def _taken(self, graph: int, bindings: list[tuple[int, ...]]) -> WorkerProcess | None:
        """An idle process, one that has begun and knows the graph if there is any."""
        with self._lock:
            found = self._idle_one(graph, bindings)
        if self._left:
            self._tidy()
        return found

    def _idle_one(self, graph: int, bindings: list[tuple[int, ...]]) -> WorkerProcess | None:
        """The same; the caller holds the lock."""
        idle = self._idle
        last = idle[-1] if idle else None
        if last is not None and last.processors in bindings and graph in last.graphs:
            return idle.pop()  # as a rule
        fitting = [k for k, w in enumerate(idle) if w.processors in bindings]
        ready = [k for k in fitting if idle[k].is_ready()]
        fitting = ready or fitting
        knowing = [k for k in fitting if graph in idle[k].graphs]
        return idle.pop((knowing or fitting)[-1]) if fitting else None

    def _started(self, graph: PackedGraph, processors: tuple[int, ...]) -> WorkerProcess:
        worker = WorkerProcess(graph.modules, processors)
        with self._lock:
            self._alive.add(worker)
        self._tidy()
        return worker

    def give_back(self, worker: WorkerProcess) -> None:
        """Take back a process that has answered."""
        # Read before the graphs: a change in between is noticed at the next return.
        changes = self._changes
        if worker.changes != changes:
            worker.changes = changes
            try:
                for graph in worker.graphs - self._wanted.keys():
                    worker.forget(graph)
            except LostWorkerError:
                self.discard(worker)
                return
        self._put(worker)

    def _put(self, worker: WorkerProcess) -> None:
        with self._lock:
            first = next((w for w in self._waiting if worker.processors in w.bindings), None)
            if first is None:
                self._idle.append(worker)
                if len(self._alive) > self._most:
                    self._end_surplus()
            else:
                self._waiting.remove(first)
                first.worker = worker
                first.told.set()
        if self._left:
            self._tidy()

    def discard(self, worker: WorkerProcess) -> None:
        """Do without a process, which has ended, or may be in the middle of something."""
        if worker.is_discarded:
            return
        worker.is_discarded = True
        with self._lock:
            self._alive.discard(worker)
            for waiting in self._waiting:
                waiting.told.set()  # another one may be started in its place
        self._tidy()
        worker.kill()

    def _tidy(self) -> None:
        """Deal with pipelines that were shut down. Called after the lock was held."""
        while self._left and self._lock.acquire(blocking=False):
            try:
                while self._left:
                    self._wanted.pop(self._left.popleft(), None)
                self._note_change()
                self._end_surplus()
            finally:
                self._lock.release()

    def _end_surplus(self) -> None:
        """End idle processes that no pipeline asks for. The caller holds the lock."""
        while len(self._alive) > self._most and self._idle:
            worker = self._idle.pop(0)
            self._alive.discard(worker)
            worker.end()

    def _note_change(self) -> None:
        """Recompute the totals after a change of `_wanted`. The caller holds the lock."""
        self._most = sum(self._wanted.values())
        self._changes += 1

    def pids(self) -> list[int]:
        """Numbers of the processes that have answered."""
        with self._lock:
            found = [worker.pid for worker in self._alive if worker.pid]
        self._tidy()
        return found


POOL = WorkerPool()
"""The pool of this process."""

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=POOL._begin)
