"""A graph that was defined for a GPU, on the CPU."""

from __future__ import annotations

from dataclasses import replace

from headrace.errors import GpuNotAvailableError
from headrace.graph.data_node import DataNode
from headrace.graph.guards import Term
from headrace.graph.nodes import OpNode
from headrace.operators.support.schema import OpSchema


def on_cpu(
    nodes: list[OpNode], outputs: list[DataNode], reason: str
) -> tuple[list[OpNode], list[DataNode]]:
    """The same graph with all operators and edges on the CPU.

    The nodes given are left as they are; where anything asks for a GPU, copies of all are returned,
    one for each and in the same order.
    """
    if not asks_for_gpu(nodes, outputs):
        return nodes, outputs
    edges: dict[tuple[int, int], DataNode] = {}

    def edge(original: DataNode) -> DataNode:
        return edges[id(original.source), original.index]

    copies = []
    for node in nodes:
        if node.device != "cpu":
            written = f"`{node.where().operator}`, created at {node.user_line},"
            check_on_cpu(node.schema, written, reason)
        copy = replace(
            node,
            device="cpu",
            inputs=[edge(e) for e in node.inputs],
            tensor_args={name: edge(e) for name, e in node.tensor_args.items()},
            guard=tuple([Term(edge(t.predicate), t.holds) for t in node.guard]),
            outputs=[],
        )
        count = len(node.outputs)
        copy.outputs = [DataNode.of(copy, index, count) for index in range(count)]
        for index, made in enumerate(copy.outputs):
            edges[id(node), index] = made
        copies.append(copy)
    return copies, [edge(e) for e in outputs]


def asks_for_gpu(nodes: list[OpNode], outputs: list[DataNode]) -> bool:
    """Return True if some operator runs on a GPU or passes its outputs to one."""
    edges = [*outputs, *(edge for node in nodes for edge in node.sources)]
    return any(n.device != "cpu" for n in nodes) or any(e.device == "gpu" for e in edges)


def check_on_cpu(schema: OpSchema, written: str, reason: str) -> None:
    """Check that an operator on a GPU can do the same on the CPU."""
    cls = schema.cls
    has_cpu = "cpu" in schema.devices and (schema.fed or schema.reader or cls.has_cpu())
    if has_cpu and cls.same_on_cpu:
        return
    what = "its function is a kernel" if has_cpu else "it has no implementation for the CPU"
    raise GpuNotAvailableError(
        f"{written} works on a GPU only: {what}. There is none: {reason.rstrip('.')}."
    )
