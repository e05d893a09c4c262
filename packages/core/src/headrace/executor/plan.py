"""Division of a graph: registers for its edges, and stages of work, one after the other.

In a stage on the CPU a sample flows through all operators while it is hot in the cache; only an
operator that needs the whole batch ends it. A stage on the GPU takes whole batches. There are two
streams, each with a thread of its own: ``"mixed"`` for work whose data is on the host (uploads,
decoders), which thus runs ahead of ``"gpu"``, the stream of everything else.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

from headrace.errors import MisusedArgumentError, OperatorError, SuspectDataWarning, located
from headrace.executor.cpu.shape_statistics import ShapeStatistics
from headrace.graph.cached import CACHES
from headrace.graph.data_node import DataNode
from headrace.graph.guards import Term
from headrace.graph.nodes import OpNode
from headrace.operators.support.operator import BatchOperator, Operator
from headrace.operators.support.rules import check_declared
from headrace.tracebacks import warn_at

if TYPE_CHECKING:
    from headrace.executor.guards import Guard


_SAMPLES_A_PROCESS, _SAMPLES_OF_FEW = 192, 32
"""Samples in progress for each worker process, at most: three chunks of the quickest samples. Two
or three processes need no more than the second where no GPU follows (audio, two processes, six
batches begun early: 1.55 times as many clips a second in batches of 8, no more in those of 64)."""
_MANY_PROCESSES = 4
_TIMES_THE_DEPTH = 24


@dataclass(slots=True)
class Stage:
    """Operators that run sample by sample, then those that take the finished batch."""

    number: int
    device: str = "cpu"
    sample_nodes: list[OpNode] = field(default_factory=list)
    batch_nodes: list[OpNode] = field(default_factory=list)
    """On the GPU, all operators."""
    reads: list[int] = field(default_factory=list)
    """Registers of earlier stages, or of fed data, that this stage's operators read."""
    part: tuple[int, ...] = ()
    """Of a part of a stage, the positions of its nodes among those of the plan; see `Plan.part`."""


@dataclass(slots=True)
class Plan:
    """Everything about a graph that does not depend on its data."""

    nodes: list[OpNode]
    stages: list[Stage]
    registers: dict[tuple[int, int], int]
    consumers: list[int]
    """Number of operators (and pipeline outputs) that read each register."""
    leaves_stage: list[bool]
    """True if the register must become a batch: an output, or read by a later stage."""
    outputs: list[int]
    guards: dict[int, Guard]
    """The samples that a register has, where these are not all."""
    readers: list[OpNode]
    fed_nodes: list[OpNode]
    """External sources."""
    history: list[ShapeStatistics]
    seeds: dict[int, int]
    """Seed of each random operator, by ``id(node)``."""
    parsed: dict[int, tuple[int, ...]]
    """Registers that the parser of a reader reads, by ``id(node)``."""
    reduced: dict[int, tuple[int, ...]]
    """By ``id(node)``, the registers with an operator's result for the whole batch, which it then
    uses sample by sample."""
    hints: dict[int, int]
    """Bytes that a sample takes on registers that become batches, as far as it was told ahead."""
    on_gpu: list[bool]
    """True if the register is in GPU memory."""
    uploaded: list[bool]
    """True if the GPU or its decoders read the register, so that page-locked memory suits it."""
    warned: set[int] = field(default_factory=set)
    """Nodes, by ``id(node)``, that a warning was given of."""

    def warn(self, node: OpNode, text: str) -> None:
        """Warn, once and at the line that made `node`, of a likely mistake."""
        if id(node) not in self.warned:
            self.warned.add(id(node))
            warn_at(node.user_line, f"`fn.{node.schema.name}`: {text}", SuspectDataWarning)

    @property
    def streams(self) -> set[str]:
        """The streams of the GPU that have work, ``"mixed"`` and ``"gpu"``."""
        return {stage.device for stage in self.stages} - {"cpu"}

    def register(self, edge: DataNode) -> int:
        """Number of the register that holds `edge`."""
        return self.registers[id(edge.source), edge.index]

    def guard(self, node: OpNode) -> Guard:
        """The samples that `node` runs for."""
        return tuple([(self.register(term.predicate), term.holds) for term in node.guard])

    def guards_of(self, node: OpNode) -> tuple[Guard, ...]:
        """The guards that decide what types a node makes: its own, or those of the branches that it
        joins; none where it runs for all samples.
        """
        guard = self.guard(node)
        if node.schema.merges:
            predicate = self.register(node.inputs[2])
            return (*guard, (predicate, True)), (*guard, (predicate, False))
        return (guard,) if guard else ()

    def part(self, number: int, positions: tuple[int, ...]) -> Stage:
        """Stage `number`, or what is left of it: the nodes at `positions`, whose types follow from
        the branches that samples have taken.
        """
        stage = self.stages[number]
        if not positions:
            return stage
        left = {id(self.nodes[k]) for k in positions}
        nodes = [n for n in stage.sample_nodes if id(n) in left]
        made = {self.register(e) for n in nodes for e in n.outputs}
        reads = {self.register(e) for n in nodes for e in n.sources} - made
        reads.update(r for n in nodes for r in self.reduced.get(id(n), ()))
        return Stage(
            number,
            stage.device,
            nodes,
            [n for n in stage.batch_nodes if id(n) in left],
            sorted(reads),
            positions,
        )


def batches_read_ahead(plan: Plan) -> int:
    """Return the number of further iterations to begin early, so that files are ready for decoders.

    From files to the GPU, an iteration goes through several threads, one after the other, with
    little work in each: with only two on the way, decoders would often be idle. Readers say how far
    ahead they read. External sources are not asked earlier.
    """
    decodes = any(n.device == "mixed" and not n.schema.copies_to for n in plan.nodes)
    if not (decodes and begins_early(plan)):
        return 0
    return max((int(n.args.get("prefetch_queue_depth", 1)) for n in plan.readers), default=0)


def batches_for_processes(plan: Plan, processes: int, batch_size: int, depth: int) -> int:
    """Return the number of further iterations that may begin early, so that each worker process has
    a chunk worth a message, and the next one is there when it is done.

    The number in use is tuned; see `headrace.executor.prefetch_tuner`.
    """
    if not begins_early(plan):
        return 0
    are_many = processes >= _MANY_PROCESSES or plan.streams
    samples = (_SAMPLES_A_PROCESS if are_many else _SAMPLES_OF_FEW) * processes
    wanted = -(-samples // batch_size)
    return max(min(wanted, _TIMES_THE_DEPTH * depth) - depth, 0)


def begins_early(plan: Plan) -> bool:
    """Return True if iterations may begin before `prefetch_queue_depth` says so: they ask neither
    sources nor functions of the user.
    """
    return not (plan.fed_nodes or any(node.schema.calls_user for node in plan.nodes))


def class_of(node: OpNode) -> type[Operator]:
    """The class that does the work of `node`."""
    try:
        return node.schema.cls.for_arguments(node.args)
    except Exception as error:
        raise located(error, node.where()) from error


def check_constants(nodes: list[OpNode]) -> None:
    """Raise what operators say of their constants before there is any data."""
    for node in nodes:
        try:
            check_declared(node.schema, node.args, node.tensor_args, len(node.inputs), late=False)
            cls = class_of(node)
            if cls.check_constants is not Operator.check_constants:
                cls(node.args, dict.fromkeys(node.tensor_args)).check_constants()  # type: ignore[arg-type]
        except OperatorError:  # of `class_of`, which says where
            raise
        except Exception as error:
            raise located(error, node.where()) from error


def works_on_batches(node: OpNode) -> bool:
    """Return True if the class that implements `node` works on whole batches."""
    return issubclass(class_of(node), BatchOperator)


def make_plan(
    nodes: list[OpNode],
    outputs: list[DataNode],
    seeds: dict[int, int],
    parsers: Mapping[int, int] = MappingProxyType({}),
    apart: Collection[int] = (),
    bytes_per_sample: int = 0,
) -> Plan:
    """Divide a graph, whose nodes are in topological order, into a plan. `seeds` and `parsers` are
    by ``id(node)``; `bytes_per_sample` is for operators without a hint (0: unknown).
    """
    registers: dict[tuple[int, int], int] = {}
    for node in nodes:
        for index in range(len(node.outputs)):
            registers[id(node), index] = len(registers)
    count = len(registers)
    parsed = {}
    reduced: dict[int, tuple[int, ...]] = {}
    for node in nodes:
        cls = class_of(node)
        if node.device == "cpu" and issubclass(cls, BatchOperator) and cls.reduce is not None:
            reduced[id(node)] = tuple(range(count, count + cls.reduced))
            count += cls.reduced
    for key, inputs in parsers.items():
        parsed[key] = tuple(range(count, count + inputs))
        count += inputs

    def register(edge: DataNode) -> int:
        return registers[id(edge.source), edge.index]

    consumers = [0] * len(registers) + [1] * (count - len(registers))
    leaves = [False] * count
    uploaded = [False] * count
    ready: dict[int, int] = {}  # register -> first stage in which it can be read
    written: dict[int, int] = {}  # register -> stage that writes it; -1: fed
    stages: list[Stage] = [Stage(0)]
    for device, group in _phases(nodes, apart):
        first = len(stages) if device != "cpu" or stages[-1].device != "cpu" else len(stages) - 1
        for node in group:
            reads = [register(e) for e in node.sources]
            for r in reads:
                consumers[r] += 1
            whole = device != "cpu" or works_on_batches(node)
            phases = reduced.get(id(node), ())
            # A batch operator runs after the samples of a stage and can read what they write.
            stage = max((ready[r] for r in reads), default=0)
            is_feed = node.input_queue is not None and device == "cpu"
            if not is_feed:
                stage = max(stage, first)
                while len(stages) <= stage:
                    stages.append(Stage(len(stages), device))
                (stages[stage].batch_nodes if whole else stages[stage].sample_nodes).append(node)
                if phases:
                    if len(stages) == stage + 1:
                        stages.append(Stage(len(stages), device))
                    stages[stage + 1].sample_nodes.append(node)
                    stages[stage + 1].reads += phases
            # What is known of it only when it is there can be read from the next stage on.
            is_after = (whole and device == "cpu") or node.schema.is_typed_late(node.args)
            for index in range(len(node.outputs)):
                own = registers[id(node), index]
                ready[own] = stage + 1 if is_after else stage
                written[own] = -1 if is_feed else stage + bool(phases)
                leaves[own] = is_feed or (is_after and not phases)
            for r in reads:
                if written[r] != stage or (whole and device == "cpu"):
                    leaves[r] = True
            if node.device == "mixed" and reads:  # copies, and decoders, whose files are copied
                uploaded[register(node.inputs[0])] = True
    for stage_ in stages:
        wanted = {
            register(e)
            for n in (*stage_.sample_nodes, *(stage_.batch_nodes if stage_.device != "cpu" else ()))
            for e in n.sources
            if written[register(e)] != stage_.number or ready[register(e)] > written[register(e)]
        }
        stage_.reads = sorted(wanted | set(stage_.reads))
    output_registers = [register(e) for e in outputs]
    for r in (*output_registers, *(register(t.predicate) for t in _guards(outputs))):
        leaves[r] = True
    for r in output_registers:
        consumers[r] += 1
    plan = Plan(
        nodes=nodes,
        stages=stages,
        registers=registers,
        consumers=consumers,
        leaves_stage=leaves,
        outputs=output_registers,
        guards={},
        readers=[n for n in nodes if n.schema.reader],
        fed_nodes=[n for n in nodes if n.input_queue is not None],
        history=[ShapeStatistics() for _ in range(count)],
        seeds=seeds,
        hints={},
        on_gpu=[False] * count,
        parsed=parsed,
        reduced=reduced,
        uploaded=uploaded,
    )
    for node in nodes:
        for index, hint in enumerate(_hints(node, bytes_per_sample)):
            own = registers[id(node), index]
            plan.on_gpu[own] = node.output_device == "gpu"
            if hint > 0 and (leaves[own] or node.device != "cpu"):
                plan.hints[own] = hint
    plan.guards = {
        register(edge): plan.guard(node) for node in nodes if node.guard for edge in node.outputs
    }
    for node in plan.readers:
        caches = node.args.get(CACHES)
        if caches is not None and caches.parsed:
            guard = tuple((register(t.predicate), t.holds) for t in caches.guard(node))
            plan.guards.update((register(e), guard) for e in node.outputs[: caches.parsed])
    return plan


def _hints(node: OpNode, otherwise: int) -> list[int]:
    """For each output of an operator the bytes of a sample; 0 without a hint."""
    given, count = node.args.get("bytes_per_sample_hint"), len(node.outputs)
    if given is None:
        return [otherwise] * count
    if len(given) not in (1, count):
        error = MisusedArgumentError(
            f"`bytes_per_sample_hint` has {len(given)} values, and the operator {count} outputs: "
            "give one value for all, or one for each."
        )
        raise located(error, node.where())
    sizes = list(given) if len(given) == count else list(given) * count
    return [size if size > 0 else otherwise for size in sizes]


def _guards(edges: list[DataNode]) -> list[Term]:
    return [term for edge in edges if edge.source is not None for term in edge.source.guard]


def _phases(nodes: list[OpNode], apart: Collection[int]) -> list[tuple[str, list[OpNode]]]:
    """Groups of nodes of one device that can run one after the other, in topological order.

    The CPU does everything as soon as it can. What the GPU does waits for other work of its stream
    as long as no other node waits for it, so that there are few groups. What reads the nodes
    `apart` is in a later one.
    """
    level: dict[int, int] = {}
    for node in nodes:
        found = int(bool(apart) and node.device == "cpu" and id(node) not in apart)
        for edge in node.sources:
            source = edge.source
            assert source is not None
            waits = _waits(node, source) or id(source) in apart
            found = max(found, level[id(source)] + waits)
        level[id(node)] = found
    last: dict[str, int] = {}
    for node in nodes:
        last[device_of(node)] = max(last.get(device_of(node), 0), level[id(node)])
    latest: dict[int, int] = {}
    for node in reversed(nodes):
        device = device_of(node)
        if device != "cpu":
            level[id(node)] = max(
                level[id(node)], min(latest.get(id(node), last[device]), last[device])
            )
        for edge in node.sources:
            source = edge.source
            assert source is not None
            bound = level[id(node)] - _waits(node, source)
            latest[id(source)] = min(latest.get(id(source), bound), bound)
    groups: dict[tuple[int, int], list[OpNode]] = {}
    for node in nodes:
        groups.setdefault((level[id(node)], _DEVICES.index(device_of(node))), []).append(node)
    return [(_DEVICES[device], groups[number, device]) for number, device in sorted(groups)]


def _waits(node: OpNode, source: OpNode) -> bool:
    """Return True if `source` must be in an earlier group than `node`, which reads its outputs.

    Copies from the GPU to the host are ready once the group of the copy is done.
    """
    device = device_of(node)
    return device_of(source) != device or (device != "cpu" and source.output_device == "cpu")


_DEVICES = ("cpu", "mixed", "gpu")


def device_of(node: OpNode) -> str:
    """Return the device of `node`: ``"cpu"``, ``"mixed"`` or ``"gpu"``."""
    if node.input_queue is not None and node.device == "gpu":
        return "mixed"  # what was fed is uploaded there
    return node.device


def shares_streams(plan: Plan) -> bool:
    """Return True if streams need little but interpreter time, so that a thread for each would gain
    nothing and cost its wake-ups.

    Decoders are different: their thread must be ready when there is work for them.
    """
    return bool(plan.streams) and all(
        stage.device != "mixed" or node.input_queue is not None or node.schema.copies_to
        for stage in plan.stages
        for node in stage.batch_nodes
    )


def mixes_samples(stage: Stage) -> bool:
    """Return True if a sample after `stage` may depend on another sample. Operators on whole
    batches may mix them; uploads and decoders take each sample by itself.
    """
    return stage.device != "mixed" and bool(stage.batch_nodes)


def fed_registers(plan: Plan, stage: Stage) -> list[int]:
    """Return the registers that external sources feed to a GPU stage without other work, else
    none.
    """
    if stage.device == "cpu" or any(node.input_queue is None for node in stage.batch_nodes):
        return []
    return [plan.registers[id(n), k] for n in stage.batch_nodes for k in range(len(n.outputs))]
