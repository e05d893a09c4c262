"""Choice of the edges at which a graph is cut in two: least bytes after costly operators."""

from __future__ import annotations

import math
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from headrace.errors import ArgumentTypeError, ArgumentValueError, UnknownNameError, did_you_mean
from headrace.graph.data_node import DataNode
from headrace.graph.nodes import OpNode

BYTES_A_SECOND = 4e8
"""Exchange rate: a second of one of the trainer's processors is worth as much as so many bytes on
their way to it. They are copied into the store, over a network of 10 Gbit/s, into the trainer's
store, and out of it: about 1 to 2 GB/s each."""

Edge = tuple[int, int]
"""``id`` of the node, and the number of its output."""


@dataclass
class Costs:
    """Measurements of one batch."""

    bytes: dict[Edge, float] = field(default_factory=dict)
    seconds: dict[int, float] = field(default_factory=dict)
    """Of a processor, by ``id`` of the node."""
    why_unknown: str = ""
    """Reason why they do not decide."""


def edge_of(edge: DataNode) -> Edge:
    """The key of an edge."""
    return id(edge.source), edge.index


def why_on_trainer(node: OpNode, *, functions_travel: bool) -> str:
    """Reason why an operator must run where the trainer is, or ""."""
    if node.device != "cpu" or node.output_device != "cpu":
        return "it is on the GPU"
    if node.schema.calls_user and not functions_travel:
        return (
            "it calls a function of the program, which may remember something; "
            'workers="processes" of the pipeline says that it does not'
        )
    return ""


def pinned(nodes: Sequence[OpNode], *, functions_travel: bool) -> dict[int, str]:
    """The operators, by ``id``, that cannot run in workers, and why: what reads their outputs is
    among them.
    """
    found: dict[int, str] = {}
    for node in nodes:
        if node.input_queue is not None:
            continue
        why = why_on_trainer(node, functions_travel=functions_travel)
        before = next((e.source for e in node.sources if id(e.source) in found), None)
        if why:
            found[id(node)] = why
        elif before is not None:
            found[id(node)] = f"it reads what {before.name} makes"
    # A branch is not cut: rows of it are those of some samples.
    changed = True
    while changed:
        changed = False
        for node in nodes:
            for edge in node.sources:
                source = edge.source
                assert source is not None
                if source.guard and id(node) in found and id(source) not in found:
                    if source.input_queue is None:
                        found[id(source)] = f"it is in a branch that {node.name} joins or reads"
                        changed = True
                elif id(source) in found and id(node) not in found:
                    found[id(node)] = f"it reads what {source.name} makes"
                    changed = True
    return found


def choose(
    nodes: Sequence[OpNode], outputs: Sequence[DataNode], costs: Costs, fixed: Mapping[int, str]
) -> set[int]:
    """The operators, by ``id``, to run in workers: a minimum cut.

    Its cost is bytes that cross, in both directions, and what the trainer's processors do, at the
    rate of `BYTES_A_SECOND`. Readers stay with the workers. Of equal ones, the one with more in
    workers is taken.
    """
    flow = _Flow()
    for node in nodes:
        key = ("node", id(node))
        if node.input_queue is not None:
            fed = sum(costs.bytes.get((id(node), k), 0.0) for k in range(len(node.outputs)))
            flow.add(key, _SINK, fed)
            continue
        if id(node) in fixed:
            flow.add(key, _SINK, math.inf)
        elif node.schema.reader:
            flow.add(_SOURCE, key, math.inf)
        else:
            flow.add(_SOURCE, key, costs.seconds.get(id(node), 0.0) * BYTES_A_SECOND)
        for edge in node.sources:
            source = edge.source
            assert source is not None
            flow.add(key, ("node", id(source)), math.inf)
            if source.input_queue is None:
                flow.add(("edge", edge_of(edge)), key, math.inf)
        for k in range(len(node.outputs)):
            size = math.inf if node.guard else costs.bytes.get((id(node), k), 0.0) + 1.0
            flow.add(key, ("edge", (id(node), k)), size)
    for edge in outputs:
        if edge.source is not None and edge.source.input_queue is None:
            flow.add(("edge", edge_of(edge)), _SINK, math.inf)
    here = flow.sink_side()
    return {
        id(node)
        for node in nodes
        if node.input_queue is None and ("node", id(node)) not in here and id(node) not in fixed
    }


def up_to(nodes: Sequence[OpNode], names: Any, fixed: Mapping[int, str]) -> set[int]:
    """The operators with these names and all that they read, by ``id``: the user's own cut."""
    wanted = [names] if isinstance(names, str) else list(names) if _is_list(names) else None
    if wanted is None or not all(isinstance(name, str) for name in wanted):
        raise ArgumentTypeError(
            f'`cut` is {names!r}; expected "outputs" (all that can be goes to workers), or the '
            "name of the last operator in workers, or a list of such."
        )
    if wanted == ["outputs"]:
        return {id(n) for n in nodes if n.input_queue is None and id(n) not in fixed}
    by_name = {node.name: node for node in nodes if node.input_queue is None}
    found: set[int] = set()
    stack: list[OpNode] = []
    for name in wanted:
        node = by_name.get(name)
        if node is None:
            raise UnknownNameError(
                f"`cut` names {name!r}, and the pipeline has no operator of that name."
                f"{did_you_mean(name, list(by_name))} Operators: {', '.join(by_name) or 'none'}. "
                "Give yours a name with `name=`."
            )
        if id(node) in fixed:
            raise ArgumentValueError(
                f"`cut` names {name!r}, created at {node.user_line}, which cannot run in a worker: "
                f"{fixed[id(node)]}."
            )
        stack.append(node)
    while stack:
        node = stack.pop()
        if id(node) not in found and node.input_queue is None:
            found.add(id(node))
            stack += [e.source for e in node.sources if e.source is not None]
    return _whole_branches(nodes, found, fixed)


def _whole_branches(nodes: Sequence[OpNode], found: set[int], fixed: Mapping[int, str]) -> set[int]:
    """Add what is needed so that no branch is cut."""
    changed = True
    while changed:
        changed = False
        for node in nodes:
            if id(node) in found or node.input_queue is not None:
                continue
            cuts = any(id(e.source) in found and e.source and e.source.guard for e in node.sources)
            feeds = any(id(n) in found and any(e.source is node for e in n.sources) for n in nodes)
            if (cuts or feeds) and id(node) not in fixed:
                found.add(id(node))
                changed = True
    return found


def _is_list(value: Any) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, (str, bytes))


_SOURCE, _SINK = ("source", 0), ("sink", 0)


class _Flow:
    """Maximum flow by shortest paths (Edmonds and Karp); graphs of pipelines are small."""

    def __init__(self) -> None:
        self._left: dict[object, dict[object, float]] = defaultdict(dict)

    def add(self, begin: object, end: object, capacity: float) -> None:
        if capacity > 0:
            self._left[begin][end] = max(self._left[begin].get(end, 0.0), capacity)
            self._left[end].setdefault(begin, 0.0)

    def sink_side(self) -> set[object]:
        """Return the smallest side of the sink in a minimum cut."""
        while path := self._path():
            amount = min(self._left[a][b] for a, b in path)
            if math.isinf(amount):
                raise ArgumentValueError(
                    "The graph cannot be divided: a reader is in a branch together with what runs "
                    "on the trainer only."
                )
            for a, b in path:
                self._left[a][b] -= amount
                self._left[b][a] += amount
        found: set[object] = {_SINK}
        queue: deque[object] = deque(found)
        while queue:
            end = queue.popleft()
            for begin in self._left[end]:
                if begin not in found and self._left[begin].get(end, 0.0) > _NOTHING:
                    found.add(begin)
                    queue.append(begin)
        return found

    def _path(self) -> list[tuple[object, object]]:
        before: dict[object, object] = {_SOURCE: _SOURCE}
        queue: deque[object] = deque([_SOURCE])
        while queue:
            begin = queue.popleft()
            for end, left in self._left[begin].items():
                if left > _NOTHING and end not in before:
                    before[end] = begin
                    queue.append(end)
        if _SINK not in before:
            return []
        path: list[tuple[object, object]] = []
        at: object = _SINK
        while at != _SOURCE:
            path.append((before[at], at))
            at = before[at]
        return path


_NOTHING = 1e-6
