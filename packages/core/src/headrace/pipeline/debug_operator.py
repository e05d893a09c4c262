"""Execution of a single operator of a pipeline in debug mode, with a plan and an executor of its
own.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from headrace.executor.executor import Executor
from headrace.executor.iteration import Iteration
from headrace.executor.plan import make_plan
from headrace.executor.schedule import Consumer
from headrace.graph.data_node import DataNode
from headrace.graph.guards import Guard, Term
from headrace.graph.nodes import OpNode
from headrace.operators.support.registry import find
from headrace.pipeline.engine import RUNNING, device_for, placed
from headrace.pipeline.input_queues import InputQueues
from headrace.pipeline.open_readers import OpenReaders
from headrace.pipeline.prefetch import Prefetch
from headrace.pipeline.source_workers import SourceWorkers

if TYPE_CHECKING:
    from headrace.pipeline.settings import Settings

Key = tuple[int, int]
"""An edge: ``id`` of the operator that makes it, and number of its output."""


def key_of(edge: DataNode) -> Key:
    """Return a key that is equal for edges of one batch, on any device."""
    return id(edge.source), edge.index


def _read(edges: Iterable[DataNode]) -> dict[Key, DataNode]:
    """The edges that have to be there for `edges`: each once, predicates of branches first."""
    found: dict[Key, DataNode] = {}
    for edge in edges:
        assert edge.source is not None
        found |= _read([term.predicate for term in edge.source.guard])
        found.setdefault(key_of(edge), edge)
    return found


class _Given:
    """Copies of edges, as if their batches were fed; an edge of a branch stays one."""

    def __init__(self, edges: Iterable[DataNode]) -> None:
        self.nodes: list[OpNode] = []
        self._edges: dict[Key, DataNode] = {}
        for edge in _read(edges).values():
            self.edge(edge)

    def edge(self, original: DataNode) -> DataNode:
        """The copy of an edge."""
        source, key = original.source, key_of(original)
        assert source is not None
        found = self._edges.get(key)
        if found is None:
            node = OpNode(
                schema=find("external_source"),
                name=source.name,
                device=source.output_device,
                inputs=[],
                args={},
                tensor_args={},
                user_stack=source.user_stack,
                input_queue=self,
                guard=self._guard(source) if source.output_device == "cpu" else (),
            )
            node.outputs = [DataNode.of(node, 0, 1)]
            self.nodes.append(node)
            found = self._edges[key] = node.outputs[0]
        return found if original.device == found.device else found._on(original.device)

    def _guard(self, source: OpNode) -> Guard:
        """Return the guard of a batch fed to the CPU, where positions of other samples are empty.

        On the GPU they hold samples without elements, which can be read as any others.
        """
        return tuple([Term(self.edge(t.predicate), t.holds) for t in source.guard])


class SingleOperator:
    """One operator, or one batch on its way to the other device."""

    def __init__(
        self,
        settings: Settings,
        node: OpNode | None,
        edge: DataNode | None = None,
        seed: int | None = None,
    ) -> None:
        self.node = node
        given = _Given(_sources(node, edge))
        if node is None:
            assert edge is not None
            nodes, outputs = [], [given.edge(edge)]
        else:
            copy = replace(
                node,
                inputs=[given.edge(e) for e in node.inputs],
                tensor_args={name: given.edge(e) for name, e in node.tensor_args.items()},
                guard=tuple([Term(given.edge(t.predicate), t.holds) for t in node.guard]),
                outputs=[],
            )
            count = len(node.outputs)
            copy.outputs = [DataNode.of(copy, index, count) for index in range(count)]
            nodes, outputs = [copy], copy.outputs
        nodes, outputs = placed(settings, [*given.nodes, *nodes], outputs)
        copies = nodes[: len(given.nodes)]
        seeds = {} if seed is None else {id(n): seed for n in nodes if n.schema.random}
        assert settings.batch_size is not None
        self.readers = OpenReaders(
            [n for n in nodes if n.schema.reader], seeds, settings.batch_size, checkpointing=False
        )
        plan = make_plan(nodes, outputs, seeds, self.readers.parsers())
        if node is not None and node.input_queue is not None:
            copies = plan.fed_nodes
        self._fed = [plan.registers[id(n), k] for n in copies for k in range(len(n.outputs))]
        self.executor = Executor(
            plan,
            self.readers.by_node,
            num_threads=int(settings.num_threads or 1),
            fuse=settings.fuse,
            on_bad_sample=settings.on_bad_sample,
            affinity=settings.affinity,
            device=device_for(settings, plan),
            depth=1,
            packs=False,
        )
        self.executor.start()
        RUNNING.add(self)

    def run(
        self,
        number: int,
        size: int,
        batches: dict[Key, Any],
        node: OpNode | None,
        edge: DataNode | None = None,
    ) -> list[Any]:
        """Run it once."""
        if node is not None and node.input_queue is not None:
            keys = [key_of(output) for output in node.outputs]
        else:
            keys = [*_read(_sources(node, edge))]
        fed = {r: batches[key] for r, key in zip(self._fed, keys, strict=True)}
        self.executor.schedule(Iteration(number, size, fed))
        done = self.executor.take()
        return [done.buffers[r] for r in self.executor.plan.outputs]


def _sources(node: OpNode | None, edge: DataNode | None) -> list[DataNode]:
    if node is not None:
        return node.sources
    assert edge is not None
    return [edge]


class Inputs:
    """External sources, asked once for each iteration."""

    def __init__(self, settings: Settings, nodes: list[OpNode]) -> None:
        assert settings.batch_size is not None
        self.nodes = nodes
        self._workers = SourceWorkers(settings)
        self._workers.start_processes(nodes, settings.batch_size)
        run_nodes, _ = placed(settings, nodes, [])
        self._plan = make_plan(run_nodes, [], {})
        device = device_for(settings, self._plan)
        self.queues = InputQueues(self._plan, settings.batch_size, device)
        self._workers.start_threads()
        self._queue: deque[Iteration] = deque()
        self.consumer = Consumer()
        self._prefetch = Prefetch(self, self.queues, 1, 0)  # type: ignore[arg-type]

    def next(self) -> tuple[int, dict[Key, Any]]:
        """Number of samples of the next iteration, and the data of its sources."""
        self._prefetch.schedule(None)
        iteration = self._prefetch.take(None)
        registers = self._plan.registers
        return iteration.size, {
            (id(node), k): iteration.fed[registers[id(run), k]]
            for node, run in zip(self.nodes, self._plan.fed_nodes, strict=True)
            for k in range(len(node.outputs))
        }

    def reset(self) -> None:
        """Begin the next epoch, if the data has come to its end."""
        if self.queues.ended:
            self.queues.reset()
            self._prefetch.begin_epoch()

    def close(self) -> None:
        """End worker processes."""
        self._workers.close()

    # What `Prefetch` asks of an executor.
    def schedule(self, iteration: Iteration) -> bool:
        """Take in an iteration."""
        self._queue.append(iteration)
        return True

    def pending(self) -> int:
        """Number of waiting inputs."""
        return len(self._queue)

    def take(self) -> Iteration:
        """The oldest one."""
        return self._queue.popleft()
