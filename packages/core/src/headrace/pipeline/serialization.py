"""Pipelines as bytes and files, and back; and as drawings."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Self

from headrace.errors import ArgumentTypeError, UsageError
from headrace.graph import scope
from headrace.graph.serialization import copied, described, rebuild
from headrace.graph.user_line import stack_level
from headrace.pipeline.checkpointing import write_whole
from headrace.pipeline.serialized import as_given, chosen_data, overridden, packed, unpacked
from headrace.tracebacks import public_methods

if TYPE_CHECKING:
    import os

    from headrace.executor.elsewhere import Elsewhere
    from headrace.pipeline.engine import Engine
    from headrace.pipeline.graph_definition import GraphDefinition
    from headrace.pipeline.settings import Settings


@public_methods
class Serialization:
    """The methods of a pipeline that write and read its definition, or draw it."""

    if TYPE_CHECKING:
        _settings: Settings
        _definition: GraphDefinition
        _engine: Engine | None
        _elsewhere: Elsewhere | None

        define_graph: Callable[[], Any]
        build: Callable[[], None]
        _begin_definition: Callable[[], None]

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        """Refuse to be pickled or copied: two objects would take turns at one engine."""
        raise ArgumentTypeError(
            "A pipeline cannot be pickled or copied: its threads, memory and place in the data "
            "belong to one object of one process. Call the function that defines it once more, or "
            "take what `serialize` returns to `Pipeline.deserialize`."
        )

    def serialize(
        self,
        define_graph: Callable[[], Any] | None = None,
        filename: str | os.PathLike[str] | None = None,
    ) -> bytes:
        """The definition of the pipeline as bytes, for `deserialize`: its arguments and its graph.

        Parameters
        ----------
        define_graph
            Deprecated: returns the outputs, for a pipeline that has none yet.
        filename
            A file to write the bytes to. A reader finds the old one or the new one whole.

        Returns
        -------
        bytes
            JSON, which says what format it has and which version. Where the pipeline stands is not
            in it: see `checkpoint`.

        Raises
        ------
        ArgumentTypeError
            If `define_graph` cannot be called.
        UsageError
            If `define_graph` is given for a pipeline with outputs, or an operator holds Python
            code, such as the `source` of an external source.
        """
        if define_graph is not None:
            self._definition.check_can_define(define_graph)
        nodes = self._definition.complete(define_graph or self.define_graph)
        outputs, sinks = self._definition.outputs or [], self._definition.sinks
        data = packed(self._settings, described(nodes, outputs=outputs, sinks=sinks))
        if filename is not None:
            write_whole(Path(filename), data)
        return data

    @classmethod
    def deserialize(
        cls,
        serialized_pipeline: bytes | str | None = None,
        filename: str | os.PathLike[str] | None = None,
        **kwargs: Any,
    ) -> Self:
        """A pipeline, built, from what `serialize` returned or wrote. No code in it is run.

        Parameters
        ----------
        serialized_pipeline, filename
            The bytes, or a file with them: one of the two.
        **kwargs
            Arguments of `Pipeline`, which replace those of the pipeline that was serialized.

        Raises
        ------
        ArgumentValueError
            If both or none of the first two are given.
        SerializationError
            If the bytes are none of `serialize`, damaged, or of another version.
        """
        settings, graph = unpacked(chosen_data(serialized_pipeline, filename))
        pipeline = cls(**overridden(settings, kwargs))
        pipeline._load(graph)
        return pipeline

    def deserialize_and_build(self, serialized_pipeline: bytes | str) -> None:
        """Take the graph from `serialized_pipeline`, which `serialize` returned, and build it.

        The pipeline keeps its own arguments; ``batch_size``, ``num_threads``, ``device_id`` and
        ``seed`` are those that were serialized where it has none.

        Raises
        ------
        UsageError
            If the pipeline is built already.
        SerializationError
            As `deserialize`.
        """
        if self._engine is not None:
            raise UsageError(
                "The pipeline is built already; `Pipeline.deserialize` makes a new one."
            )
        settings, graph = unpacked(serialized_pipeline)
        self._settings.complete(settings)
        self._begin_definition()
        self._load(graph)

    @classmethod
    def _copy_of(
        cls,
        other: Serialization,
        changed: Mapping[str, Mapping[str, Any]],
        settings: Mapping[str, Any],
    ) -> Self:
        """A pipeline with the definition of another one, Python code included; not built yet."""
        given = as_given(other._settings)
        # Of these the user was warned; the first is in `exec_dynamic` by now.
        for old in ("experimental_exec_dynamic", "max_streams", "default_cuda_stream_priority"):
            given[old] = None
        pipeline = cls(**{**given, **settings})
        if other._elsewhere is not None:
            pipeline._elsewhere = other._elsewhere.anew()
        theirs = other._definition
        nodes = theirs.complete(other.define_graph)
        scope.push(pipeline._definition.scope)
        try:
            outputs, sinks = copied(nodes, (theirs.outputs or (), theirs.sinks), changed)
        finally:
            scope.pop()
        pipeline._definition.set_outputs(tuple(outputs))
        pipeline._definition.sinks += sinks
        return pipeline

    def _load(self, graph: dict[str, Any]) -> None:
        """Create the operators of a serialized graph, and build the pipeline."""
        definition = self._definition
        scope.push(definition.scope)
        try:
            outputs, sinks = rebuild(graph, "outputs", "sinks")
        finally:
            scope.pop()
        definition.set_outputs(tuple(outputs))
        definition.sinks += sinks
        self.build()

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
                "`show_ids` is deprecated and has no effect.",
                DeprecationWarning,
                stacklevel=stack_level(),
            )
        self._definition.draw(filename, show_tensors=show_tensors, use_colors=use_colors)
