"""Definition of a pipeline: the operators created in its scope, and the edges it returns."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from headrace.errors import ArgumentTypeError, UsageError
from headrace.graph import scope
from headrace.graph.data_node import DataNode
from headrace.graph.dot import to_dot
from headrace.graph.nodes import OpNode
from headrace.graph.order import needed_nodes
from headrace.graph.scope import GraphScope
from headrace.pipeline.outputs import no_outputs, to_output_edges, warn_of_unused_outputs


class GraphDefinition:
    """Collects operators, and finds those that are needed."""

    def __init__(self) -> None:
        self.scope = GraphScope()
        self.outputs: list[DataNode] | None = None
        """Outputs of the pipeline; `None` until they are known."""
        self._refused: ArgumentTypeError | None = None
        """Error for outputs that were set and cannot be any."""
        self.sinks: list[DataNode] = []
        """Edges that are made though nothing reads them."""
        self.nodes: list[OpNode] = []
        """Nodes needed for the outputs; empty until `complete`."""

    def set_outputs(self, outputs: tuple[Any, ...]) -> None:
        """Set the pipeline's outputs, edges or constants; `complete` raises if they are neither."""
        self.outputs, self._refused = [], None
        scope.push(self.scope)  # constants among them become operators of this pipeline
        try:
            self.outputs = to_output_edges(outputs)
        except ArgumentTypeError as error:
            self._refused = error.with_traceback(None)
        finally:
            scope.pop()

    def check_can_define(self, define_graph: Any) -> None:
        """Check a function that is to return the outputs."""
        if not callable(define_graph):
            hint = " Was `serialize(filename=...)` meant?" if isinstance(define_graph, str) else ""
            raise ArgumentTypeError(
                f"`define_graph` is {define_graph!r}, which is not callable.{hint}"
            )
        if self.outputs is not None:
            raise UsageError(
                "Duplicate graph definition: `define_graph` cannot be given to a pipeline that has "
                "its outputs already."
            )

    def needed(self) -> list[OpNode]:
        """The operators that are needed, as far as the outputs are known."""
        if self.outputs is None:
            return []
        return needed_nodes(self.scope.nodes, [*self.outputs, *self.sinks])

    def complete(self, define_graph: Callable[[], Any]) -> list[OpNode]:
        """The operators that are needed, found and checked once."""
        if self.nodes:
            return self.nodes
        if self.outputs is None:
            scope.push(self.scope)
            try:
                defined = define_graph()
            finally:
                scope.pop()
            self.set_outputs(tuple(defined) if isinstance(defined, (tuple, list)) else (defined,))
        if self._refused is not None:
            raise self._refused
        if not self.outputs:
            raise no_outputs()
        nodes = self.needed()
        self._check_origin(nodes)
        warn_of_unused_outputs(nodes, [*self.outputs, *self.sinks])
        self.nodes = nodes
        return nodes

    def draw(self, filename: str, *, show_tensors: bool, use_colors: bool) -> None:
        """Write a drawing of the completed graph for Graphviz."""
        assert self.outputs is not None
        text = to_dot(self.nodes, self.outputs, show_tensors=show_tensors, use_colors=use_colors)
        try:
            Path(filename).write_text(text)
        except OSError as error:
            raise UsageError(f'Cannot open "{filename}" for writing: {error}.') from error

    def _check_origin(self, nodes: list[OpNode]) -> None:
        names: dict[str, OpNode] = {}
        for node in nodes:
            if node.owner is not None and node.owner is not self.scope:
                raise UsageError(
                    "The pipeline is invalid because it contains operators with non-unique names "
                    f'or those of another one: "{node.name}", created at {node.user_line}, belongs '
                    "to another pipeline. Operators cannot be shared: call it in the definition of "
                    "each."
                )
            if node.name in names:
                raise UsageError(
                    "The pipeline is invalid because it contains operators with non-unique names: "
                    f'two are named "{node.name}".'
                )
            names[node.name] = node
