"""How a graph is cut: registers for its edges, stages of sample-by-sample work.

A sample flows through all operators of a stage while it is hot in the cache. Only an operator that
needs the whole batch ends a stage.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from penstock.errors import located
from penstock.executor.batch import EdgeHistory

if TYPE_CHECKING:
    from penstock.graph.data_node import DataNode
    from penstock.graph.nodes import OpNode


@dataclass(slots=True)
class Stage:
    """Operators that run sample by sample, then those that take the finished batch."""

    number: int
    sample_nodes: list[OpNode] = field(default_factory=list)
    batch_nodes: list[OpNode] = field(default_factory=list)
    reads: list[int] = field(default_factory=list)
    """Registers of earlier stages, or of fed data, that this stage's operators read."""


@dataclass(slots=True)
class Plan:
    """Everything about a graph that does not depend on its data."""

    nodes: list[OpNode]
    stages: list[Stage]
    registers: dict[tuple[int, int], int]
    consumers: list[int]
    """How many operators (and pipeline outputs) read each register."""
    leaves_stage: list[bool]
    """Whether the register must become a batch: an output, or read by a later stage."""
    outputs: list[int]
    readers: list[OpNode]
    feeds: list[OpNode]
    """External sources."""
    history: list[EdgeHistory]
    seeds: dict[int, int]
    """Seed of each random operator, by ``id(node)``."""

    def register(self, edge: DataNode) -> int:
        """Number of the register that holds `edge`."""
        return self.registers[id(edge.source), edge.index]


def needs_batch(node: OpNode) -> bool:
    """Whether `node` works on whole batches, as its class or its constants say."""
    decide = getattr(node.schema.cls, "needs_batch", False)
    try:
        return bool(decide(node.args)) if callable(decide) else bool(decide)
    except Exception as error:
        raise located(error, node.where()) from error


def make_plan(nodes: list[OpNode], outputs: list[DataNode], seeds: dict[int, int]) -> Plan:
    """Cut the graph of `nodes`, which come in topological order."""
    registers: dict[tuple[int, int], int] = {}
    for node in nodes:
        for index in range(len(node.outputs)):
            registers[id(node), index] = len(registers)

    def register(edge: DataNode) -> int:
        return registers[id(edge.source), edge.index]

    consumers = [0] * len(registers)
    leaves = [False] * len(registers)
    stage_of: dict[int, int] = {}
    ready: dict[int, int] = {}  # register -> first stage in which it can be read
    written: dict[int, int] = {}  # register -> stage whose samples write it; -1: fed
    stages: list[Stage] = [Stage(0)]
    for node in nodes:
        reads = [register(e) for e in node.sources]
        for r in reads:
            consumers[r] += 1
        whole = needs_batch(node)
        stage = 0
        for r in reads:
            # A batch operator runs behind the samples of a stage and can read what they write.
            stage = max(stage, ready[r])
        while len(stages) <= stage:
            stages.append(Stage(len(stages)))
        stage_of[id(node)] = stage
        is_feed = node.attachment is not None
        if not is_feed:
            (stages[stage].batch_nodes if whole else stages[stage].sample_nodes).append(node)
        for index in range(len(node.outputs)):
            own = registers[id(node), index]
            ready[own] = stage + 1 if whole else stage
            written[own] = -1 if is_feed else stage
            leaves[own] = whole or is_feed
        for r in reads:
            if written[r] != stage or whole:
                leaves[r] = True
    for stage_ in stages:
        wanted = {
            register(e)
            for n in stage_.sample_nodes
            for e in n.sources
            if written[register(e)] != stage_.number or ready[register(e)] > written[register(e)]
        }
        stage_.reads = sorted(wanted)
    output_registers = [register(e) for e in outputs]
    for r in output_registers:
        leaves[r] = True
        consumers[r] += 1
    return Plan(
        nodes=nodes,
        stages=stages,
        registers=registers,
        consumers=consumers,
        leaves_stage=leaves,
        outputs=output_registers,
        readers=[n for n in nodes if n.schema.reader],
        feeds=[n for n in nodes if n.attachment is not None],
        history=[EdgeHistory() for _ in registers],
        seeds=seeds,
    )
