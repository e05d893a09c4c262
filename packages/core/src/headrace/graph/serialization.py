"""Graphs as plain data: operators by name with arguments, edges and guards.

An edge is ``[name of the operator, number of its output]``, and the device after that where it is
wanted elsewhere than it is made.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.errors import (
    HeadraceError,
    SerializationError,
    UnknownNameError,
    UsageError,
)
from headrace.graph import guards
from headrace.graph.capture import convert_arguments, make_node
from headrace.graph.data_node import DataNode
from headrace.graph.guards import Term
from headrace.graph.plain_values import from_plain, to_plain
from headrace.operators.external.external_source import make_input_queue
from headrace.operators.support import registry
from headrace.operators.support.schema import REQUIRED, OpSchema

if TYPE_CHECKING:
    from headrace.graph.nodes import OpNode

_LIBRARY = "headrace."


def described(nodes: list[OpNode], **edges: Sequence[DataNode]) -> dict[str, Any]:
    """A graph as data that JSON keeps."""
    # As they were created: what they are called in checkpoints depends on that order.
    created = sorted(nodes, key=lambda node: node.serial)
    first_sets: dict[int, str] = {}  # the first of a call may be left out
    return {
        "operators": [
            _described(node, first_sets.setdefault(node.draws_with, node.name)) for node in created
        ],
        **{name: [_reference(edge) for edge in each] for name, each in edges.items()},
    }


def _described(node: OpNode, first_set: str) -> dict[str, Any]:
    schema = node.schema
    _check_declared(node)
    if node.input_queue is not None and node.input_queue.has_source:
        raise _refusal(
            node,
            "its `source` is Python code. Leave out `source`, give the operator a `name`, and feed "
            "it with `Pipeline.feed_input`, or `run(name=batch)`",
        )
    found: dict[str, Any] = {"name": node.name, "operator": schema.name}
    if not schema.cls.__module__.startswith(_LIBRARY):
        found["declared by"] = schema.cls.__module__
    if node.explicit_name:
        found["named"] = True
    if node.device != "cpu":
        found["device"] = node.device
    if first_set != node.name:
        found["first set"] = first_set
    if node.inputs:
        found["inputs"] = [_reference(edge) for edge in node.inputs]
    arguments = {}
    for name, value in node.args.items():
        if not _is_default(schema, name, value):
            try:
                arguments[name] = to_plain(value)
            except TypeError as error:
                raise _refusal(node, f"its argument `{name}` is {value!r}: {error}") from None
    if arguments:
        found["arguments"] = arguments
    if node.tensor_args:
        found["tensor arguments"] = {k: _reference(e) for k, e in node.tensor_args.items()}
    if node.guard:
        found["guard"] = [[_reference(term.predicate), term.holds] for term in node.guard]
    found["created at"] = list(node.user_stack)
    return found


def _check_declared(node: OpNode) -> None:
    """Check that the operator can be found by its name when it is loaded."""
    try:
        known = registry.find(node.schema.name)
    except UnknownNameError:
        known = None
    if known is not node.schema:
        raise _refusal(node, "it is made of a Python function and not declared under a name")


def _refusal(node: OpNode, why: str) -> UsageError:
    return SerializationError(
        f'Could not serialize the operator `{node.where().operator}` ("{node.name}", created at '
        f"{node.user_line}): {why}."
    )


def _is_default(schema: OpSchema, name: str, value: Any) -> bool:
    default = None if schema.args[name].default is REQUIRED else schema.args[name].default
    if isinstance(value, np.ndarray) or isinstance(default, np.ndarray):
        return value is default
    return type(value) is type(default) and bool(value == default)


def _reference(edge: DataNode) -> list[Any]:
    node = edge.source
    assert node is not None
    where = [] if edge.device == node.output_device else [edge.device]
    return [node.name, edge.index, *where]


def rebuild(content: dict[str, Any], *names: str) -> list[list[DataNode]]:
    """Create the operators of a graph in the current scope."""
    nodes: dict[str, OpNode] = {}

    def edge(reference: list[Any]) -> DataNode:
        name, index, *where = reference
        found: DataNode = nodes[name].outputs[index]
        return found._on(where[0]) if where else found

    outside = guards.current()
    try:
        for entry in content["operators"]:
            guard = tuple([Term(edge(e), bool(holds)) for e, holds in entry.get("guard", ())])
            guards.set_current(guard)
            arguments = {k: from_plain(v) for k, v in entry.get("arguments", {}).items()}
            arguments |= {k: edge(e) for k, e in entry.get("tensor arguments", {}).items()}
            inputs = [edge(e) for e in entry.get("inputs", ())]
            first = nodes[entry["first set"]].serial if "first set" in entry else None
            nodes[entry["name"]] = _created(entry, inputs, arguments, first)
        return [[edge(reference) for reference in content[name]] for name in names]
    except HeadraceError:
        raise
    except (ValueError, TypeError, LookupError, AttributeError) as error:
        raise SerializationError(
            f"The serialized pipeline is damaged: {type(error).__name__}: {error}."
        ) from error
    finally:
        guards.set_current(outside)


def _created(
    entry: dict[str, Any], inputs: list[DataNode], arguments: dict[str, Any], first: int | None
) -> OpNode:
    node = _made(_schema(entry), entry["name"], entry.get("device", "cpu"), inputs, arguments)
    node.explicit_name, node.first_set = bool(entry.get("named")), first
    node.user_stack = tuple(entry["created at"])
    return node


def _made(
    schema: OpSchema, name: str, device: str, inputs: list[DataNode], arguments: dict[str, Any]
) -> OpNode:
    with warnings.catch_warnings():  # deprecated names were warned of where they were written
        warnings.simplefilter("ignore")
        queue = None
        if schema.fed:
            known = None if arguments.get("num_outputs") is not None else name
            queue = make_input_queue(convert_arguments(schema, arguments, "a file")[0], known)
        given = {**arguments, "name": name, "device": device}
        node = make_node(schema, inputs, given, input_queue=queue)
    if queue is not None:
        queue.name = node.name
    return node


def copied(
    nodes: list[OpNode],
    edges: Sequence[Sequence[DataNode]],
    changed: Mapping[str, Mapping[str, Any]],
) -> list[list[DataNode]]:
    """Create the operators of another graph once more, in the current scope.

    Functions and other objects among their arguments are shared. Sources begin anew, apart from
    generators, which go on where they are.
    """
    made: dict[int, OpNode] = {}
    first_sets: dict[int, int] = {}

    def edge(old: DataNode) -> DataNode:
        source = old.source
        assert source is not None
        found: DataNode = made[id(source)].outputs[old.index]
        return found if old.device == source.output_device else found._on(old.device)

    outside = guards.current()
    try:
        for node in sorted(nodes, key=lambda node: node.serial):
            schema = node.schema
            guards.set_current(tuple([Term(edge(t.predicate), t.holds) for t in node.guard]))
            arguments = {k: v for k, v in node.args.items() if not _is_default(schema, k, v)}
            arguments |= {k: edge(e) for k, e in node.tensor_args.items()}
            arguments |= changed.get(node.name, {})
            inputs = [edge(e) for e in node.inputs]
            new = _made(schema, node.name, node.device, inputs, arguments)
            new.explicit_name, new.user_stack = node.explicit_name, node.user_stack
            first = first_sets.setdefault(node.draws_with, new.serial)
            new.first_set = None if first == new.serial else first
            made[id(node)] = new
        return [[edge(old) for old in each] for each in edges]
    finally:
        guards.set_current(outside)


def _schema(entry: dict[str, Any]) -> OpSchema:
    name = entry["operator"]
    try:
        return registry.find(name)
    except UnknownNameError:
        module = entry.get("declared by")
        hint = (
            "This version of Headrace has it not; a newer one has written the file."
            if module is None
            else f"The module {module} declared it: import it before, or load its file with "
            "`headrace.plugin_manager.load_library`."
        )
        raise SerializationError(
            f'The operator "{name}" of the serialized pipeline is not declared. {hint}'
        ) from None
