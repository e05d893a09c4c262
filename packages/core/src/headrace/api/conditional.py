"""`split` and `merge` of ``fn._conditional``: branches that are written without `if`."""

from __future__ import annotations

from typing import Any

from headrace.graph import branches
from headrace.graph.capture import make_node, to_edge
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
    """Join the results of the two parts of a batch that was split by `predicate`.

    It may be another edge than the one that the batch was split by, of the same truth values.
    """
    schema = find("_conditional.merge")
    edges = [to_edge(if_true, schema, 0), to_edge(if_false, schema, 1)]
    term = branches.split_of(*edges)
    if not isinstance(predicate, DataNode) or term is None or term.is_of(predicate):
        return branches.merge(predicate, *edges)
    data = branches.merge(term.predicate, *(edges if term.holds else edges[::-1]))
    inputs = [data, term.predicate, predicate]
    made = make_node(find("_validate_merge"), inputs, {"negated": not term.holds})
    return made.outputs[0]
