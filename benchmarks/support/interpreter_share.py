"""How much of an iteration the threads of this process spend at work, and where."""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from types import FrameType

_INTERVAL_S = 0.0005
_WAITING = {"wait", "acquire", "join", "synchronize", "_wait_for_tstate_lock", "get"}


@dataclass
class ThreadShare:
    """One thread, over some iterations.

    `name`: of the thread. `cpu_ms`: processor time an iteration: Python, and what it calls in C
    (the driver, decoders). `samples`, `busy`: how often it was looked at, and how often it was not
    waiting then. `places`: where it was when it did not wait.
    """

    name: str
    cpu_ms: float = 0.0
    samples: int = 0
    busy: int = 0
    places: Counter[str] = field(default_factory=Counter)


class _Sampler(threading.Thread):
    def __init__(self) -> None:
        super().__init__(name="sampler", daemon=True)
        self.shares: dict[int, ThreadShare] = {}
        self._stop_asked = threading.Event()

    def run(self) -> None:
        while not self._stop_asked.is_set():
            for ident, frame in sys._current_frames().items():
                if ident != self.ident:
                    self._note(ident, frame)
            time.sleep(_INTERVAL_S)

    def _note(self, ident: int, frame: FrameType) -> None:
        share = self.shares.setdefault(ident, ThreadShare("?"))
        share.samples += 1
        code = frame.f_code
        if code.co_name in _WAITING:
            return
        share.busy += 1
        path = code.co_filename.rpartition("headrace/")[2][-40:]
        share.places[f"{path}:{code.co_name}:{frame.f_lineno}"] += 1

    def stop(self) -> None:
        self._stop_asked.set()
        self.join()


def _processor_times() -> dict[int, tuple[str, float]]:
    """Name and processor seconds of each Python thread, by its number."""
    found = {}
    for thread in threading.enumerate():
        if thread.ident is not None:
            clock = time.pthread_getcpuclockid(thread.ident)
            found[thread.ident] = (thread.name, time.clock_gettime(clock))
    return found


def interpreter_share(
    step: Callable[[], int], finish: Callable[[], None], seconds: float = 1.5
) -> tuple[float, float, list[ThreadShare]]:
    """Run steps for about twice `seconds` and look at all Python threads meanwhile.

    Returns
    -------
    Milliseconds an iteration, processor milliseconds of the whole process an iteration, and the
    threads, busiest first. The interpreter is on the critical path as far as the first of them is
    busy: as its `cpu_ms` come near the milliseconds of an iteration.
    """
    iterations = _how_many(step, finish, seconds)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-4)  # else the sampler sees mostly places that let go of the lock
    sampler = _Sampler()
    before = _processor_times()
    start, process = time.perf_counter(), time.process_time()
    for _ in range(iterations):
        step()
    finish()
    elapsed, process = time.perf_counter() - start, time.process_time() - process
    after = _processor_times()
    # A second run, so that looking does not add to the times.
    sampler.start()
    try:
        for _ in range(iterations):
            step()
        finish()
    finally:
        sampler.stop()
        sys.setswitchinterval(interval)
    for ident, (name, seconds) in after.items():
        share = sampler.shares.setdefault(ident, ThreadShare(name))
        share.name = name
        share.cpu_ms = 1e3 * (seconds - before.get(ident, (name, 0.0))[1]) / iterations
    shares = sorted(sampler.shares.values(), key=lambda s: -s.cpu_ms)
    return 1e3 * elapsed / iterations, 1e3 * process / iterations, shares


def _how_many(step: Callable[[], int], finish: Callable[[], None], seconds: float) -> int:
    """How many steps take about so long."""
    rounds = 8
    step()
    finish()
    start = time.perf_counter()
    for _ in range(rounds):
        step()
    finish()
    return max(rounds, int(seconds * rounds / (time.perf_counter() - start)))


def print_share(title: str, found: tuple[float, float, list[ThreadShare]]) -> None:
    """Print what `interpreter_share` found."""
    wall, process, shares = found
    print(f"{title}: {wall:.2f} ms an iteration, {process:.2f} ms of processor time")
    for share in shares:
        if share.cpu_ms < 0.01 * wall:
            continue
        busy = share.busy / max(share.samples, 1)
        print(
            f"  {share.name:24} {share.cpu_ms:7.3f} ms of processor ({share.cpu_ms / wall:4.0%}), "
            f"not waiting {busy:4.0%}"
        )
        for place, count in share.places.most_common(5):
            print(f"      {count / max(share.samples, 1):4.0%}  {place}")
