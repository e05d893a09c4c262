"""The graph as a drawing for Graphviz."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headrace.graph.data_node import DataNode
    from headrace.graph.nodes import OpNode

_COLOURS = {"cpu": "lightblue", "gpu": "palegreen", "mixed": "khaki"}


def to_dot(
    nodes: list[OpNode], outputs: list[DataNode], *, show_tensors: bool, use_colors: bool
) -> str:
    """Text of a ``digraph`` of all operators and the edges between them."""
    lines = ["digraph graphname {", "  rankdir=TB;", "  node [shape=box];"]
    for node in nodes:
        label = f"{node.name}\\nfn.{node.schema.name}"
        style = f', style=filled, fillcolor="{_COLOURS[node.device]}"' if use_colors else ""
        lines.append(f"  {_quoted(node.name)} [label={_quoted(label)}{style}];")
        if show_tensors:
            for edge in node.outputs:
                lines.append(
                    f"  {_quoted('edge ' + edge.name)} [label={_quoted(edge.name)}, shape=ellipse];"
                )
                lines.append(f"  {_quoted(node.name)} -> {_quoted('edge ' + edge.name)};")
    for node in nodes:
        lines += [f"  {_origin(e, show_tensors)} -> {_quoted(node.name)};" for e in node.inputs]
        for argument, edge in node.tensor_args.items():
            lines.append(
                f"  {_origin(edge, show_tensors)} -> {_quoted(node.name)} "
                f"[style=dashed, label={_quoted(argument)}];"
            )
    for number, edge in enumerate(outputs):
        name = _quoted(f"output {number}")
        lines.append(f"  {name} [shape=cds];")
        lines.append(f"  {_origin(edge, show_tensors)} -> {name};")
    return "\n".join([*lines, "}", ""])


def _origin(edge: DataNode, show_tensors: bool) -> str:
    assert edge.source is not None
    return _quoted("edge " + edge.name if show_tensors else edge.source.name)


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '\\"') + '"'
