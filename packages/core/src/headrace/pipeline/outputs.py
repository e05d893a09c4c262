"""Conversion of a definition's return value to edges."""

from __future__ import annotations

import warnings
from typing import Any

from headrace.errors import ArgumentTypeError, NoOutputsError
from headrace.graph.capture import constant_input
from headrace.graph.data_node import DataNode
from headrace.graph.nodes import OpNode
from headrace.graph.user_line import stack_level


def no_outputs() -> NoOutputsError:
    """The error of a pipeline that returns nothing."""
    return NoOutputsError(
        "The pipeline has no outputs: return them from the definition, pass them to "
        "`set_outputs`, or return them from `define_graph`."
    )


def to_output_edges(outputs: tuple[Any, ...]) -> list[DataNode]:
    """Outputs as edges; numbers, lists of numbers and arrays become constants."""
    edges = []
    for number, value in enumerate(outputs):
        if isinstance(value, DataNode):
            edges.append(value)
            continue
        if isinstance(value, (list, tuple)) and any(isinstance(v, DataNode) for v in value):
            raise ArgumentTypeError(
                f"Illegal pipeline output type. The output {number} contains a nested `DataNode`. "
                "Missing list/tuple expansion (*) is the likely cause: return a tuple of nodes, "
                "`return tuple(nodes)` or `a, b = ...; return a, b`."
            )
        constant = constant_input(value)
        if constant is None:
            raise ArgumentTypeError(
                f"Illegal output type. The output {number} is a `{type(value)}`. Expected a "
                "`DataNode` or numbers that can be made a constant."
            )
        edges.append(constant)
    return edges


def warn_of_unused_outputs(nodes: list[OpNode], outputs: list[DataNode]) -> None:
    """Warn where a source makes data for an output that nothing uses."""
    used = {(id(e.source), e.index) for n in nodes for e in n.sources}
    used |= {(id(e.source), e.index) for e in outputs}
    for node in nodes:
        unused = [k for k in range(len(node.outputs)) if (id(node), k) not in used]
        if unused and node.input_queue is not None:
            places = ", ".join(map(str, unused))
            which = (
                f"outputs at the indices {places} are"
                if unused[1:]
                else (f"output at the index {places} is")
            )
            source = node.args.get("source")
            warnings.warn(
                f"The external source node '{node.name if source is None else source}' produces "
                f"{len(node.outputs)} outputs, but the {which} not used. It was created at "
                f"{node.user_line}.",
                UserWarning,
                stacklevel=stack_level(),
            )
