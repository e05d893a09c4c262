"""Merge neighbouring operators of the graph into one, where the result stays bit-identical."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import replace
from typing import Any

from headrace.graph.data_node import DataNode
from headrace.graph.guards import Term
from headrace.graph.nodes import OpNode
from headrace.operators.support.arithmetic.expression import merge

_Edge = tuple[int, int]
_DEEPEST = 64
"""Levels of one merged expression. Expressions are worked on recursively, and what a generated
graph adds up in a loop may be deeper than Python's stack."""


def _key(edge: DataNode) -> _Edge:
    return id(edge.source), edge.index


def merge_expressions(
    nodes: list[OpNode], outputs: list[DataNode]
) -> tuple[list[OpNode], list[DataNode]]:
    """Make one operator of each tree of arithmetic.

    An expression is taken into the one that reads it if nothing else reads it. The nodes given are
    left as they are; where anything is merged, copies are returned.
    """
    inner = _expressions_read_once_by_expressions(nodes, outputs)
    if not inner:
        return nodes, outputs
    replacements: dict[Hashable, tuple[Any, list[_Edge]]] = {
        key: (node.args["expression"], [_key(e) for e in node.inputs])
        for key, node in inner.items()
    }
    edges: dict[_Edge, DataNode] = {}  # from edges of the given graph to those of the copy
    merged = []
    for node in nodes:
        if node.schema.is_expression and (id(node), 0) in inner:
            continue
        args, inputs = node.args, [_key(e) for e in node.inputs]
        if node.schema.is_expression:
            expression, labels = merge(args["expression"], inputs, replacements)
            args, inputs = {**args, "expression": expression}, labels  # type: ignore[assignment]
        copy = replace(
            node,
            args=args,
            inputs=[edges[key] for key in inputs],
            tensor_args={name: edges[_key(e)] for name, e in node.tensor_args.items()},
            guard=tuple(Term(edges[_key(t.predicate)], t.holds) for t in node.guard),
            outputs=[],
        )
        count = len(node.outputs)
        copy.outputs = [DataNode.of(copy, index, count) for index in range(count)]
        for index, edge in enumerate(copy.outputs):
            edges[id(node), index] = edge
        merged.append(copy)
    return merged, [edges[_key(e)] for e in outputs]


def _expressions_read_once_by_expressions(
    nodes: list[OpNode], outputs: list[DataNode]
) -> dict[_Edge, OpNode]:
    readers: dict[_Edge, list[OpNode | None]] = {}
    for node in nodes:
        for edge in (*node.inputs, *node.tensor_args.values()):
            readers.setdefault(_key(edge), []).append(node)
    for edge in (*outputs, *(term.predicate for node in nodes for term in node.guard)):
        readers.setdefault(_key(edge), []).append(None)
    inner: dict[_Edge, OpNode] = {}
    depths: dict[_Edge, int] = {}
    for node in nodes:
        if not node.schema.is_expression:
            continue
        key = id(node), 0
        depths[key] = 1 + max(depths[k] if (k := _key(e)) in inner else 0 for e in node.inputs)
        found = readers.get(key, [])
        if (
            not node.preserve
            and len(found) == 1
            and found[0] is not None
            and found[0].schema.is_expression
            and found[0].device == node.device
            and _same_samples(found[0], node)
            and depths[key] < _DEEPEST
        ):
            inner[key] = node
    return inner


def _same_samples(node: OpNode, other: OpNode) -> bool:
    """Return True if both run for the same samples: fusion must not change which samples fail."""
    return [term.key for term in node.guard] == [term.key for term in other.guard]


def merged_groups(nodes: list[OpNode], outputs: list[DataNode]) -> list[list[OpNode]]:
    """The expressions that `merge_expressions` makes one of, for those who show a graph."""
    inner = _expressions_read_once_by_expressions(nodes, outputs)
    group: dict[int, list[OpNode]] = {}
    for node in nodes:
        if not node.schema.is_expression:
            continue
        own = [node]
        for edge in node.inputs:
            if _key(edge) in inner and edge.source is not None:
                own = [*group.pop(id(edge.source), []), *own]
        for member in own:
            group[id(member)] = own
    found = {id(own): own for own in group.values() if len(own) > 1}
    return list(found.values())
