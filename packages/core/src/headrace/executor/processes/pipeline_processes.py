"""The worker processes of the program, as far as one pipeline uses them."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.errors import UsageError
from headrace.executor.processes.choice import processors
from headrace.executor.processes.functions import RemoteFunctions
from headrace.executor.processes.graph import Graph, PackedGraph
from headrace.executor.processes.pool import POOL
from headrace.executor.processes.remote import RemoteRunner
from headrace.executor.processes.shared_pool import SHARED_POOL
from headrace.executor.processes.worker_process import LostWorkerError, WorkerProcess
from headrace.tensors.pool import HostPool, PoolShare

if TYPE_CHECKING:
    from headrace.executor.affinity import Affinity
    from headrace.executor.cpu.program import Program
    from headrace.executor.cpu.runner import SampleRunner
    from headrace.profiling.recorder import SpanRecorder
    from headrace.tensors.gpu.device import GpuDevice

_SHORT_RUN_SECONDS = 2.0
"""Of a processor, which a program uses before the engine starts processes by itself. Without them
a short run ends sooner: 20 pipelines of four small batches took 3.3 s in threads on two processors,
and 5.9 s where each of them had its processes."""
_LIGHT_SECONDS, _LIGHT_SECONDS_OF_TWO = 20e-6, 150e-6
"""Of a processor, for a sample that threads carry to the end, where processes are not asked for and
seldom have a whole batch each; the second where there are two workers at most, which seldom wait
for one another's interpreter: `design/worker-processes.md` has figures."""
_FEW_PROCESSORS = 2
"""Processors of which worker processes leave the program none."""
_HEAVIER = 2
"""Factor by which samples must become heavier before processes carry them after all."""


class WorkerProcesses:
    """The worker processes of the program, as far as one pipeline uses them."""

    def __init__(
        self,
        graph: Graph,
        outputs: list[Any],
        count: int,
        *,
        affinity: Affinity | None,
        timeout_seconds: float | None,
        device: GpuDevice | None = None,
        is_asked_for: bool = True,
        begins_at_once: bool = False,
        begins_early: bool = False,
        calls_functions: bool = False,
    ) -> None:
        self.graph = PackedGraph(graph, outputs)
        self.count = count
        self.is_asked_for = is_asked_for
        self._begins_at_once = is_asked_for or begins_at_once
        """True if no thread carries samples while processes may."""
        self._light_seconds = _LIGHT_SECONDS_OF_TWO if count <= 2 else _LIGHT_SECONDS
        if begins_early and processors() > _FEW_PROCESSORS:
            self._light_seconds = 0.0
        self.functions = RemoteFunctions(self) if calls_functions else None
        self.policy = graph.policy
        self.pool: HostPool = PoolShare(SHARED_POOL)
        """Pool of memory for samples."""
        self.pool.empty((1,), np.uint8)  # which may fail, and shows it here
        self.pinned: HostPool | None = None
        """The same for those that a GPU reads."""
        if device is not None:
            from headrace.executor.processes.pinned_pool import pinned_shared_pool

            self.pinned = PoolShare(pinned_shared_pool(device))
        self.refused = ""
        """Reason why processes refused the pipeline, if they did."""
        self.is_closed = False
        """True if the pipeline was shut down."""
        self.copies_inputs = False
        """True if inputs elsewhere are copied to shared memory, because the system does not let
        workers read memory of the program."""
        self.carry_lock = threading.Lock()
        """Held while a batch is put into shared memory."""
        self._timeout = timeout_seconds
        self._numbers: dict[Program, int] = {}
        self._lock = threading.Lock()
        """Guards the numbers of programs."""
        self._light: set[Program] = set()
        """Programs that threads carry out because their samples are light."""
        self._made = time.process_time()
        self._starting = threading.Lock()
        """Taken by the thread that starts the processes, and never released."""
        self.has_started = False
        """True if the processes were started; threads carry samples until then."""
        self._bindings: list[tuple[int, ...]] = [
            () if affinity is None else affinity.of(k) for k in range(count)
        ]

    def start(self) -> None:
        """Start the processes where they are to carry all samples; do not wait for them."""
        if self._begins_at_once:
            POOL.enter(self.graph, self._bindings)
            self.has_started = True

    @property
    def why_threads(self) -> str:
        """Reason why threads carry samples at present; empty where processes do."""
        if self.refused or self.has_started:
            return self.refused
        if light := list(self._light):
            took = max(program.processor_seconds for program in light)
            return (
                f"a sample takes {1e6 * took:.0f} microseconds of a processor, about what it takes "
                'to hand it to another process; `workers="processes"` does so all the same'
            )
        return (
            f"worker processes start when the program has used a processor for "
            f"{_SHORT_RUN_SECONDS:.0f} seconds since the pipeline was built"
        )

    def carry(self, program: Program) -> bool:
        """Return True if processes carry the samples of a program from now on.

        They start once the run is long enough, for the first program that threads had better not
        carry out.
        """
        if self._begins_at_once or program.is_sent:
            return self.has_started
        if not program.is_timed or time.process_time() - self._made < _SHORT_RUN_SECONDS:
            return False
        limit = self._light_seconds * (_HEAVIER if program in self._light else 1)
        if program.processor_seconds < limit:
            self._light.add(program)
            return False
        self._light.discard(program)
        return self._begin()

    def _begin(self) -> bool:
        if self.has_started:
            return True
        if not self._starting.acquire(blocking=False):
            return False  # another thread is at it
        try:
            POOL.enter(self.graph, self._bindings)
        except (OSError, MemoryError, LostWorkerError) as error:
            self.refused = f"worker processes cannot be started here: {error}"
            return False
        self.has_started = True
        return True

    def runner(
        self,
        program: Program,
        own: SampleRunner,
        recorder: SpanRecorder,
        codes: tuple[int, int, int],
    ) -> RemoteRunner:
        """Return the runner with which processes carry samples for a thread; see `RemoteRunner`."""
        return RemoteRunner(program, self, own, recorder, codes)

    def lend(self, *, again: bool, starts: bool = True) -> WorkerProcess | None:
        """A process for the calling thread, to be given back to `POOL`; see there."""
        if self.is_closed:
            raise UsageError("The pipeline was shut down.")
        return POOL.lend(
            self.graph,
            self._bindings,
            self._timeout,
            again=again,
            waits=starts and (self._begins_at_once or again),
            starts=starts,
        )

    def number_of(self, program: Program) -> int:
        """Return the number of a program in messages."""
        with self._lock:
            return self._numbers.setdefault(program, len(self._numbers))

    def pids(self) -> list[int]:
        """Numbers of the processes that have answered, to whatever pipeline."""
        return POOL.pids()

    def close(self) -> None:
        """Do without the processes; may be called by the garbage collector."""
        if not self.is_closed:
            self.is_closed = True
            POOL.leave(self.graph.number)
