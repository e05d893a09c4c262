"""`split` and `merge` of ``fn._conditional``: branches that are written without `if`."""

from __future__ import annotations

from typing import Any

from headrace.graph import branches
from headrace.graph.capture import to_edge
from headrace.graph.data_node import DataNode
from headrace.operators.support.registry import find
from headrace.tracebacks import public


@public
def split(data: Any, *, predicate: DataNode) -> list[DataNode]:
    """Split a batch into the samples for which `predicate` is true, and the others.

    Operators that read either part run for its samples only. What is a pipeline's output goes
    through `merge` first.
    """
    return branches.split(to_edge(data, find("copy"), 0), predicate)


@public
def merge(if_true: Any, if_false: Any, *, predicate: DataNode) -> DataNode:
    """Join the results of the two parts of a batch that was split by `predicate`."""
    schema = find("_conditional.merge")
    return branches.merge(predicate, to_edge(if_true, schema, 0), to_edge(if_false, schema, 1))
