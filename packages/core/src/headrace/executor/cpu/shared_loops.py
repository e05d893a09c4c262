"""Loops over the samples of a chunk, in which threads help that have nothing else to do.

A chunk costs the interpreter several hundred microseconds, however few samples it has, and threads
cannot share those. To take part in a compiled loop costs it some 50. So where such loops are most
of the work, chunks are large, few threads have one each, and the others take part in their loops.
"""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from headrace.executor.cpu.arena import Arena
    from headrace.executor.cpu.program import Program
    from headrace.executor.monitor import Monitor
    from headrace.operators.support.contexts import LoopPart, SampleContext, Temp

_WORTH_HELPING_SECONDS = 4e-3
"""No more threads take part than have so much to do each: all that end their parts want the
interpreter at about the same time. With 16 threads, in a model of a loop with 1.2 milliseconds for
an image, 9,600 images a second were made so, 8,000 with half of it as with twice of it.
"""


class SharedLoop:
    """A loop at work; all but `taken` is guarded by the monitor's lock.

    `program`, `node`, `iteration`: the operator whose loop it is, where it is run, and the number
    of the iteration. `count`: number of pieces. `taken`: int64 ``(1,)``: number of pieces taken so
    far; more once all are. `part`: does the pieces that are left. `called`: number of threads on
    their way to it or taking part, besides its own. `helpers`: number of them taking part.
    `seconds`, `processor_seconds`: their time so far, by the clock and of processors. `error`:
    error, if any.
    """

    __slots__ = (
        "called",
        "count",
        "error",
        "helpers",
        "iteration",
        "node",
        "part",
        "processor_seconds",
        "program",
        "seconds",
        "taken",
    )

    def __init__(
        self, program: Program, context: SampleContext, count: int, part: LoopPart
    ) -> None:
        self.program = program
        self.node, self.iteration = context.node, context.iteration
        self.count = count
        self.taken = np.zeros(1, np.int64)
        self.part = part
        self.called = self.helpers = 0
        self.seconds = self.processor_seconds = 0.0
        self.error: BaseException | None = None

    def wants_help(self) -> bool:
        """True if enough is left for one more thread."""
        left = (self.count - int(self.taken[0])) * self.program.processor_seconds
        return left > _WORTH_HELPING_SECONDS * (self.called + 2)

    def do(self, temp: Temp) -> None:
        """Do the pieces that are left."""
        try:
            self.part(self.taken, temp)
        except BaseException as error:  # of any kind: a thread waits for the rest
            self.error = error
            self.taken[0] = self.count  # no thread takes another piece


class SharedLoops:
    """The loops of an executor's chunks."""

    def __init__(self, monitor: Monitor) -> None:
        self._monitor = monitor
        self._loops: list[SharedLoop] = []
        self._ended = threading.Condition(monitor.lock)
        """No thread helps any more in some loop."""

    def find(self) -> SharedLoop | None:
        """A loop for the calling thread to `help` in. The caller holds the lock."""
        for loop in self._loops:
            concurrency = loop.program.concurrency
            if loop.wants_help() and not concurrency.is_full():
                concurrency.enter()
                loop.called += 1
                if loop.wants_help() and not concurrency.is_full():
                    self._monitor.work.notify()
                return loop
        return None

    def help(self, loop: SharedLoop, arena: Arena) -> None:
        """Take part in a loop that was found, with scratch memory of the calling thread."""
        start, worked = time.perf_counter(), time.thread_time()
        with self._monitor.lock:
            # Do not wait for a thread that is not here yet: it may wait for a fork, which waits
            # for all that are at work.
            takes_part = loop in self._loops
            loop.helpers += takes_part
        if takes_part:
            mark = arena.mark()
            loop.do(arena.empty)
            arena.release(mark)
        worked = time.thread_time() - worked
        with self._monitor.lock:
            loop.called -= 1
            loop.program.concurrency.busy -= 1
            if takes_part:
                loop.seconds += time.perf_counter() - start
                loop.processor_seconds += worked
                loop.helpers -= 1
                if not loop.helpers:
                    self._ended.notify_all()

    def run(self, loop: SharedLoop, temp: Temp) -> None:
        """Do a loop with others."""
        with self._monitor.lock:
            self._loops.append(loop)
            if not loop.program.concurrency.is_full():
                self._monitor.work.notify()
        loop.do(temp)
        with self._monitor.lock:
            # Removed first, so that no thread joins any more; those that have joined only compute,
            # and wait for nothing.
            self._loops.remove(loop)
            while loop.helpers:
                self._ended.wait()
        if loop.error is not None:
            raise loop.error


class ChunkLoops:
    """The loops of the chunks that one worker carries through a program.

    `seconds`: processor time of the present chunk's loops. `helped_seconds`,
    `helped_processor_seconds`: time of other threads for it, by the clock and of processors.
    """

    def __init__(self, shared: SharedLoops, program: Program) -> None:
        self._shared = shared
        self._program = program
        self.begin()

    def begin(self) -> None:
        """Turn to another chunk."""
        self.seconds = self.helped_seconds = self.helped_processor_seconds = 0.0

    def __call__(self, count: int, part: LoopPart, context: SampleContext) -> None:
        """Do a loop; see `ChunkContext.loop`."""
        worked, temp = time.thread_time(), context.temp
        loop = SharedLoop(self._program, context, count, part)
        if loop.wants_help():
            self._shared.run(loop, temp)
            self.helped_seconds += loop.seconds
            self.helped_processor_seconds += loop.processor_seconds
            self.seconds += loop.processor_seconds
        else:
            part(loop.taken, temp)
        self.seconds += time.thread_time() - worked
