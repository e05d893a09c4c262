"""Holders of a pipeline's memory."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headrace.executor.iteration import DONE
from headrace.executor.memory import Pieces, Sizes

if TYPE_CHECKING:
    from headrace.pipeline.engine import Engine


@dataclass(frozen=True, slots=True)
class OutputMemory:
    """Memory of one output of an operator, in batches that were not taken yet."""

    operator: str
    """The name of the operator in the graph."""
    output: int
    """Index of the output."""
    stage: int
    """The stage of the graph that makes it; -1 for external data."""
    device: str
    """``"cpu"`` or ``"gpu"``."""
    batches: int
    """In how many batches."""
    bytes: int
    """Memory of these. What several outputs have in common is counted for the first."""


@dataclass(frozen=True, slots=True)
class PoolMemory:
    """A pool that the pipeline takes memory from; others of the process may do so, too."""

    name: str
    """``"host"``, ``"pinned"``, ``"shared"``, ``"shared_pinned"`` or ``"device"``."""
    bytes_in_use: int
    """Bytes in use by all pipelines."""
    bytes_unused: int
    """Bytes free for reuse."""


@dataclass(frozen=True, slots=True)
class MemoryReport:
    """Holders of a pipeline's memory, in bytes; prints as a table.

    `Sizes` are those of host memory (ordinary, shared and page-locked) and of the GPU's.
    """

    outputs: tuple[OutputMemory, ...]
    """Each output of an operator that has memory, in the order of the graph."""
    in_progress: Sizes
    """Batches that are worked on, with all that lies between their operators."""
    ready: Sizes
    """Batches that wait to be taken."""
    waiting_inputs: Sizes
    """External data that was fed and not used yet."""
    with_user: Sizes
    """Batches that were taken and are still referred to, if only to one sample. What parallel
    sources have made ahead, and copies that functions of the user's work on, are among it."""
    in_use: Sizes
    """All of these."""
    pools: tuple[PoolMemory, ...]
    """Pools that the memory comes from."""
    source_workers_bytes: int
    """Shared memory of worker processes of parallel external sources."""
    limit: tuple[int | None, int | None] | None
    """`memory_limit_bytes` for the host and the device, if there is a limit."""
    estimate: Sizes | None
    """Memory of the largest iteration so far, if there is a limit."""

    def __str__(self) -> str:
        """Two tables as text: who holds memory, and the pools."""
        rows: list[tuple[str, ...]] = [("", "host", "device")]
        for output in self.outputs:
            sizes = (output.bytes, 0) if output.device == "cpu" else (0, output.bytes)
            batches = "1 batch" if output.batches == 1 else f"{output.batches} batches"
            name = f"  {output.operator}[{output.output}] in {batches}"
            rows.append((name, *map(_text, sizes)))
        names = ("in_progress", "ready", "waiting_inputs", "with_user", "in_use")
        rows += [(name.replace("_", " "), *map(_text, getattr(self, name))) for name in names]
        if self.limit is not None:
            rows.append(("limit", *("-" if n is None else _text(n) for n in self.limit)))
            rows.append(("largest iteration", *map(_text, self.estimate or ())))
        pools: list[tuple[str, ...]] = [("pools of the process", "in use", "unused")]
        pools += [(f"  {p.name}", _text(p.bytes_in_use), _text(p.bytes_unused)) for p in self.pools]
        if self.source_workers_bytes:
            pools.append(("  workers of sources", _text(self.source_workers_bytes), ""))
        return "\n".join(_table([*rows, *pools]))


def _text(size: int) -> str:
    if size >= 100 << 10:
        return f"{size / 2**20:.1f} MiB"
    return f"{size / 2**10:.1f} KiB" if size else "0"


def _table(rows: Iterable[tuple[str, ...]]) -> list[str]:
    rows = list(rows)
    width = max(len(row[0]) for row in rows)
    return [
        f"{row[0]:<{width}}" + "".join(f"{cell:>14}" for cell in row[1:]).rstrip() for row in rows
    ]


def memory_report(engine: Engine, source_workers_bytes: int) -> MemoryReport:
    """The report on a pipeline that is built."""
    executor = engine.executor
    plan, memory, pieces = executor.plan, executor.memory, Pieces()
    stage_of = {
        id(node): stage.number
        for stage in reversed(plan.stages)
        for node in (*stage.sample_nodes, *stage.batch_nodes)
    }
    sums = {True: Sizes(), False: Sizes()}
    found: dict[int, tuple[int, Sizes]] = {}
    for iteration in executor.scheduled():
        batches: dict[int, Any] = dict(enumerate(list(iteration.buffers))) or dict(iteration.fed)
        for r, batch in batches.items():
            sizes = pieces.add(batch)
            if any(sizes):
                is_ready = iteration.state is DONE
                sums[is_ready] = sums[is_ready].plus(sizes)
                count, before = found.get(r, (0, Sizes()))
                found[r] = count + 1, before.plus(sizes)
    outputs = []
    for node in plan.nodes:
        for k in range(len(node.outputs)):
            count, sizes = found.get(plan.registers[id(node), k], (0, Sizes()))
            for device, size in zip(("cpu", "gpu"), sizes, strict=True):
                if size:
                    stage = -1 if node.input_queue is not None else stage_of.get(id(node), -1)
                    outputs.append(OutputMemory(node.name, k, stage, device, count, size))
    waiting = engine.queues.waiting(pieces)
    in_use = memory.in_use()
    # What the batches have of others is not the pipeline's.
    in_use = in_use.most(sums[True].plus(sums[False]).plus(waiting))
    limit = engine.prefetch.limit
    return MemoryReport(
        outputs=tuple(outputs),
        in_progress=sums[False],
        ready=sums[True],
        waiting_inputs=waiting,
        with_user=in_use.minus(sums[True]).minus(sums[False]).minus(waiting),
        in_use=in_use,
        pools=tuple(PoolMemory(*each) for each in memory.pools()),
        source_workers_bytes=source_workers_bytes,
        limit=None if limit is None else limit.limit,
        estimate=None if limit is None else limit.estimate,
    )
