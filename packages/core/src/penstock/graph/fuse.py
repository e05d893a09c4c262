"""Merge neighbouring operators of the graph into one, where the result stays bit-identical."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.graph.data_node import DataNode
    from penstock.graph.nodes import OpNode


def merge_expressions(
    nodes: list[OpNode], outputs: list[DataNode]
) -> tuple[list[OpNode], list[DataNode]]:
    """Make one operator of each tree of arithmetic."""
    return nodes, outputs
