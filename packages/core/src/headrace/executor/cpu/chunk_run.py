"""Samples of an iteration that a thread has taken to carry them through a stage."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from headrace.compilation_notice import compiling

if TYPE_CHECKING:
    from headrace.executor.cpu.program import Program
    from headrace.executor.cpu.shared_loops import ChunkLoops
    from headrace.executor.iteration import Iteration
    from headrace.executor.processes.remote import RemoteRunner, SentSamples


class ChunkRun:
    """A chunk of samples on its way through a stage."""

    __slots__ = (
        "beside",
        "compiling_seconds",
        "elsewhere",
        "failed",
        "failures",
        "is_counted",
        "iteration",
        "loops",
        "program",
        "runner",
        "samples",
        "sent",
        "started",
        "worked",
    )

    def __init__(self, iteration: Iteration, samples: list[int], *, queued: bool = False) -> None:
        program = iteration.program
        assert program is not None
        self.iteration = iteration
        self.samples = samples
        self.program: Program = program
        self.runner: RemoteRunner
        self.sent: SentSamples | None = None
        """Samples sent to a worker process; `None` if the thread does the work."""
        self.is_counted = not queued
        """True if the thread is counted as busy for this chunk; see `Concurrency`."""
        self.beside = program.concurrency.busy
        """Number of chunks in progress when it began."""
        self.started = time.perf_counter()
        """Time at which a thread took it."""
        self.compiling_seconds = compiling.seconds
        """Total time of kernel compilations until then."""
        self.worked = 0.0
        """Seconds of a processor that it has taken in the thread, ..."""
        self.elsewhere = 0.0
        """... and in a worker process."""
        self.loops: ChunkLoops | None = None
        """Times of its loops, which other threads may have helped with."""
        self.failures: list[tuple[int, BaseException]] = []
        self.failed: BaseException | None = None
        """Error that failed the whole chunk."""
