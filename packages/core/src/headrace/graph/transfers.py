"""Put copies between host and device where data is wanted elsewhere than it is made."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import takewhile

from headrace.graph import hardware_video
from headrace.graph.capture import wanted_device
from headrace.graph.data_node import DataNode
from headrace.graph.guards import Guard, Term
from headrace.graph.nodes import OpNode
from headrace.operators.readers.video_description import DESCRIBES
from headrace.operators.support.registry import find

LEAVES_SIDE_DATA = "leaves side data"
"""The argument of a copy to the GPU that hands over texts and objects on the host."""


def insert_transfers(
    nodes: list[OpNode], outputs: list[DataNode], *, outputs_on: str = ""
) -> tuple[list[OpNode], list[DataNode]]:
    """Add a node for each batch that goes to the other device, once for all who want it there.

    What only branches read on the GPU is uploaded for their samples. Constants are made where they
    are wanted. With `outputs_on`, all outputs are wanted on that device, side data where it is. The
    nodes given are left as they are; where anything has to be copied, copies of them are returned.
    """
    wanted_outputs = [edge._on(outputs_on or edge.device) for edge in outputs]
    moves = [use for use in _uses(nodes, wanted_outputs) if use[1] != use[2]]
    if not moves and not any(map(hardware_video.decodes_fed, nodes)):
        return nodes, outputs
    placed = _Placed(_upload_guards(nodes, moves))
    wanted_on: dict[int, set[str]] = {}
    for edge, device, _, _ in _uses(nodes, wanted_outputs):
        if edge.index == 0:
            wanted_on.setdefault(id(edge.source), set()).add(device)
    for node in nodes:
        copy = replace(node, inputs=[], tensor_args={}, outputs=[])
        if hardware_video.decodes(node, wanted_on.get(id(node), set())):
            copy.args = hardware_video.describing(node.schema, node.args)
        elif hardware_video.decodes_fed(node):
            placed.add_fed(node, copy)
            continue
        for position, edge in enumerate(node.inputs):
            wanted = wanted_device(node.schema, node.device, position)
            copy.inputs.append(placed.edge(edge, None if wanted == "any" else wanted))
        copy.tensor_args = {n: placed.edge(e, "cpu") for n, e in node.tensor_args.items()}
        copy.guard = tuple(Term(placed.edge(t.predicate, "cpu"), t.holds) for t in node.guard)
        placed.add(node, copy)
    for asked, edge in zip(outputs, wanted_outputs, strict=True):
        if asked.device != edge.device == "gpu":
            placed.upload_numbers(edge)
    return placed.nodes, [placed.edge(e, e.device) for e in wanted_outputs]


def _uses(
    nodes: list[OpNode], outputs: list[DataNode]
) -> Iterator[tuple[DataNode, str, str, Guard]]:
    """Each use of an edge: where it is wanted, where it is made, and for which samples."""
    for node in nodes:
        for position, edge in enumerate(node.inputs):
            assert edge.source is not None
            made = edge.source.output_device
            wanted = wanted_device(node.schema, node.device, position)
            guard = node.guard
            if node.schema.merges and position < 2:
                guard = (*guard, Term(node.inputs[2], position == 0))
            yield edge, made if wanted == "any" else wanted, made, guard
        for edge in (*node.tensor_args.values(), *(term.predicate for term in node.guard)):
            assert edge.source is not None
            yield edge, "cpu", edge.source.output_device, node.guard
    for edge in outputs:
        assert edge.source is not None
        yield edge, edge.device, edge.source.output_device, ()


def _upload_guards(
    nodes: list[OpNode], moves: list[tuple[DataNode, str, str, Guard]]
) -> dict[tuple[int, int], Guard]:
    """By source and number of an edge that goes to the GPU, the samples that are read there.

    They are those of the terms that the guards of all readers begin with. A predicate that is only
    known once the GPU has worked would hold up the upload: it and what follows is left out.
    """
    late: set[int] = set()
    for node in nodes:
        read = (*node.inputs, *node.tensor_args.values(), *(t.predicate for t in node.guard))
        if node.device != "cpu" or any(id(edge.source) in late for edge in read):
            late.add(id(node))
    found: dict[tuple[int, int], Guard] = {}
    for edge, wanted, _, guard in moves:
        if wanted != "gpu":
            continue
        early = takewhile(lambda term: id(term.predicate.source) not in late, guard)
        key = id(edge.source), edge.index
        if key not in found:
            found[key] = tuple(early)
            continue
        pairs = zip(found[key], early, strict=False)
        found[key] = tuple(a for a, _ in takewhile(lambda pair: pair[0].key == pair[1].key, pairs))
    return found


class _Placed:
    """The copied graph so far."""

    def __init__(self, upload_guards: dict[tuple[int, int], Guard]) -> None:
        self.nodes: list[OpNode] = []
        self._upload_guards = upload_guards
        self._edges: dict[tuple[int, int, str], DataNode] = {}
        self._describing: set[int] = set()
        """The ``id`` of readers that describe frames."""

    def add(self, original: OpNode, copy: OpNode) -> None:
        if DESCRIBES in copy.args:
            self._describing.add(id(original))
        count = len(original.outputs)
        copy.outputs = [DataNode.of(copy, index, count) for index in range(count)]
        for index, edge in enumerate(copy.outputs):
            self._edges[id(original), index, copy.output_device] = edge
        self.nodes.append(copy)

    def add_fed(self, original: OpNode, copy: OpNode) -> None:
        """Add a node that is fed videos for a GPU: it describes frames, which the GPU decodes."""
        copy.device = "cpu"
        copy.args = hardware_video.describing(original.schema, original.args)
        copy.outputs = [DataNode.of(copy, 0, 1)]
        self.nodes += [copy, *hardware_video.decoders(copy, copy.outputs[0], {})]
        self._edges[id(original), 0, "gpu"] = self.nodes[-1].outputs[0]

    def edge(self, original: DataNode, device: str | None) -> DataNode:
        """The edge that stands for `original` on `device`, or wherever it is."""
        source = original.source
        assert source is not None
        key = id(source), original.index, device or source.output_device
        found = self._edges.get(key)
        if found is None:
            found = self._edges[key] = self._moved(original, source, key[2])
        return found

    def upload_numbers(self, original: DataNode) -> None:
        """Have an output uploaded, if no operator has; where it is side data, it stays."""
        if (id(original.source), original.index, "gpu") not in self._edges:
            node = self.edge(original, "gpu").source
            assert node is not None
            if node.schema.copies_to:
                node.args[LEAVES_SIDE_DATA] = True

    def _moved(self, original: DataNode, source: OpNode, device: str) -> DataNode:
        if source.schema.is_constant and source.schema.cls.has_gpu():
            node = replace(source, device="gpu" if device == "gpu" else "cpu", outputs=[])
        elif device == "gpu" and original.index == 0 and id(source) in self._describing:
            here = self._edges[id(source), 0, "cpu"]
            sizes = {n: self.edge(e, "cpu") for n, e in source.tensor_args.items()}
            *before, node = hardware_video.decoders(source, here, sizes)
            self.nodes += before
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
                guard=self._guard(original, source, device),
            )
        node.outputs = [DataNode.of(node, 0, 1)]
        self.nodes.append(node)
        return node.outputs[0]

    def _guard(self, original: DataNode, source: OpNode, device: str) -> Guard:
        """The samples that are copied: all that there are, or those that a branch reads."""
        guard = source.guard
        if device == "gpu":
            narrow = self._upload_guards[id(source), original.index]
            if {term.key for term in guard} <= {term.key for term in narrow}:
                guard = narrow
        return tuple(Term(self.edge(term.predicate, "cpu"), term.holds) for term in guard)
