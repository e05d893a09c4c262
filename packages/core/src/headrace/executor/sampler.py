"""A thread that looks at a running pipeline, as a rule a hundred times a second."""

from __future__ import annotations

import sys
import threading
from collections import deque
from collections.abc import Callable
from time import perf_counter_ns, thread_time_ns
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.executor.iteration import DONE
from headrace.executor.processes.pool import POOL
from headrace.profiling.recorder import ProfileRecorder, processor_wait_nanoseconds, resident_bytes

if TYPE_CHECKING:
    from headrace.executor.iteration import Iteration
    from headrace.executor.memory import PipelineMemory

_PERIODS_NANOSECONDS = 10_000_000, 50_000_000
"""Of looks: the shortest, and the longest."""
_MOST_OF_A_PROCESSOR = 0.003
"""Largest share of a processor for sampling. Working threads own the processor's caches meanwhile,
so that a sample of ten microseconds takes a hundred on some machines: then the next one is
later."""
_ASKED_NANOSECONDS = 100_000_000
"""After so long the system is asked, too: files are read for it, which takes longer."""
_ASKED_SHARE = 20
"""Growth of the interval between reads of the waits for processors, which has a file for each
thread: the time since the beginning divided by this. The waits only grow, and their growth is
told."""


class Sampler:
    """Records the length of the queue, the memory in use, and the time to get the interpreter.

    It does not keep the pipeline alive.
    """

    def __init__(
        self,
        recorder: ProfileRecorder,
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
        self._thread = threading.Thread(target=self._run, name="headrace-profiler", daemon=True)

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
        note, queue, held = self._recorder.looks.note, self._queue, self._memory.held
        looks, delay, resident = 0, -1, 0
        period, spent = _PERIODS_NANOSECONDS[0], thread_time_ns()
        began = time = perf_counter_ns()
        asks = asks_of_waits = 0
        """Times at which the system is asked."""
        while not self._ends.is_set():
            if time >= asks:
                asks, resident = time + _ASKED_NANOSECONDS, resident_bytes()
                if time >= asks_of_waits:
                    asks_of_waits = max(asks, time + (time - began) // _ASKED_SHARE)
                    pids = POOL.pids() if self._has_processes else []
                    delay = processor_wait_nanoseconds(pids)
                if looks:
                    before, spent = spent, thread_time_ns()
                    period, looks = _period((spent - before) // looks), 0
            waited = nap(period)
            try:
                states = [iteration.state for iteration in queue]
            except RuntimeError:  # it was changed meanwhile
                continue
            used, idle, device = held()
            time, queued, ready = perf_counter_ns(), len(states), states.count(DONE)
            note(time, queued, ready, used, idle, device, resident, waited, delay)
            looks += 1


def _period(look: int) -> int:
    """Nanoseconds until the next look, where one takes `look` of a processor."""
    shortest, longest = _PERIODS_NANOSECONDS
    return min(max(int(look / _MOST_OF_A_PROCESSOR), shortest), longest)


def _nap(ends: threading.Event) -> Callable[[int], int]:
    """Return a function that sleeps for some nanoseconds and returns how long getting the
    interpreter back took.
    """
    clock: Any = np.zeros(2, np.int64)

    def timed(nanoseconds: int) -> int:
        woke = int(nap(nanoseconds // 1000, clock))
        return max(perf_counter_ns() - woke, 0)

    def plain(nanoseconds: int) -> int:
        ends.wait(nanoseconds / 1e9)
        return -1

    if sys.platform != "linux":
        return plain
    try:
        from headrace.kernels.cpu.interpreter_probe import nap

        timed(0)  # which compiles it, or finds it in the cache
    except Exception:  # of the compiler: the rest of the profile needs nothing of it
        return plain
    return timed
