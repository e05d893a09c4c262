"""Pipelines in debug mode: each operator runs when the definition calls it."""

from __future__ import annotations

import secrets
import warnings
from typing import TYPE_CHECKING, Any, NoReturn, Self

import numpy as np

from penstock.errors import ArgumentValueError, NotYetSupportedError, ShapeError, UsageError
from penstock.executor.cpu.batch import BatchBuffer
from penstock.executor.guards import members
from penstock.graph import scope
from penstock.graph.order import needed_nodes
from penstock.graph.scope import GraphScope
from penstock.graph.seeds import assign_seeds
from penstock.graph.user_line import stack_level
from penstock.pipeline.debug_node import DataNodeDebug
from penstock.pipeline.debug_parts import Inputs, Key, Part, key_of
from penstock.pipeline.feeding import source_name, unknown_source
from penstock.pipeline.output_checks import OutputChecks
from penstock.pipeline.outputs import to_output_edges
from penstock.pipeline.pipeline import Pipeline
from penstock.tracebacks import public_methods

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.graph.data_node import DataNode
    from penstock.graph.nodes import OpNode
    from penstock.pipeline.settings import Settings

_ORDER = "Debug mode does not support changing the order of operators between iterations."


class _Known:
    """What a pipeline keeps of its operators, from one iteration to the next."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.base = secrets.randbits(63) if settings.seed is None else settings.seed
        self.nodes: list[OpNode] = []
        """In the order of their calls."""
        self.parts: dict[Any, Part] = {}
        """By the position of the call, or by position, output and device of what is moved."""
        self.seeds: dict[int, int] = {}
        """By the position of the call."""
        self.inputs: list[Inputs] = []
        self.is_complete = False
        """Whether `nodes` are those of a whole iteration."""
        self.is_numbered = False
        """Whether `seeds` are those that the pipeline has without debug mode."""
        self.number = 0
        """Of the next iteration."""
        self.pending: list[tuple[str, tuple[Any, ...]]] = []
        """What was fed to sources that nobody has met yet."""

    def take_traced(self, nodes: list[OpNode], order: list[OpNode]) -> None:
        """Take over what the definition says without data: `order` is as of a normal pipeline."""
        places = {id(node): k for k, node in enumerate(nodes)}
        unused = [node for node in nodes if node not in order]
        seeds = assign_seeds([*order, *unused], self.base)
        self.seeds = {places[key]: seed for key, seed in seeds.items()}
        self.nodes = nodes
        self.is_complete = self.is_numbered = True
        sources = [node for node in nodes if node.attachment is not None]
        self.add_inputs(sources)

    def add_inputs(self, sources: list[OpNode]) -> Inputs:
        """Sources that are asked together; feed them what waits for them."""
        inputs = Inputs(self.settings, sources)
        self.inputs.append(inputs)
        names = {node.name for node in sources}
        for name, arguments in self.pending:
            if name in names:
                self.feed(inputs, name, arguments)
        self.pending = [entry for entry in self.pending if entry[0] not in names]
        return inputs

    def feed(self, inputs: Inputs, name: str, arguments: tuple[Any, ...]) -> None:
        """Give a batch to a source."""
        feed = inputs.feeding.feed(name)
        feed.append(feed.prepare(*arguments))
        inputs.feeding.note_change()

    def seed(self, position: int, created: list[OpNode]) -> int | None:
        """The seed of the operator called at `position`; `created` ends with it."""
        node = created[-1]
        if not node.schema.random:
            return None
        if node.seed is not None:
            return node.seed
        if position not in self.seeds:
            self.seeds[position] = assign_seeds(created, self.base)[id(node)]
        return self.seeds[position]


class _Trace(GraphScope):
    """Collects operators without data."""

    def add(self, node: OpNode) -> None:
        """Take `node` in."""
        super().add(node)
        _name_feed(node)
        node.outputs = [DataNodeDebug.made(node, k, None) for k in range(len(node.outputs))]


class _Run(GraphScope):
    """One iteration: runs operators as they come.

    Parameters
    ----------
    known
        What is kept between iterations.
    """

    def __init__(self, known: _Known) -> None:
        super().__init__()
        self._known = known
        self._batches: dict[Key, Any] = {}
        self._places: dict[int, int] = {}
        self._moved: dict[tuple[Key, str], Any] = {}
        self._size: int | None = None
        self._over = False
        batches = [inputs.next() for inputs in known.inputs]
        self._number = known.number
        known.number += 1
        for (size, found), inputs in zip(batches, known.inputs, strict=True):
            self._fed(size, found, inputs)

    def _fed(self, size: int, batches: dict[Key, Any], inputs: Inputs) -> None:
        if inputs.nodes:
            if self._size not in (None, size):
                raise ShapeError(
                    f"Batch size must be uniform across an iteration: "
                    f'"{inputs.nodes[0].name}", created at {inputs.nodes[0].user_line}, has '
                    f"{size} samples, and the operators before it {self._size}."
                )
            self._size = size
        self._batches |= batches

    def add(self, node: OpNode) -> None:
        """Take `node` in, and run it."""
        super().add(node)
        _name_feed(node)
        known, position = self._known, len(self.nodes) - 1
        if known.is_complete:
            self._check_same(node, position)
        if node.attachment is not None:
            self._take_source(node, position)
        part = known.parts.get(position)
        if part is None or not _is_same(part.node, node):
            part = Part(known.settings, node, seed=known.seed(position, self.nodes))
            known.parts[position] = part
        outputs = part.run(self._number, self._samples(), self._batches, node)
        self._places[id(node)] = position
        node.outputs = [DataNodeDebug.made(node, k, self) for k in range(len(node.outputs))]
        for edge, batch in zip(node.outputs, outputs, strict=True):
            self._batches[key_of(edge)] = batch

    def _samples(self) -> int:
        if self._size is None:
            self._size = self._known.settings.batch_size
        assert self._size is not None
        return self._size

    def _take_source(self, node: OpNode, position: int) -> None:
        """Let the source of the first iteration go on."""
        known = self._known
        if position < len(known.nodes):
            first = known.nodes[position]
            node.attachment = first.attachment
        else:
            first = node
            inputs = known.add_inputs([node])
            self._fed(*inputs.next(), inputs)
        for k in range(len(node.outputs)):
            self._batches[id(node), k] = self._batches[id(first), k]

    def _check_same(self, node: OpNode, position: int) -> None:
        """Check that the operator is the one that was called here before."""
        nodes = self._known.nodes
        first = nodes[position] if position < len(nodes) else None
        what = f"Unexpected operator `fn.{node.schema.name}`, called at {node.user_line}"
        if first is None:
            raise UsageError(f"{what}: the iterations before had no operators any more. {_ORDER}")
        constant = node.schema.name == "_constant_tensor"  # an output may be one, without a line
        if first.schema is not node.schema or not (constant or first.user_line == node.user_line):
            raise UsageError(
                f"{what}, in the place of `fn.{first.schema.name}`, called at {first.user_line}. "
                f"{_ORDER}"
            )
        if constant:
            return
        place = f"`fn.{node.schema.name}`, called at {node.user_line}"
        if first.device != node.device:
            raise UsageError(f'{place}, is on "{node.device}" but was on "{first.device}" before.')
        if len(first.inputs) != len(node.inputs):
            raise UsageError(
                f"{place}, has {len(node.inputs)} inputs but had {len(first.inputs)} before."
            )
        if first.tensor_args.keys() != node.tensor_args.keys():
            raise UsageError(
                f"{place}, has a batch for the arguments {sorted(node.tensor_args)} but had one "
                f"for {sorted(first.tensor_args)} before."
            )
        for name, value in node.args.items():
            if not callable(value) and node.attachment is None:
                before = first.args.get(name)
                if not _is_equal(value, before):
                    raise UsageError(
                        f"Argument `{name}` of {place}, unexpectedly changed value from "
                        f"{before!r} to {value!r}."
                    )

    # -- what is looked at -----------------------------------------------------------------------

    def batch(self, edge: DataNode) -> Any:
        """The batch of an edge as users see it."""
        node = edge.source
        assert node is not None
        if id(node) not in self._places or self._over:
            raise UsageError(
                f"The data of `{edge.name}`, created at {node.user_line}, is gone, as its "
                "iteration is over. Keep what `get()` returns."
            )
        found = self._batches[key_of(edge)]
        if edge.device != node.output_device:
            found = self._on_other_device(edge)
        if found is None:
            raise UsageError(
                f"`{edge.name}`, created at {node.user_line}, has no data and no type, as no "
                "sample takes its branch."
            )
        if isinstance(found, BatchBuffer):
            found.wait()
        if node.guard:
            terms = [self._batches[key_of(term.predicate)] for term in node.guard]
            guard = tuple((k, term.holds) for k, term in enumerate(node.guard))
            found = found.taken(members(guard, terms, self._samples()))
        return found.tensor_list()

    def _on_other_device(self, edge: DataNode) -> Any:
        key = (key_of(edge), edge.device)
        if key not in self._moved:
            place = (self._places[id(edge.source)], edge.index, edge.device)
            part = self._known.parts.get(place)
            if part is None:
                part = self._known.parts[place] = Part(self._known.settings, None, edge)
            (self._moved[key],) = part.run(self._number, self._samples(), self._batches, None, edge)
        return self._moved[key]

    def end(self) -> None:
        """The iteration is over: let go of its data."""
        self._over = True
        self._batches, self._moved = {}, {}


def _name_feed(node: OpNode) -> None:
    if node.attachment is not None:
        node.attachment.name = node.name


def _is_same(first: OpNode | None, node: OpNode) -> bool:
    """Whether what runs `first` can run `node`."""
    if first is None or node.schema.reader or node.attachment is not None:
        return first is not None
    return _sharing(first) == _sharing(node) and all(
        _is_equal(value, first.args.get(name)) for name, value in node.args.items()
    )


def _sharing(node: OpNode) -> list[int]:
    """Which of the edges that a node reads are the same ones."""
    keys = [key_of(edge) for edge in node.sources]
    return [keys.index(key) for key in keys]


def _is_equal(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return np.array_equal(one, other, equal_nan=np.asarray(one).dtype.kind == "f")
    return one is other or bool(one == other) or (one != one and other != other)


@public_methods
class PipelineDebug(Pipeline):
    """A pipeline whose definition is executed in every iteration, operator by operator.

    It is made by a definition with ``debug=True``. `run`, `feed_input`, `reset` and the properties
    work as of any pipeline, and give the same batches; what works ahead does not.

    Parameters
    ----------
    define
        Executes the definition and returns its outputs.
    **arguments
        Those of `Pipeline`.
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
        self._define_outputs = define
        self._known: _Known | None = None
        self._trace()

    def _trace(self) -> None:
        """Execute the definition once without data, as that of any pipeline.

        It says how random operators are numbered, and which sources there are. Where the definition
        needs data, it is executed with data only.
        """
        trace = self._definition.scope = _Trace()
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

    def _ready(self) -> _Known:
        """What is known of the operators; settings are checked when it is asked for first."""
        if self._known is None:
            self._settings.check_for_build()
            known = _Known(self._settings)
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
        """Execute the definition, and return its outputs.

        Parameters
        ----------
        cuda_stream
            As of `Pipeline.run`.
        **pipeline_inputs
            As of `Pipeline.run`.

        Raises
        ------
        UsageError
            If the definition calls other operators than before.
        StopIteration
            At the end of the data of an external source.
        """
        known = self._ready()
        for name, data in pipeline_inputs.items():
            self.feed_input(name, data)
        current = _Run(known)
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
                f"before. {_ORDER}"
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
        """As `Pipeline.feed_input`.

        Parameters
        ----------
        data_node, data, layout, cuda_stream, use_copy_kernel
            As there.
        """
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
            "`penstock.pipeline.experimental`. `with` cannot define one."
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
