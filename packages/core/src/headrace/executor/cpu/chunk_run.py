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

    def __init__(self, iteration: Iteration, samples: list[int], *, behind: bool = False) -> None:
        program = iteration.program
        assert program is not None
        self.iteration = iteration
        self.samples = samples
        self.program: Program = program
        self.runner: RemoteRunner
        self.sent: SentSamples | None = None
        """What a worker process was sent, where it is not done in the thread."""
        self.is_counted = not behind
        """Whether its thread counts, for its sake, as one at work; see `Concurrency`."""
        self.beside = program.concurrency.busy
        """How many chunks were worked on when it began."""
        self.started = time.perf_counter()
        """When somebody took it."""
        self.compiling_seconds = compiling.seconds
        """How long kernels had been compiled until then."""
        self.worked = 0.0
        """Seconds of a processor that it has taken in the thread, ..."""
        self.elsewhere = 0.0
        """... and in a worker process."""
        self.loops: ChunkLoops | None = None
        """What its loops took, where other threads may have helped."""
        self.failures: list[tuple[int, BaseException]] = []
        self.failed: BaseException | None = None
        """What has failed altogether."""
