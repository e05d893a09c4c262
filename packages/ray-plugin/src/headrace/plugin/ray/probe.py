"""Measurement of a few samples: bytes on each edge, and time in each operator."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.executor.executor import Executor
from headrace.executor.iteration import Iteration
from headrace.executor.plan import make_plan
from headrace.plugin.ray.cut import Costs
from headrace.plugin.ray.given_order import GivenOrder
from headrace.plugin.ray.messages import PackedBatch
from headrace.profiling.figures import figures_of
from headrace.profiling.recorder import ProfileRecorder

if TYPE_CHECKING:
    from headrace.executor.plan import Plan
    from headrace.graph.nodes import OpNode

SAMPLES = 8
"""Samples that are looked at."""
_RUNS = 5
"""The first one compiles and opens, and does not count."""


def measure(
    plan: Plan,
    readers: dict[int, Any],
    nodes: Sequence[OpNode],
    iteration: Iteration,
    *,
    fuse: bool,
    threads: int,
) -> Costs:
    """Carry the first samples of `iteration` through `nodes`, which can run on the host.

    What cannot be measured, as every sample fails or the data is not there yet, is left unknown.
    """
    fed = {
        (id(node), k): iteration.fed[plan.registers[id(node), k]]
        for node in plan.fed_nodes
        for k in range(len(node.outputs))
        if node.device == "cpu"
    }
    costs = Costs()
    size = min(iteration.size, SAMPLES)
    for key, batch in fed.items():
        packed = PackedBatch.of(batch)  # type: ignore[arg-type]
        costs.bytes[key] = float(packed.nbytes)
    try:
        _run(plan, readers, nodes, iteration, fed, costs, size, fuse=fuse, threads=threads)
    except Exception as error:  # told where the iteration itself is run
        costs.why_unknown = (
            f"the first samples could not be measured ({type(error).__name__}: {error})"
        )
    return costs


def _run(
    plan: Plan,
    readers: dict[int, Any],
    nodes: Sequence[OpNode],
    iteration: Iteration,
    fed: dict[tuple[int, int], Any],
    costs: Costs,
    size: int,
    *,
    fuse: bool,
    threads: int,
) -> None:
    kept = list(nodes)
    edges = [e for n in kept if not n.guard and n.input_queue is None for e in n.outputs]
    opened, parsers, orders = {}, {}, []
    for node in kept:
        if not node.schema.reader:
            continue
        reader = copy.copy(readers[id(node)])
        orders.append((GivenOrder(reader.meta()), iteration.entries[id(node)][:size].tolist()))
        reader._order = orders[-1][0]
        opened[id(node)] = reader
        if reader.parses:
            parsers[id(node)] = len(reader.parser_inputs())
    seeds = {id(n): plan.seeds[id(n)] for n in kept if id(n) in plan.seeds}
    part = make_plan(kept, edges, seeds, parsers)
    recorder = ProfileRecorder()
    executor = Executor(
        *(part, opened),
        num_threads=threads,
        fuse=fuse,
        on_bad_sample="replace",
        recorder=recorder,
    )
    first = {}
    for node in part.fed_nodes:
        for k in range(len(node.outputs)):
            few = PackedBatch.of(fed[id(node), k]).part(size)
            first[part.registers[id(node), k]] = few
    executor.start()
    try:
        for _ in range(_RUNS):
            for order, entries in orders:
                order.give(entries)
            batches: dict[int, Any] = {r: b.buffer() for r, b in first.items()}
            executor.schedule(Iteration(iteration.number, size, batches))
            done = executor.take()
    finally:
        executor.shutdown()
    scale = iteration.size / max(size, 1)
    for edge in edges:
        batch = done.buffers[part.register(edge)]
        total = sum(int(np.prod(r.shape)) * r.itemsize for r in batch.rows if r is not None)
        costs.bytes[id(edge.source), edge.index] = total * scale
    for operator in figures_of(recorder).operators:
        number = operator.label.number
        if 0 <= number < len(kept):
            key = id(kept[number])
            each = operator.processor_seconds / (_RUNS - 1)
            costs.seconds[key] = costs.seconds.get(key, 0.0) + each * scale
