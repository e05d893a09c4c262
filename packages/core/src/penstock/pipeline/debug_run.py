"""What a pipeline in debug mode knows of its operators, and one iteration of it."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.errors import (
    MisusedArgumentError,
    ShapeError,
    UsageError,
)
from penstock.executor.cpu.batch import BatchBuffer
from penstock.executor.guards import members
from penstock.graph import guards
from penstock.graph.capture import make_node
from penstock.graph.data_node import DataNode
from penstock.graph.nodes import OpNode
from penstock.graph.scope import GraphScope
from penstock.graph.seeds import assign_seeds
from penstock.graph.user_line import user_line
from penstock.kernels.cpu.philox_state import DrawSeed
from penstock.operators.external.external_source import make_feed
from penstock.operators.support.registry import find
from penstock.pipeline.debug_node import NO_DATA, DataNodeDebug
from penstock.pipeline.debug_parts import Inputs, Key, Part, key_of
from penstock.pipeline.input_queues import buffer_of
from penstock.tensors.gpu.tensor_list import TensorListGPU
from penstock.tensors.tensor_list import TensorListCPU
from penstock.types.arrays import is_array
from penstock.types.enums import DALIEnum

if TYPE_CHECKING:
    from penstock.pipeline.settings import Settings

ORDER = "Debug mode does not support changing the order of operators between iterations."


class Known:
    """What a pipeline keeps of its operators, from one iteration to the next."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self._as_dali = settings.draws_as_dali
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
        self.number = 0
        """Of the next iteration."""
        self.pending: list[tuple[str, tuple[Any, ...]]] = []
        """What was fed to sources that nobody has met yet."""

    def take_traced(self, nodes: list[OpNode], order: list[OpNode]) -> None:
        """Take over what the definition says without data: `order` is as of a normal pipeline."""
        places = {id(node): k for k, node in enumerate(nodes)}
        unused = [node for node in nodes if node not in order]
        seeds = assign_seeds([*order, *unused], self.base, as_dali=self._as_dali)
        self.seeds = {places[key]: seed for key, seed in seeds.items()}
        self.nodes = nodes
        self.is_complete = True
        sources = [n for n in nodes if n.attachment and not isinstance(n.attachment, _Handed)]
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
        if node.seed is None and position not in self.seeds:
            self.seeds[position] = assign_seeds(created, self.base, as_dali=self._as_dali)[id(node)]
        seed = self.seeds[position] if node.seed is None else node.seed
        if self._as_dali:
            assert self.settings.batch_size is not None
            return DrawSeed.of_pipeline(seed, self.settings.batch_size)
        return seed


class _Handed:
    """The batch behind an input that is no node, in place of the supply line of a source."""

    name = ""

    def __init__(self, batch: Any) -> None:
        self.batch = batch

    @classmethod
    def edge(cls, value: Any, batch: Any) -> DataNode:
        """The edge of such an input."""
        if guards.current():
            raise MisusedArgumentError(
                f"A batch that no operator made is used in a branch, at {user_line()}. Debug mode "
                "cannot tell which samples it has: hand it to an operator outside of the branch."
            )
        on_gpu = isinstance(value, TensorListGPU)
        arguments = {"device": "gpu" if on_gpu else "cpu"}
        return make_node(find("external_source"), (), arguments, cls(batch)).outputs[0]


class Trace(GraphScope):
    """Collects operators without data."""

    def edge_of(self, value: object) -> DataNode | None:
        """The edge of what was made of data."""
        return _Handed.edge(value, None) if value is NO_DATA else None

    def add(self, node: OpNode) -> None:
        """Take `node` in."""
        super().add(node)
        _name_feed(node)
        node.outputs = [DataNodeDebug.made(node, k, None) for k in range(len(node.outputs))]


class Run(GraphScope):
    """One iteration: runs operators as they come.

    Parameters
    ----------
    known
        What is kept between iterations.
    """

    def __init__(self, known: Known) -> None:
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
            self._take_size(size, inputs.nodes[0])
        self._batches |= batches

    def _take_size(self, size: int, node: OpNode) -> None:
        if self._size not in (None, size):
            raise ShapeError(
                f'Batch size must be uniform across an iteration: "{node.name}", created at '
                f"{node.user_line}, has {size} samples, and the operators before it {self._size}."
            )
        self._size = size

    def edge_of(self, value: object) -> DataNode | None:
        """The edge of a batch: what `get` has returned, or a list of arrays."""
        is_list = isinstance(value, list) and bool(value) and all(is_array(v) for v in value)
        if not is_list and not isinstance(value, (TensorListCPU, TensorListGPU)):
            return None
        arguments = {a.name: a.default for a in find("external_source").args.values()}
        (delivery,) = make_feed(arguments, None).prepare(value)
        return _Handed.edge(value, buffer_of(delivery))

    def add(self, node: OpNode) -> None:
        """Take `node` in, and run it."""
        super().add(node)
        _name_feed(node)
        known, position = self._known, len(self.nodes) - 1
        if known.is_complete:
            self._check_same(node, position)
        if isinstance(node.attachment, _Handed):
            self._take_size(len(node.attachment.batch), node)
            self._batches[id(node), 0] = node.attachment.batch
        elif node.attachment is not None:
            self._take_source(node, position)
        part = known.parts.get(position)
        if part is not None and not _is_same(part.node, node):
            part.executor.shutdown()
            part = None
        if part is None:
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
            raise UsageError(f"{what}: the iterations before had no operators any more. {ORDER}")
        constant = node.schema.name == "_constant_tensor"  # an output may be one, without a line
        if first.schema.name != node.schema.name or not (
            constant or first.user_line == node.user_line
        ):
            raise UsageError(
                f"{what}, in the place of `fn.{first.schema.name}`, called at {first.user_line}. "
                f"{ORDER}"
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
            if node.attachment is None and (isinstance(value, DALIEnum) or not callable(value)):
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
    same = first.schema is node.schema and _sharing(first) == _sharing(node)
    return same and all(_is_equal(value, first.args.get(name)) for name, value in node.args.items())


def _sharing(node: OpNode) -> list[int]:
    """Which of the edges that a node reads are the same ones."""
    keys = [key_of(edge) for edge in node.sources]
    return [keys.index(key) for key in keys]


def _is_equal(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray) or isinstance(other, np.ndarray):
        return np.array_equal(one, other, equal_nan=np.asarray(one).dtype.kind == "f")
    return one is other or bool(one == other) or (one != one and other != other)
