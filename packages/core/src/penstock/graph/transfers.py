"""Put copies between host and device where data is wanted elsewhere than it is made."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from penstock.graph.capture import wanted_device
from penstock.graph.data_node import DataNode
from penstock.graph.guards import Term
from penstock.graph.nodes import OpNode
from penstock.operators.support.registry import find


def insert_transfers(
    nodes: list[OpNode], outputs: list[DataNode]
) -> tuple[list[OpNode], list[DataNode]]:
    """Add a node for each batch that goes to the other device, once for all who want it there.

    Constants are made where they are wanted. The nodes given are left as they are; where anything
    has to be copied, copies of them are returned.

    Parameters
    ----------
    nodes
        All nodes, each behind what it reads.
    outputs
        What the pipeline returns; an edge's device says where it is wanted.
    """
    if not any(wanted != source for _, wanted, source in _uses(nodes, outputs)):
        return nodes, outputs
    placed = _Placed()
    for node in nodes:
        copy = replace(node, inputs=[], tensor_args={}, outputs=[])
        for position, edge in enumerate(node.inputs):
            wanted = wanted_device(node.schema, node.device, position)
            copy.inputs.append(placed.edge(edge, None if wanted == "any" else wanted))
        copy.tensor_args = {n: placed.edge(e, "cpu") for n, e in node.tensor_args.items()}
        copy.guard = tuple(Term(placed.edge(t.predicate, "cpu"), t.holds) for t in node.guard)
        placed.add(node, copy)
    return placed.nodes, [placed.edge(e, e.device) for e in outputs]


def _uses(nodes: list[OpNode], outputs: list[DataNode]) -> Iterator[tuple[DataNode, str, str]]:
    """Each use of an edge: where it is wanted, and where it is made."""
    for node in nodes:
        for position, edge in enumerate(node.inputs):
            assert edge.source is not None
            made = edge.source.output_device
            wanted = wanted_device(node.schema, node.device, position)
            yield edge, made if wanted == "any" else wanted, made
        for edge in (*node.tensor_args.values(), *(term.predicate for term in node.guard)):
            assert edge.source is not None
            yield edge, "cpu", edge.source.output_device
    for edge in outputs:
        assert edge.source is not None
        yield edge, edge.device, edge.source.output_device


class _Placed:
    """The copied graph so far."""

    def __init__(self) -> None:
        self.nodes: list[OpNode] = []
        self._edges: dict[tuple[int, int, str], DataNode] = {}

    def add(self, original: OpNode, copy: OpNode) -> None:
        count = len(original.outputs)
        copy.outputs = [DataNode.of(copy, index, count) for index in range(count)]
        for index, edge in enumerate(copy.outputs):
            self._edges[id(original), index, copy.output_device] = edge
        self.nodes.append(copy)

    def edge(self, original: DataNode, device: str | None) -> DataNode:
        """The edge that stands for `original` on `device`, or wherever it is."""
        source = original.source
        assert source is not None
        key = id(source), original.index, device or source.output_device
        found = self._edges.get(key)
        if found is None:
            found = self._edges[key] = self._moved(original, source, key[2])
        return found

    def _moved(self, original: DataNode, source: OpNode, device: str) -> DataNode:
        if source.schema.is_constant and source.schema.cls.has_gpu():
            node = replace(source, device="gpu" if device == "gpu" else "cpu", outputs=[])
        else:
            here = self._edges[id(source), original.index, source.output_device]
            schema = find("_copy_to_gpu" if device == "gpu" else "_copy_to_cpu")
            node = OpNode(
                schema=schema,
                name=f"{source.name}.{device}",
                device=schema.devices[0],
                inputs=[here],
                args={a.name: a.default for a in schema.args.values()},
                tensor_args={},
                user_stack=source.user_stack,
                owner=source.owner,
                guard=here.source.guard if here.source is not None else (),
            )
        node.outputs = [DataNode.of(node, 0, 1)]
        self.nodes.append(node)
        return node.outputs[0]
