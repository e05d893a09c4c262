"""Pipelines in debug mode: each operator runs when the definition calls it."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NoReturn, Self

from headrace.errors import (
    ArgumentValueError,
    NotYetSupportedError,
    UsageError,
)
from headrace.graph import scope
from headrace.graph.data_node import DataNode
from headrace.graph.nodes import OpNode
from headrace.graph.order import needed_nodes
from headrace.graph.scope import GraphScope
from headrace.graph.seeds import assign_seeds
from headrace.graph.user_line import stack_level
from headrace.pipeline.debug_cache import OperatorCache
from headrace.pipeline.debug_comparison import ORDER
from headrace.pipeline.debug_run import DebugIteration, Trace
from headrace.pipeline.input_queues import source_name, unknown_source
from headrace.pipeline.output_checks import OutputChecks
from headrace.pipeline.outputs import to_output_edges
from headrace.pipeline.pipeline import Pipeline
from headrace.tracebacks import public_methods


@public_methods
class PipelineDebug(Pipeline):
    """A pipeline whose definition is executed in every iteration, operator by operator.

    It is made by a definition with ``debug=True``. `run`, `feed_input`, `reset` and the properties
    work as of any pipeline, and give the same batches; what works ahead does not.
    """

    def __init__(self, define: Callable[[], Any], **arguments: Any) -> None:
        super().__init__(**arguments)
        settings = self._settings
        if settings.on_bad_sample != "raise":
            raise NotYetSupportedError(
                f'`on_bad_sample`="{settings.on_bad_sample}" has no use in debug mode, which runs '
                "operator by operator: a bad sample raises an error there."
            )
        if settings.enable_checkpointing:
            raise ArgumentValueError("Debug mode has no checkpoints; leave out what asks for them.")
        if settings.profile is not None:
            raise NotYetSupportedError(
                "`profile` is not supported in debug mode, which runs one operator at a time, in "
                "your own thread: leave out `debug` to record the pipeline."
            )
        self._define_outputs = define
        self._known: OperatorCache | None = None
        self._trace()

    def _trace(self) -> None:
        """Execute the definition once without data, as that of any pipeline.

        It says how random operators are numbered, and which sources there are. Where the definition
        needs data, it is executed with data only.
        """
        trace = self._definition.scope = Trace()
        self._push(trace)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # they come again, with data
                self._definition.set_outputs(_as_tuple(self._define_outputs()))
        except Exception:
            self._definition.outputs = None
        finally:
            scope.pop()

    def _push(self, new: GraphScope) -> None:
        self._register(new)
        scope.push(new)

    def _ready(self) -> OperatorCache:
        """Return the kept operators; settings are checked on the first call."""
        if self._known is None:
            self._settings.check_for_build()
            self._settings.find_gpu()
            known = OperatorCache(self._settings)
            if self._definition.outputs is not None:
                known.take_traced(self._definition.scope.nodes, self._definition.needed())
            self._known = known
        return self._known

    def build(self) -> None:
        """Check the arguments. Operators are made in the first `run`."""
        self._ready()
        if self._definition.outputs:
            self._definition.complete(self.define_graph)

    def run(self, cuda_stream: Any = None, /, **pipeline_inputs: Any) -> tuple[Any, ...]:
        """Execute the definition, and return its outputs."""
        known = self._ready()
        for name, data in pipeline_inputs.items():
            self.feed_input(name, data)
        current = DebugIteration(known)
        self._push(current)
        try:
            outputs = _as_tuple(self._define_outputs())
            edges = to_output_edges(outputs)
            batches = tuple([current.batch(edge) for edge in edges])
        finally:
            scope.pop()
            current.end()
        if known.is_complete and len(current.nodes) != len(known.nodes):
            raise UsageError(
                f"The definition called {len(current.nodes)} operators, and {len(known.nodes)} "
                f"before. {ORDER}"
            )
        if not known.is_complete:
            known.nodes, known.is_complete = current.nodes, True
            self._check_numbers(current.nodes, edges)
        OutputChecks(self._settings, len(batches)).check(batches)
        if cuda_stream is not None:
            for batch in batches:
                batch._set_stream(cuda_stream)
        return batches

    def _check_numbers(self, nodes: list[OpNode], edges: list[DataNode]) -> None:
        """Warn where random operators are numbered in another way than without debug mode."""
        known = self._known
        assert known is not None
        usual = assign_seeds(needed_nodes(nodes, edges), known.base)
        other = [
            node
            for position, node in enumerate(nodes)
            if id(node) in usual and usual[id(node)] != known.seeds.get(position, node.seed)
        ]
        if other and self._settings.seed is not None:
            warnings.warn(
                f"`fn.{other[0].schema.name}`, called at {other[0].user_line}, draws other random "
                "numbers than without debug mode. Operators are numbered as the outputs need them, "
                "which cannot be told of a definition that looks at data to decide what to call. "
                "Give random operators a `seed` to have the same numbers.",
                UserWarning,
                stacklevel=stack_level(),
            )

    def feed_input(
        self,
        data_node: DataNode | str,
        data: Any,
        layout: str | None = None,
        cuda_stream: Any = None,
        use_copy_kernel: bool = False,
    ) -> None:
        """As `Pipeline.feed_input`."""
        known, name = self._ready(), source_name(data_node)
        arguments = (data, layout, cuda_stream)
        names = [node.name for inputs in known.inputs for node in inputs.nodes]
        if name in names or known.is_complete:
            if name not in names:
                raise unknown_source(name, names)
            found = next(i for i in known.inputs if any(n.name == name for n in i.nodes))
            known.feed(found, name, arguments)
        else:
            known.pending.append((name, arguments))

    def reset(self) -> None:
        """Begin the next epoch, after the data of an external source has come to its end."""
        for inputs in self._ready().inputs:
            inputs.reset()

    def reader_meta(self, name: str | None = None) -> dict[str, Any]:
        """Sizes and shards of reader `name`, or of all readers by name; known after a `run`."""
        parts = [] if self._known is None else self._known.parts.values()
        found = {k: v for part in parts for k, v in part.readers.meta().items()}
        if name is None:
            return found
        readers = next((p.readers for p in parts if name in p.readers.meta()), None)
        if readers is None:
            raise UsageError(
                f"Operator {name} not found or does not expose valid metadata. In debug mode, "
                "readers are opened in the first `run`."
            )
        return readers.meta(name)

    @property
    def num_outputs(self) -> int:
        """Number of outputs."""
        if self._definition.outputs is None:
            self._refuse()
        return len(self._definition.outputs)

    def __enter__(self) -> Self:
        raise UsageError(
            "A pipeline in debug mode is made by a definition: `@pipeline_def(debug=True)` of "
            "`headrace.pipeline.experimental`. `with` cannot define one."
        )

    def _built(self) -> NoReturn:
        self._refuse()

    def _latch_api(self, api: Any) -> NoReturn:
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise UsageError(
            "A pipeline in debug mode works on nothing ahead: call `run()` for each batch. For "
            "iterators, `schedule_run` and all else, leave `debug=True` out."
        )

    def _shutdown(self) -> None:
        known, self._known = self._known, None
        if known is not None:
            for part in known.parts.values():
                part.executor.shutdown()
            for inputs in known.inputs:
                inputs.close()

    def __del__(self) -> None:
        if getattr(self, "_known", None) is not None:
            self._shutdown()


def _as_tuple(result: Any) -> tuple[Any, ...]:
    if result is None:
        return ()
    return result if isinstance(result, tuple) else (result,)
