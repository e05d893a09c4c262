"""The nodes that a pipeline has to run, in an order in which they can."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
        stack.extend((e.source, False) for e in reversed(node.sources) if e.source is not None)
    return order
