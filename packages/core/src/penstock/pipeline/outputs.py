"""What a definition returned, as edges."""

from __future__ import annotations

from typing import Any

from penstock.errors import ArgumentTypeError
from penstock.graph.capture import constant_input
from penstock.graph.data_node import DataNode


def to_output_edges(outputs: tuple[Any, ...]) -> list[DataNode]:
    """Outputs as edges; numbers, lists of numbers and arrays become constants.

    Raises
    ------
    ArgumentTypeError
        If an output is neither.
    """
    edges = []
    for number, value in enumerate(outputs):
        if isinstance(value, DataNode):
            edges.append(value)
            continue
        if isinstance(value, (list, tuple)) and any(isinstance(v, DataNode) for v in value):
            raise ArgumentTypeError(
                f"Illegal pipeline output: output {number} contains a nested `DataNode`. Missing "
                "list/tuple expansion (*) is the likely cause: return a tuple of nodes, "
                "`return tuple(nodes)` or `a, b = ...; return a, b`."
            )
        constant = constant_input(value)
        if constant is None:
            raise ArgumentTypeError(
                f"Illegal output type: output {number} is a {type(value).__name__}; expected a "
                "`DataNode` or numbers that can be made a constant."
            )
        edges.append(constant)
    return edges
