"""Counters of a running pipeline, and the memory of its operators' outputs."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING

from headrace.executor.memory import real_size, reserved_size

if TYPE_CHECKING:
    from headrace.executor.iteration import Iteration
    from headrace.executor.plan import Plan


@dataclass(slots=True)
class Statistics:
    """Counts of an executor's work so far."""

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
    padding: float = 0.0
    """Share of padding in what `fn.pad` has made on the CPU, of samples padded to the largest of
    their batch."""
    _elements: int = field(default=0, repr=False)
    _padded_elements: int = field(default=0, repr=False)
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
            self._elements += iteration.elements
            self._padded_elements += iteration.padded_elements
            if self._padded_elements:
                self.padding = 1 - self._elements / self._padded_elements

    def waited(self, seconds: float) -> None:
        """Count time the consumer spent waiting."""
        self.consumer_wait_seconds += seconds

    def as_dict(self) -> dict[str, float]:
        """All counters by name."""
        return {f.name: getattr(self, f.name) for f in fields(self) if not f.name.startswith("_")}


_KEYS = (
    "real_memory_size",
    "max_real_memory_size",
    "reserved_memory_size",
    "max_reserved_memory_size",
)


class MemoryStatistics:
    """The largest batches so far of each operator; used by the consumer alone.

    `Pipeline.executor_statistics` has them.
    """

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._largest: dict[int, tuple[int, ...]] = {}
        """For each register what `_KEYS` say."""

    def note(self, iteration: Iteration) -> None:
        """Take the batches of a finished iteration into account."""
        for r in range(len(self._plan.consumers)):
            found = self._largest.get(r, (0,) * len(_KEYS))
            batch = iteration.buffers[r]
            if batch is not None:
                real, reserved = real_size(batch), reserved_size(batch)
                each = max(len(batch), 1)
                sizes = real, -(-real // each), reserved, -(-reserved // each)
                found = tuple(map(max, found, sizes))
            self._largest[r] = found

    def as_dict(self) -> dict[str, dict[str, list[int]]]:
        """By device and name of each operator, for each of its outputs."""
        if not self._largest:
            return {}
        registers = self._plan.registers
        return {
            f"{node.device.upper()}_{node.name}": {
                key: [self._largest[registers[id(node), n]][k] for n in range(len(node.outputs))]
                for k, key in enumerate(_KEYS)
            }
            for node in self._plan.nodes
        }
