"""One iteration of a pipeline in debug mode."""

from __future__ import annotations

from typing import Any

from headrace.errors import (
    ShapeError,
    UsageError,
)
from headrace.executor.cpu.batch import BatchBuffer
from headrace.executor.guards import members
from headrace.graph.data_node import DataNode
from headrace.graph.nodes import OpNode
from headrace.graph.scope import GraphScope
from headrace.operators.external.external_source import make_input_queue
from headrace.operators.support.registry import find
from headrace.pipeline.debug_cache import OperatorCache
from headrace.pipeline.debug_comparison import can_run, check_same
from headrace.pipeline.debug_input import DirectInput
from headrace.pipeline.debug_node import NO_DATA, DataNodeDebug
from headrace.pipeline.debug_operator import Inputs, Key, SingleOperator, key_of
from headrace.pipeline.input_queues import buffer_of
from headrace.tensors.gpu.tensor_list import TensorListGPU
from headrace.tensors.on_host import TensorListOnHost
from headrace.tensors.tensor import TensorCPU
from headrace.tensors.tensor_list import TensorListCPU
from headrace.types.arrays import is_array


class Trace(GraphScope):
    """Collects operators without data."""

    def edge_of(self, value: object) -> DataNode | None:
        """Return an edge for the placeholder of data."""
        return DirectInput.edge(value, None) if value is NO_DATA else None

    def add(self, node: OpNode) -> None:
        """Take `node` in."""
        super().add(node)
        _name_feed(node)
        node.outputs = [DataNodeDebug.made(node, k, None) for k in range(len(node.outputs))]


class DebugIteration(GraphScope):
    """One iteration: runs operators as they come."""

    def __init__(self, known: OperatorCache) -> None:
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
            what = f'Operator "{node.name}", created'
            if isinstance(node.input_queue, DirectInput):
                what = "Input that is a batch, given"
            raise ShapeError(
                f"Batch size must be uniform across an iteration. {what} at {node.user_line}, has "
                f"{size} samples, and the operators before it {self._size}."
            )
        self._size = size

    def edge_of(self, value: object) -> DataNode | None:
        """The edge of a batch: what `get` has returned, or a list of arrays or of its samples."""
        is_list = isinstance(value, list) and bool(value) and all(map(_is_sample, value))
        if not is_list and not isinstance(value, (TensorListCPU, TensorListGPU)):
            return None
        arguments = {a.name: a.default for a in find("external_source").args.values()}
        (delivery,) = make_input_queue(arguments, None).prepare(value)
        return DirectInput.edge(value, buffer_of(delivery))

    def add(self, node: OpNode) -> None:
        """Take `node` in, and run it."""
        super().add(node)
        _name_feed(node)
        known, position = self._known, len(self.nodes) - 1
        if known.is_complete:
            first = known.nodes[position] if position < len(known.nodes) else None
            check_same(first, node)
        if isinstance(node.input_queue, DirectInput):
            self._take_size(len(node.input_queue.batch), node)
            self._batches[id(node), 0] = node.input_queue.batch
        elif node.input_queue is not None:
            self._take_source(node, position)
        part = known.parts.get(position)
        if part is not None and not can_run(part.node, node):
            part.executor.shutdown()
            part = None
        if part is None:
            part = SingleOperator(known.settings, node, seed=known.seed(position, self.nodes))
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
            node.input_queue = first.input_queue
        else:
            first = node
            inputs = known.add_inputs([node])
            self._fed(*inputs.next(), inputs)
        for k in range(len(node.outputs)):
            self._batches[id(node), k] = self._batches[id(first), k]

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
        batch = found.tensor_list()
        if self._known.settings.on_cpu_because and edge.device == "gpu":
            return TensorListOnHost.of(batch)
        return batch

    def _on_other_device(self, edge: DataNode) -> Any:
        key = (key_of(edge), edge.device)
        if key not in self._moved:
            place = (self._places[id(edge.source)], edge.index, edge.device)
            part = self._known.parts.get(place)
            if part is None:
                part = self._known.parts[place] = SingleOperator(self._known.settings, None, edge)
            (self._moved[key],) = part.run(self._number, self._samples(), self._batches, None, edge)
        return self._moved[key]

    def end(self) -> None:
        """The iteration is over: let go of its data."""
        self._over = True
        self._batches, self._moved = {}, {}


def _is_sample(value: object) -> bool:
    return isinstance(value, TensorCPU) or is_array(value)


def _name_feed(node: OpNode) -> None:
    if node.input_queue is not None:
        node.input_queue.name = node.name
