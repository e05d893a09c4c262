"""Division of a graph into what workers do and what the trainer does."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from headrace.graph.data_node import DataNode
from headrace.graph.guards import Term
from headrace.graph.nodes import OpNode
from headrace.operators.support.registry import find
from headrace.plugin.ray.cut import Edge, edge_of


class Split(NamedTuple):
    """Both parts of a graph."""

    remote: list[OpNode]
    """Operators in workers, and the external sources that they read."""
    crossing: list[DataNode]
    """Edges from workers to the trainer."""
    rest: list[OpNode]
    """Copies of the others, with an external source in place of each edge that they read and do not
    make. Empty where nothing is left to do."""
    outputs: list[DataNode]
    """Outputs of the pipeline, as edges of `rest`."""
    fed: dict[Edge, tuple[int, int]]
    """Original edges, of `crossing` and of external sources, and the ``id`` and output of the node
    that stands for each in `rest`."""
    originals: dict[int, OpNode]
    """Nodes by ``id`` of their copies in `rest`."""


def split(nodes: Sequence[OpNode], outputs: Sequence[DataNode], remote: set[int]) -> Split:
    """Divide `nodes`, in topological order; those in `remote` have all that they read there."""
    sent = {
        id(e.source)
        for n in nodes
        if id(n) in remote
        for e in n.sources
        if e.source is not None and e.source.input_queue is not None
    }
    there = [n for n in nodes if id(n) in remote or id(n) in sent]
    here = [n for n in nodes if id(n) not in remote and n.input_queue is None]
    reads = [e for n in here for e in n.sources] + list(outputs)
    crossing = {edge_of(e): e for e in reads if id(e.source) in remote}
    if not here:
        return Split(there, list(crossing.values()), [], list(outputs), {}, {})
    rest: list[OpNode] = []
    made: dict[Edge, DataNode] = {}
    fed: dict[Edge, tuple[int, int]] = {}
    originals: dict[int, OpNode] = {}
    for key, old in crossing.items():
        node = _source_for(old)
        rest.append(node)
        made[key], fed[key] = node.outputs[0], (id(node), 0)

    def edge(old: DataNode) -> DataNode:
        found = made[edge_of(old)]
        return found if found.device == old.device else found._on(old.device)

    for node in nodes:
        if id(node) in remote:
            continue
        copy = replace(node, inputs=[], tensor_args={}, outputs=[])
        originals[id(copy)] = node
        copy.inputs = [edge(e) for e in node.inputs]
        copy.tensor_args = {name: edge(e) for name, e in node.tensor_args.items()}
        copy.guard = tuple([Term(edge(t.predicate), t.holds) for t in node.guard])
        for k, old in enumerate(node.outputs):
            copy.outputs.append(replace_source(old, copy))
            made[id(node), k] = copy.outputs[-1]
            if node.input_queue is not None:
                fed[id(node), k] = (id(copy), k)
        rest.append(copy)
    return Split(there, list(crossing.values()), rest, [edge(e) for e in outputs], fed, originals)


def replace_source(edge: DataNode, source: OpNode) -> DataNode:
    """A copy of an edge that `source` makes."""
    return DataNode(edge.name, edge.device, source, edge.index, edge.ndim, edge.dtype, edge.layout)


def _source_for(edge: DataNode) -> OpNode:
    """A node that is fed with what workers make of `edge`."""
    origin = edge.source
    assert origin is not None
    schema = find("external_source")
    arguments: dict[str, Any] = {name: arg.default for name, arg in schema.args.items()}
    node = OpNode(
        schema=schema,
        name=edge.name,
        device="cpu",
        inputs=[],
        args=arguments,
        tensor_args={},
        user_stack=origin.user_stack,
        owner=origin.owner,
        input_queue=True,
    )
    node.outputs = [DataNode(edge.name, "cpu", node, 0, edge.ndim, edge.dtype, edge.layout)]
    return node
