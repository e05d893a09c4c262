"""Edges of a graph and how new axes are asked for in an index."""

from __future__ import annotations

from headrace.graph.data_node import DataNode
from headrace.graph.subscript import newaxis

__all__ = ["DataNode", "newaxis"]


def __dir__() -> list[str]:
    return [*__all__]
