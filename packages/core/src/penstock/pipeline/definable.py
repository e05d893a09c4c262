"""A pipeline as far as its graph goes: the definition, its outputs, and the drawing of it."""

from __future__ import annotations

import warnings
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn, Self

from penstock.errors import ArgumentTypeError, UsageError
from penstock.graph import scope
from penstock.graph.dot import to_dot
from penstock.graph.order import needed_nodes
from penstock.graph.scope import GraphScope
from penstock.pipeline.outputs import no_outputs, to_output_edges, warn_of_unused_outputs
from penstock.pipeline.properties import PipelineProperties
from penstock.tracebacks import public_methods

if TYPE_CHECKING:
    from penstock.graph.data_node import DataNode
    from penstock.graph.nodes import OpNode
    from penstock.pipeline.pipeline import Pipeline


@public_methods
class DefinablePipeline(PipelineProperties):
    """Collects the operators created in its scope, and knows which edges it returns."""

    _scopes: ClassVar[weakref.WeakValueDictionary[int, DefinablePipeline]] = (
        weakref.WeakValueDictionary()
    )

    def _begin_definition(self) -> None:
        self._scope = GraphScope()
        DefinablePipeline._scopes[id(self._scope)] = self
        self._outputs: list[DataNode] | None = None
        self._sinks: list[DataNode] = []
        self._nodes: list[OpNode] = []
        """What is needed for the outputs; empty until that is known."""

    def __enter__(self) -> Self:
        scope.push(self._scope)
        return self

    def __exit__(self, *exception: object) -> None:
        scope.pop()

    @staticmethod
    def push_current(pipeline: Pipeline) -> Pipeline | None:
        """Make `pipeline` the current one; return the one that was."""
        previous = DefinablePipeline.current()
        scope.push(pipeline._scope)
        return previous

    @staticmethod
    def pop_current() -> None:
        """Return to the pipeline that was current before."""
        scope.pop()

    @staticmethod
    def current() -> Pipeline | None:
        """The pipeline that is being defined, if any."""
        found = scope.current()
        if found is None:
            return None
        return DefinablePipeline._scopes.get(id(found))  # type: ignore[return-value]

    def define_graph(self) -> Any:
        """Return the outputs; for sub-classes that define their graph so."""
        raise no_outputs()

    def __iter__(self) -> NoReturn:
        """Refuse: batches are asked for, or looped over by an iterator."""
        raise ArgumentTypeError(
            "A pipeline is not iterable. `pipe.run()` returns the next batch; iterators loop over "
            "epochs, as `penstock.plugin.pytorch.DALIGenericIterator(pipe, [...])`."
        )

    def set_outputs(self, *outputs: Any) -> None:
        """Say which edges (or constants) the pipeline returns: `outputs`, in their order."""
        with self:  # constants among them become operators of this pipeline
            self._outputs = to_output_edges(outputs)

    def add_sink(self, edge: DataNode) -> None:
        """Keep the operator that makes `edge`, though nothing reads it."""
        self._sinks.append(edge)

    def build(self) -> None:
        """Make the graph ready to run."""
        raise NotImplementedError

    def _define(self) -> list[OpNode]:
        """The operators that are needed, found once."""
        self._settings.check_for_build()
        if self._nodes:
            return self._nodes
        if self._outputs is None:
            with self:
                defined = self.define_graph()
            self.set_outputs(*(defined if isinstance(defined, (tuple, list)) else (defined,)))
        if not self._outputs:
            raise no_outputs()
        nodes = needed_nodes(self._scope.nodes, [*self._outputs, *self._sinks])
        self._check_origin(nodes)
        warn_of_unused_outputs(nodes, [*self._outputs, *self._sinks])
        self._nodes = nodes
        return nodes

    def _check_origin(self, nodes: list[OpNode]) -> None:
        names: dict[str, OpNode] = {}
        for node in nodes:
            if node.owner is not None and node.owner is not self._scope:
                raise UsageError(
                    f'The operator "{node.name}", created at {node.user_line}, belongs to another '
                    "pipeline. Operators cannot be shared by pipelines."
                )
            if node.name in names:
                raise UsageError(
                    "The pipeline contains operators with non-unique names: two are named "
                    f'"{node.name}".'
                )
            names[node.name] = node

    def save_graph_to_dot_file(
        self,
        filename: str,
        *,
        show_tensors: bool = False,
        show_ids: bool | None = None,
        use_colors: bool = False,
    ) -> None:
        """Write the graph as a drawing for Graphviz (``dot -Tsvg``).

        Parameters
        ----------
        filename
            File to write.
        show_tensors
            Draw the edges as nodes of their own.
        show_ids
            Deprecated; it has no effect.
        use_colors
            Colour the operators by their device.

        Raises
        ------
        UsageError
            If the file cannot be written.
        """
        self.build()
        if show_ids is not None:
            warnings.warn(
                "`show_ids` is deprecated and has no effect.", DeprecationWarning, stacklevel=2
            )
        assert self._outputs is not None
        text = to_dot(self._nodes, self._outputs, show_tensors=show_tensors, use_colors=use_colors)
        try:
            Path(filename).write_text(text)
        except OSError as error:
            raise UsageError(f'Cannot open "{filename}" for writing: {error}.') from error
