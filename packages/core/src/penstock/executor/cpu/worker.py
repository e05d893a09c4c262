"""The threads of an executor, and what they share with it while they wait."""

from __future__ import annotations

import contextlib
import os
import threading
import time
import weakref
from typing import TYPE_CHECKING

from penstock._forking import no_fork
from penstock.executor.cpu.arena import Arena

if TYPE_CHECKING:
    from collections.abc import Iterable

    from penstock.executor.executor import Executor
    from penstock.executor.gpu.lane import Lane
    from penstock.executor.iteration import Iteration

_alive: weakref.WeakSet[threading.Thread] = weakref.WeakSet()


_forks = 0


def forks() -> int:
    """How many forks lie between this process and the one that imported the engine.

    What the number of the process would tell, too, but asking for that is a call of the system.
    """
    return _forks


def _count_fork() -> None:
    global _forks
    _forks += 1


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_count_fork)


def track(thread: threading.Thread) -> None:
    """Have the end of the program wait for `thread`."""
    _alive.add(thread)


class Gate:
    """The lock of an executor and what is waited for under it; outlives the executor.

    The lock is reentrant because the garbage collector may delete a pipeline, and with it shut the
    executor down, at any point of a thread that holds it.
    """

    __slots__ = ("closed", "exiting", "finished", "lanes", "lock", "work")

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.work = threading.Condition(self.lock)
        """There may be something to do for one worker.

        One is woken at a time, and wakes the next where it leaves something: many that wake for
        nothing would keep the interpreter from the one that has work.
        """
        self.lanes = {name: threading.Condition(self.lock) for name in ("mixed", "gpu")}
        """There may be something to do for the thread of a lane of the GPU."""
        self.finished = threading.Condition(self.lock)
        """Something was finished."""
        self.closed = False
        self.exiting = False
        """Whether it was closed because the program ends."""

    def close(self) -> None:
        """Let everybody who waits go home."""
        with self.lock:
            self.closed = True
            for condition in (self.work, self.finished, *self.lanes.values()):
                condition.notify_all()


def interruption(error: RuntimeError) -> BaseException:
    """What to raise in place of `error`, which came out of a wait under a lock.

    `Condition.wait` does not hold the lock any more where a Ctrl-C comes right after it let go. The
    end of the ``with`` then fails to let go once more, and its error hides the interruption.
    """
    hidden = error.__context__
    return error if hidden is None or isinstance(hidden, Exception) else hidden


class Worker(threading.Thread):
    """Takes samples from the executor and carries them through their stage.

    A waiting thread does not keep its executor alive: what a source refers to may be the pipeline
    itself, which could then never be deleted.
    """

    takes_lanes = True

    def __init__(self, executor: Executor, number: int, *, bind: bool) -> None:
        super().__init__(name=f"penstock-worker-{number}", daemon=True)
        self._executor = weakref.ref(executor)
        self._gate = executor.gate
        self._processor = number if bind else None
        self._has_device = False
        self.number = number
        self.arena = Arena()
        track(self)

    def run(self) -> None:
        """Work until the executor shuts down."""
        self._bind()
        while (task := self._next_task()) is not None:
            executor, iteration, work = task
            with no_fork:
                if work is None:
                    executor.proceed(iteration)
                elif isinstance(work, list):
                    executor.run_samples(iteration, work, self)
                else:
                    if not self._has_device:
                        # Once: it lets go of the interpreter, which takes long to get back.
                        work.activate()
                        self._has_device = True
                    begun = executor.run_on_lane(iteration, work)
                    if begun is not None:
                        executor.end_on_lane(iteration, work, begun)
                    del begun
            # Nothing of a finished iteration may stay alive in a waiting thread: its memory
            # belongs to the user, and returns to the pool when the user lets go.
            del task, executor, iteration, work

    def _next_task(self) -> tuple[Executor, Iteration, list[int] | Lane | None] | None:
        """Wait for work: samples of an iteration, one whose stage is to begin (with `None`), or one
        that has come to a lane.

        `None` when the executor shuts down.
        """
        gate = self._gate
        with gate.lock:
            while not gate.closed:
                executor = self._executor()
                if executor is None:
                    break
                shared = executor.find_shared_task()
                if shared is not None:
                    return executor, *shared
                task = executor.find_task()
                if task is not None:
                    return executor, *task
                del executor
                gate.work.wait()
            return None

    def _bind(self) -> None:
        """Bind the thread to one of the processors that the process may use."""
        if self._processor is not None and hasattr(os, "sched_setaffinity"):
            allowed = sorted(os.sched_getaffinity(0))
            with contextlib.suppress(OSError):  # taken away meanwhile
                os.sched_setaffinity(0, {allowed[self._processor % len(allowed)]})


def join(workers: Iterable[threading.Thread], seconds: float) -> None:
    """Wait until `workers` are done, but no longer than `seconds` altogether."""
    deadline = time.monotonic() + seconds
    for worker in list(workers):
        if worker is not threading.current_thread() and worker.is_alive():
            worker.join(max(0.0, deadline - time.monotonic()))


def join_all(seconds: float) -> None:
    """Wait for every worker of the process."""
    join(_alive, seconds)
