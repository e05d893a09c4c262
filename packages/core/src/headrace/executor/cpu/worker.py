"""The threads that carry samples through stages on the CPU."""

from __future__ import annotations

import functools
import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING

from headrace.executor.cpu.arena import Arena
from headrace.executor.monitor import Wakeup
from headrace.executor.threads import ExecutorThread, serve

if TYPE_CHECKING:
    from headrace.executor.affinity import Affinity
    from headrace.executor.monitor import Monitor
    from headrace.executor.threads import TaskSource


class WorkerThread(ExecutorThread):
    """Takes samples from iterations and carries them through their stage."""

    def __init__(
        self,
        number: int,
        monitor: Monitor,
        sources: Sequence[TaskSource],
        *,
        affinity: Affinity | None = None,
        looks_at: frozenset[str],
        looks_for_samples: bool = False,
    ) -> None:
        super().__init__(f"headrace-worker-{number}", looks_at)
        self.looks_for_samples = looks_for_samples
        self.number = number
        self._monitor = monitor
        self._sources = [weakref.ref(source) for source in sources]
        self._affinity = affinity
        self.arena = Arena()
        """Scratch memory, used by this thread alone."""

    @functools.cached_property
    def wakeup(self) -> Wakeup:
        """Event that ends the thread's wait for worker processes."""
        return Wakeup()

    def run(self) -> None:
        """Work until the executor shuts down."""
        if self._affinity is not None:
            self._affinity.bind(self.number)
        serve(self._monitor, self._monitor.work, self._sources)
