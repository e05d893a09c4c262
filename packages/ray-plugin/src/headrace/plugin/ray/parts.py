"""Both parts of a pipeline: a plan for the trainer, and a graph, packed, for workers."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from headrace.executor.plan import make_plan, works_on_batches
from headrace.plugin.ray.cut import choose, pinned, up_to
from headrace.plugin.ray.messages import Graph
from headrace.plugin.ray.probe import measure
from headrace.plugin.ray.report import Cut, describe
from headrace.plugin.ray.split import Split, split
from headrace.plugin.ray.worker import packed_graph

if TYPE_CHECKING:
    from headrace.executor.iteration import Iteration
    from headrace.executor.plan import Plan
    from headrace.graph.data_node import DataNode
    from headrace.graph.nodes import OpNode


class Parts(NamedTuple):
    """Both parts, and the reason for the cut."""

    split: Split
    cut: Cut
    packed: tuple[bytes, list[Any]]
    """Part of the workers, and references in it to Ray's store."""
    rest: Plan | None
    """Part of the trainer, if anything is left to do there."""


def find_parts(
    plan: Plan,
    readers: dict[int, Any],
    outputs: Sequence[DataNode],
    iteration: Iteration,
    cut: Any,
    how: dict[str, Any],
    *,
    functions_travel: bool,
) -> Parts:
    """Divide the graph of `plan` where the user says, or where `iteration` shows that it is best.

    `how` are arguments of an executor.
    """
    fixed = pinned(plan.nodes, functions_travel=functions_travel)
    can = [n for n in plan.nodes if id(n) not in fixed and n.device == "cpu"]
    costs = measure(plan, readers, can, iteration, fuse=how["fuse"], threads=how["num_threads"])
    costs.why_unknown = costs.why_unknown or _why_whole(how["on_bad_sample"], can)
    if cut is not None:
        remote = up_to(plan.nodes, cut, fixed)
    elif costs.why_unknown:
        remote = up_to(plan.nodes, "outputs", fixed)
    else:
        remote = choose(plan.nodes, outputs, costs, fixed)
    found = split(plan.nodes, outputs, remote)
    opened = [readers[id(node)] for node in found.remote if node.schema.reader]
    graph = Graph(
        found.remote,
        found.crossing,
        [plan.seeds.get(id(node)) for node in found.remote],
        opened,
        [reader.meta() for reader in opened],
        how["fuse"],
        how["on_bad_sample"],
        os.getcwd(),
        {k: v for k, v in os.environ.items() if k.startswith("HEADRACE_")},
    )
    rest = None
    if found.rest:
        seeds = {
            key: plan.seeds[id(original)]
            for key, original in found.originals.items()
            if id(original) in plan.seeds
        }
        rest = make_plan(found.rest, found.outputs, seeds)
    described = describe(plan.nodes, found, costs, fixed, by_user=cut is not None)
    return Parts(found, described, packed_graph(graph), rest)


def _why_whole(policy: str, nodes: Sequence[OpNode]) -> str:
    """Reason why a bad sample must show in workers, or ""."""
    if policy == "skip":
        return '`on_bad_sample`="skip" draws others in the place of bad ones, which workers read'
    if policy == "replace" and any(works_on_batches(n) for n in nodes if n.input_queue is None):
        return (
            '`on_bad_sample`="replace" wants operators on whole batches to see no bad sample, and '
            "workers run one"
        )
    return ""
