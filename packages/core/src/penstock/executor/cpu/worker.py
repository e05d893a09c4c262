"""The threads that carry samples through stages on the CPU."""

from __future__ import annotations

import contextlib
import os
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.executor.cpu.arena import Arena
from penstock.executor.threads import EngineThread, serve

if TYPE_CHECKING:
    from penstock.executor.monitor import Monitor
    from penstock.executor.threads import TaskSource


class Worker(EngineThread):
    """Takes samples from iterations and carries them through their stage.

    Parameters
    ----------
    number
        Which of the workers it is.
    monitor
        Where it waits.
    sources
        What it asks for tasks, in this order; not kept alive.
    bind
        Whether to bind it to a processor.
    looks_at
        Streams whose stages it launches, too.
    """

    def __init__(
        self,
        number: int,
        monitor: Monitor,
        sources: Sequence[TaskSource],
        *,
        bind: bool,
        looks_at: frozenset[str],
    ) -> None:
        super().__init__(f"penstock-worker-{number}", looks_at)
        self.number = number
        self._monitor = monitor
        self._sources = [weakref.ref(source) for source in sources]
        self._processor = number if bind else None
        self.arena = Arena()
        """Scratch memory, used by this thread alone."""

    def run(self) -> None:
        """Work until the executor shuts down."""
        self._bind()
        serve(self._monitor, self._monitor.work, self._sources)

    def _bind(self) -> None:
        """Bind the thread to one of the processors that the process may use."""
        if self._processor is not None and hasattr(os, "sched_setaffinity"):
            allowed = sorted(os.sched_getaffinity(0))
            with contextlib.suppress(OSError):  # taken away meanwhile
                os.sched_setaffinity(0, {allowed[self._processor % len(allowed)]})
