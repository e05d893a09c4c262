"""Account of a pipeline on a cluster: where it is cut and why, who works, who waits."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from headrace.plugin.ray.cut import BYTES_A_SECOND, Costs, edge_of

if TYPE_CHECKING:
    from headrace.graph.nodes import OpNode
    from headrace.plugin.ray.executor import RayExecutor
    from headrace.plugin.ray.split import Split


@dataclass(frozen=True, slots=True)
class CutEdge:
    """An edge whose batches go from workers to the trainer."""

    operator: str
    """Name of the operator in the graph that makes it."""
    output: int
    """Number of its output."""
    bytes_per_batch: float
    """As measured on a few samples of the first batch."""


@dataclass(frozen=True, slots=True)
class Cut:
    """Place where a graph is cut, and the reason."""

    edges: tuple[CutEdge, ...]
    in_workers: tuple[str, ...]
    """Operators in workers, by name."""
    on_trainer: tuple[str, ...]
    """Operators where the trainer is."""
    why: str
    """The reason, in words."""
    seconds_in_workers: float
    """Processor time of a batch, as measured on a few samples of the first one."""
    seconds_on_trainer: float
    bytes_per_batch: float
    """Bytes that go to the trainer."""
    uncut_bytes_per_batch: float
    """Bytes that would go there if workers did all that they can."""


@dataclass(frozen=True, slots=True)
class WorkerReport:
    """One worker."""

    number: int
    node_id: str
    """Empty where it has not started."""
    address: str
    host: str
    pid: int
    is_local: bool
    """True if it is on the trainer's node."""
    batches: int
    bytes: int
    seconds_per_batch: float
    """Time that it works on a batch."""
    fetch_seconds_per_batch: float
    """Time that a batch takes from its node to the trainer's."""
    busy: float
    """Share of its time that it worked."""


@dataclass
class Report:
    """Counters of a pipeline on a cluster."""

    cut: Cut
    period_seconds: float = 0.0
    """Time the trainer spends on a batch, without waiting: a moving average."""
    waits: float = 0.0
    """Share of its time that it waits for a batch."""
    batches: int = 0
    _last: float = field(default=0.0, repr=False)

    def took(self, began: float, ended: float) -> None:
        """Note that the consumer asked for a batch, and got it."""
        self.batches += 1
        if self._last:
            worked, waited = began - self._last, ended - began
            part = max(1.0 / self.batches, 0.05)
            self.period_seconds += part * (worked - self.period_seconds)
            self.waits += part * (waited / max(worked + waited, 1e-9) - self.waits)
        self._last = ended

    def workers(self, executor: RayExecutor) -> list[WorkerReport]:
        """The workers there are."""
        found = []
        now = time.perf_counter()
        for m in () if executor.fleet is None else executor.fleet.members.values():
            place = m.place
            found.append(
                WorkerReport(
                    m.number,
                    "" if place is None else place.node_id,
                    "" if place is None else place.address,
                    "" if place is None else place.host,
                    0 if place is None else place.pid,
                    m.is_local,
                    m.batches,
                    m.bytes,
                    m.seconds / m.batches if m.batches else 0.0,
                    m.fetching / m.batches if m.batches else 0.0,
                    min(m.seconds / max(now - m.since, 1e-9), 1.0) if place else 0.0,
                )
            )
        return found

    def counters(self, executor: RayExecutor) -> dict[str, Any]:
        """Everything as plain numbers and text."""
        fleet = executor.fleet
        return {
            "ray_cut": asdict(self.cut),
            "ray_workers": [asdict(worker) for worker in self.workers(executor)],
            "ray_workers_wanted": 0 if fleet is None else fleet.wanted,
            "ray_workers_lost": 0 if fleet is None else fleet.lost,
            "ray_trainer_seconds_per_batch": self.period_seconds,
            "ray_trainer_waits": self.waits,
        }


def describe(
    nodes: Sequence[OpNode],
    found: Split,
    costs: Costs,
    fixed: Mapping[int, str],
    *,
    by_user: bool,
) -> Cut:
    """Say where a graph is cut."""
    remote = {id(node) for node in found.remote}
    there = [n for n in nodes if id(n) in remote and n.input_queue is None]
    here = [n for n in nodes if id(n) not in remote and n.input_queue is None]
    edges = tuple(
        CutEdge(e.source.name, e.index, costs.bytes.get(edge_of(e), 0.0))
        for e in found.crossing
        if e.source is not None
    )
    total = sum(edge.bytes_per_batch for edge in edges)
    last = _bytes_uncut(nodes, found, costs, fixed)
    here_seconds = sum(costs.seconds.get(id(n), 0.0) for n in here)
    there_seconds = sum(costs.seconds.get(id(n), 0.0) for n in there)
    names = ", ".join(edge.operator for edge in edges) or "nothing"
    if by_user:
        why = f"`cut` says so: the batches of {names} go to the trainer."
    elif costs.why_unknown:
        why = f"Workers do all that they can: {costs.why_unknown}."
    else:
        why = (
            f"The batches of {names} go to the trainer: {total / 1e6:.1f} MB, "
            f"instead of {last / 1e6:.1f} MB after the last operator that workers could run. "
            f"What is left takes {here_seconds * 1e3:.1f} ms of a processor there, and workers "
            f"spend {there_seconds * 1e3:.1f} ms on a batch. (A second of the trainer's is "
            f"weighed as {BYTES_A_SECOND / 1e9:g} GB.)"
        )
    forced = {n.name: fixed[id(n)] for n in here if id(n) in fixed}
    for name, reason in list(forced.items())[:3]:
        why += f" {name} is where the trainer is, because {reason}."
    return Cut(
        edges,
        tuple(n.name for n in there),
        tuple(n.name for n in here),
        why,
        there_seconds,
        here_seconds,
        total,
        last,
    )


def _bytes_uncut(
    nodes: Sequence[OpNode], found: Split, costs: Costs, fixed: Mapping[int, str]
) -> float:
    """Bytes that would cross if workers ran everything they can."""
    could = {id(n) for n in nodes if n.input_queue is None and id(n) not in fixed}
    read = {edge_of(e) for n in nodes if id(n) in fixed for e in n.sources}
    originals = {place: edge for edge, place in found.fed.items()}
    for edge in found.outputs:
        node = found.originals.get(id(edge.source))
        read.add(
            (id(node), edge.index)
            if node is not None
            else originals.get((id(edge.source), edge.index), edge_of(edge))
        )
    return sum(costs.bytes.get(edge, 0.0) for edge in read if edge[0] in could)
