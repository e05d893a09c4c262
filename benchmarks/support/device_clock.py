"""Times of queued work, measured on the device's own clock."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from typing import Any

import numpy as np

_SPIN = """
extern "C" __global__ void spin(long long cycles) {
  long long start = clock64();
  while (clock64() - start < cycles) {}
}
"""
_CYCLES_PER_SECOND = 2e9


class DeviceClock:
    """Times work on one stream with CUDA events.

    The stream is held up by a kernel that only waits until the host has queued everything, so that
    the time the host takes to queue is not in the figures.

    `runtime`: A `headrace.tensors.gpu.cuda.CudaRuntime`. `stream`: where the work is queued.
    """

    def __init__(self, runtime: Any, stream: int) -> None:
        self._runtime = runtime
        self._stream = stream
        self._spin = runtime.function(_SPIN, "spin")

    def microseconds(self, work: Callable[[int], None], count: int) -> tuple[float, float]:
        """Medians of device and of host microseconds of ``work(k)``, for `count` numbers `k`."""
        cuda, api = self._runtime.xp.cuda, self._runtime.api
        self._runtime.synchronize(self._stream)
        begin = time.perf_counter()
        work(0)
        queueing = time.perf_counter() - begin
        self._runtime.synchronize(self._stream)
        events = [cuda.Event() for _ in range(count + 1)]
        host = []
        cycles = int((0.5e-3 + 2 * count * queueing) * _CYCLES_PER_SECOND)
        self._spin((1, 1, 1), (1, 1, 1), (np.int64(cycles),), 0, self._stream)
        api.eventRecord(events[0].ptr, self._stream)
        for k in range(count):
            begin = time.perf_counter()
            work(k)
            host.append(time.perf_counter() - begin)
            api.eventRecord(events[k + 1].ptr, self._stream)
        self._runtime.synchronize(self._stream)
        device = [1e3 * cuda.get_elapsed_time(a, b) for a, b in itertools.pairwise(events)]
        return float(np.median(device)), 1e6 * float(np.median(host))


class HostClock:
    """The same interface for a GPU that is emulated: figures mean nothing there."""

    def __init__(self, runtime: Any, stream: int) -> None:
        self._runtime = runtime
        self._stream = stream

    def microseconds(self, work: Callable[[int], None], count: int) -> tuple[float, float]:
        """Microseconds with and without waiting."""
        whole, host = [], []
        for k in range(count):
            begin = time.perf_counter()
            work(k)
            host.append(time.perf_counter() - begin)
            self._runtime.synchronize(self._stream)
            whole.append(time.perf_counter() - begin)
        return 1e6 * float(np.median(whole)), 1e6 * float(np.median(host))
