"""Memory of the outputs of each operator, as `Pipeline.executor_statistics` has it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.executor.memory import real_size, reserved_size

if TYPE_CHECKING:
    from penstock.executor.iteration import Iteration
    from penstock.executor.plan import Plan

_KEYS = (
    "real_memory_size",
    "max_real_memory_size",
    "reserved_memory_size",
    "max_reserved_memory_size",
)


class MemoryStatistics:
    """The largest batches so far; used by the consumer alone.

    Parameters
    ----------
    plan
        The graph, cut into stages.
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
