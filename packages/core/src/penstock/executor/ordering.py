"""Stages that iterations complete one after the other, in their order."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from penstock.executor.iteration import DONE

if TYPE_CHECKING:
    from penstock.executor.iteration import Iteration
    from penstock.executor.plan import Plan


def stages_in_order(plan: Plan) -> set[int]:
    """Numbers of the stages with operators that want iterations in their order."""
    return {
        stage.number
        for stage in plan.stages
        if any(node.schema.in_order for node in stage.batch_nodes)
    }


def is_early(queue: Iterable[Iteration], iteration: Iteration, number: int) -> bool:
    """Whether an earlier iteration of `queue`, oldest first, has yet to complete stage `number`."""
    for other in queue:
        if other is iteration:
            return False
        if other.state is not DONE and other.error is None and other.completed < number:
            return True
    return False
