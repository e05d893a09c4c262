"""Carriers of a pipeline's samples outside of this process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from headrace.executor.executor import Executor
    from headrace.executor.plan import Plan
    from headrace.graph.data_node import DataNode


class Elsewhere(Protocol):
    """Maker of a pipeline's executor, in place of the engine; `headrace.plugin.ray` has one.

    Readers draw, and external sources are asked, in this process, as ever.
    """

    batches_ahead: int
    """Least number of iterations to schedule ahead."""

    def anew(self) -> Elsewhere:
        """Return the same for a copy of the pipeline."""
        ...

    def make_executor(
        self, plan: Plan, readers: dict[int, Any], outputs: list[DataNode], **how: Any
    ) -> Executor:
        """Make what has the methods of an executor; `how` are the arguments of one."""
        ...
