"""Names of a pipeline's operators in its checkpoints, and the check that they are the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from typing import Any

from headrace.errors import CheckpointError
from headrace.graph.nodes import OpNode


def names_in_checkpoints(nodes: list[OpNode]) -> dict[int, str]:
    """Return the names of operators with a state or a seed, by serial number.

    Serial numbers stay the same when nodes are copied to insert transfers between devices.

    Operators that the user did not name are counted by kind in order of creation: adding, say, an
    `fn.resize` to a pipeline does not make its checkpoints useless.
    """
    counted: Counter[str] = Counter()
    given = {node.name for node in nodes if node.explicit_name}
    names = {}
    for node in sorted(nodes, key=lambda n: n.serial):
        kind = node.schema.name
        if not (node.schema.reader or node.schema.random or node.input_queue is not None):
            continue
        if node.explicit_name:
            names[node.serial] = node.name
        else:
            while (name := f"{kind} #{counted[kind]}") in given:
                counted[kind] += 1
            names[node.serial] = name
            counted[kind] += 1
    return names


def check_same(
    nodes: list[OpNode], names: dict[int, str], found: dict[str, dict[str, Any]]
) -> None:
    """Check that a pipeline has the operators of a checkpoint."""
    kinds = {names[n.serial]: n.schema.name for n in nodes if n.serial in names}
    problems = []
    if missing := found.keys() - kinds.keys():
        problems.append(f"the checkpoint has {_listed(missing)}, which the pipeline does not have")
    if added := kinds.keys() - found.keys():
        problems.append(f"the pipeline has {_listed(added)}, which the checkpoint does not have")
    for name in sorted(kinds.keys() & found.keys()):
        before = found[name]["operator"]
        if before != kinds[name]:
            problems.append(f'"{name}" is `fn.{kinds[name]}` and was `fn.{before}`')
    if problems:
        raise CheckpointError(
            f"The checkpoint comes from another pipeline: {'; '.join(problems)}. The readers, "
            "external sources and random operators must be the same; others may differ."
        )


def _listed(names: Collection[str]) -> str:
    return ", ".join(f'"{name}"' for name in sorted(names))
