"""A thread that looks at a running pipeline a hundred times a second."""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Callable
from time import perf_counter_ns
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.executor.iteration import DONE
from penstock.executor.processes.pool import POOL
from penstock.profiling.recorder import Recorder, processor_wait_nanoseconds, resident_bytes

if TYPE_CHECKING:
    from penstock.executor.iteration import Iteration
    from penstock.executor.memory import PipelineMemory

_PERIOD_SECONDS = 0.01
_LOOKS_A_FILE = 10
"""After so many looks the system is asked, too: files are read for it, which takes longer."""


class Sampler:
    """Notes how full the queue is, how much memory is in use, and who keeps the interpreter.

    It does not keep the pipeline alive.

    Parameters
    ----------
    recorder
        Where rows go.
    queue
        Iterations in progress.
    memory
        That of the pipeline.
    has_processes
        Whether worker processes carry samples.
    """

    def __init__(
        self,
        recorder: Recorder,
        queue: deque[Iteration],
        memory: PipelineMemory,
        *,
        has_processes: bool,
    ) -> None:
        self._memory = memory
        self._has_processes = has_processes
        self._recorder = recorder
        self._queue = queue
        self._ends = threading.Event()
        self._thread = threading.Thread(target=self._run, name="penstock-profiler", daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self, wait_seconds: float = 1.0) -> None:
        """Look no more."""
        self._ends.set()
        if self._thread.is_alive() and self._thread is not threading.current_thread():
            self._thread.join(wait_seconds)

    def _run(self) -> None:
        nap = _nap(self._ends)
        note, queue = self._recorder.looks.note, self._queue
        looks, delay, resident = 0, -1, 0
        while not self._ends.is_set():
            if looks % _LOOKS_A_FILE == 0:
                pids = POOL.pids() if self._has_processes else []
                delay, resident = processor_wait_nanoseconds(pids), resident_bytes()
            waited = nap()
            try:
                states = [iteration.state for iteration in queue]
            except RuntimeError:  # it was changed meanwhile
                continue
            note(
                perf_counter_ns(),
                len(states),
                states.count(DONE),
                *self._memory.held(),
                resident,
                waited,
                delay,
            )
            looks += 1


def _nap(ends: threading.Event) -> Callable[[], int]:
    """What waits for a while, and returns how long it then took to get the interpreter."""
    clock: Any = np.zeros(2, np.int64)
    microseconds = int(_PERIOD_SECONDS * 1e6)

    def timed() -> int:
        woke = int(nap(microseconds, clock))
        return max(perf_counter_ns() - woke, 0)

    def plain() -> int:
        ends.wait(_PERIOD_SECONDS)
        return -1

    if sys.platform != "linux":
        return plain
    try:
        from penstock.kernels.cpu.interpreter_probe import nap

        timed()  # which compiles it, or finds it in the cache
    except Exception:  # of the compiler: the rest of the profile needs nothing of it
        return plain
    return timed
