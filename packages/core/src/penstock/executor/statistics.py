"""Counters of a running pipeline."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.executor.iteration import Iteration


@dataclass(slots=True)
class Statistics:
    """What an executor did so far."""

    iterations: int = 0
    """Iterations that were finished."""
    samples: int = 0
    """Samples in them."""
    skipped_samples: int = 0
    """Bad samples that were dropped and made up for."""
    failed_iterations: int = 0
    """Iterations that ended in an error."""
    busy_seconds: float = 0.0
    """Sum of the times from an iteration's begin to its end; iterations overlap."""
    python_function_seconds: float = 0.0
    """Time in functions of the user's: `fn.python_function` and its relatives, which run one after
    the other. Where it is near the time that has passed, they set the pace."""
    consumer_wait_seconds: float = 0.0
    """Time the consumer waited for batches: near zero when the pipeline keeps up."""
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    """Guards the counters of `finished`; `waited` is the consumer's alone."""

    def finished(self, iteration: Iteration) -> None:
        """Count a finished iteration."""
        with self._lock:
            if iteration.error is not None:
                self.failed_iterations += 1
                return
            self.iterations += 1
            self.samples += iteration.size
            self.skipped_samples += iteration.skipped
            self.busy_seconds += iteration.seconds
            self.python_function_seconds += iteration.python_function_seconds

    def waited(self, seconds: float) -> None:
        """Count time the consumer spent waiting."""
        self.consumer_wait_seconds += seconds

    def as_dict(self) -> dict[str, float]:
        """All counters by name."""
        return {f.name: getattr(self, f.name) for f in fields(self) if not f.name.startswith("_")}
