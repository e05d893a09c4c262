"""The nodes that a pipeline has to run, in an order in which they can."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.graph.guards import Term

if TYPE_CHECKING:
    from headrace.graph.data_node import DataNode
    from headrace.graph.nodes import OpNode


def needed_nodes(created: list[OpNode], outputs: list[DataNode]) -> list[OpNode]:
    """Nodes that outputs depend on and those to be preserved, each after those it reads.

    Nodes that nothing reads are left out.
    """
    wanted = [e.source for e in outputs if e.source is not None]
    wanted += [n for n in created if n.preserve]
    placed: set[int] = set()
    order: list[OpNode] = []
    # Depth first, without recursion: chains of operators may be long.
    stack: list[tuple[OpNode, bool]] = [(n, False) for n in reversed(wanted)]
    while stack:
        node, sources_done = stack.pop()
        if id(node) in placed:
            continue
        if sources_done:
            placed.add(id(node))
            order.append(node)
            continue
        stack.append((node, True))
        stack.extend((e.source, False) for e in reversed(_read(node)) if e.source is not None)
    return order


def _read(node: OpNode) -> list[DataNode]:
    """Every edge that a node reads, in the order in which DALI would come to it.

    In DALI nodes that split batches stand before those of a branch: what they split comes first,
    then what they split it by, from the outermost branch inwards.
    """
    found: list[DataNode] = []
    for position, edge in enumerate(node.arguments):
        found.append(edge)
        guard = node.guard
        if node.schema.merges and position < 2:
            guard = (*guard, Term(node.inputs[2], position == 0))
        known = {term.key for term in edge.source.guard} if edge.source is not None else set()
        found += (term.predicate for term in guard if term.key not in known)
    found += (term.predicate for term in node.guard)
    return found
