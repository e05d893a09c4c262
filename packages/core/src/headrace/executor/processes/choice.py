"""Choice between threads and worker processes for carrying samples."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from headrace.config import WORKERS
from headrace.errors import ArgumentChoiceError
from headrace.operators.readers.index import FileIndex
from headrace.operators.readers.video_description import DESCRIBES
from headrace.operators.readers.video_listing import VideoIndex
from headrace.operators.support.registry import find

if TYPE_CHECKING:
    from headrace.executor.plan import Plan
    from headrace.graph.nodes import OpNode
    from headrace.operators.support.schema import OpSchema

CHOICES = ("threads", "processes")
_FEWEST = 2
"""Threads, and processors, from which on the engine takes processes by itself: two threads
wait for one another's interpreter, and do 0.6 to 0.8 of what two processes do with images, and as
much with audio."""
_PROCESSES_A_PROCESSOR = 2
"""More of them bring nothing, even where some wait for storage."""


def check_workers(workers: str | None) -> str | None:
    """`workers`, if a pipeline can have such."""
    if workers is not None and workers not in CHOICES:
        raise ArgumentChoiceError(
            f'`workers` is {workers!r}; it can be "threads", "processes", or None, which leaves '
            "the choice to the engine."
        )
    return workers


def wanted(workers: str | None) -> str:
    """Return the requested kind of worker: `workers`, else the environment's, which may be
    ``"auto"``: the engine chooses.
    """
    return workers or WORKERS.value()


def processors() -> int:
    """Number of processors that this process may use; on other systems than Linux, 1."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else 1


def process_count(num_threads: int) -> int:
    """Return the number of worker processes for that many threads."""
    return min(num_threads, max(_PROCESSES_A_PROCESSOR * processors(), _FEWEST))


def why_threads(workers: str | None, plan: Plan, readers: dict[int, Any], num_threads: int) -> str:
    """The reason for which samples are carried by threads; empty for worker processes."""
    choice = wanted(workers)
    if choice == "threads":
        return "as asked for"
    if choice == "auto" and not decodes_video(plan):
        if num_threads < _FEWEST:
            return (
                f"`num_threads` is {num_threads}; worker processes are worth it from {_FEWEST} on"
            )
        if processors() < _FEWEST:
            return (
                f"the program may use {processors()} processor; worker processes are worth it from "
                f"{_FEWEST} on"
            )
    if sys.platform != "linux" or not hasattr(os, "memfd_create"):
        return "worker processes need Linux, for shared memory without a name"
    if not sys.executable or getattr(sys, "frozen", False):
        return "worker processes need a Python interpreter of their own, and there is none to start"
    nodes = _sample_nodes(plan)
    if not nodes:
        return "no operator on the CPU works on single samples"
    if plan.streams and all(n.schema.reader and not _decodes_video(n) for n in nodes):
        return "nothing but reading is done on the CPU, which threads do without the interpreter"
    return _why_not_chosen(plan, nodes, readers) if choice == "auto" else ""


def decodes_video(plan: Plan) -> bool:
    """Return True if the CPU decodes videos, whose library may crash at one: so processes carry the
    samples from the first one on, however few threads there are.
    """
    return any(map(_decodes_video, _sample_nodes(plan)))


def _decodes_video(node: OpNode) -> bool:
    return _hands_over_videos(node.schema, node.args)


def _hands_over_videos(schema: OpSchema, args: Mapping[str, Any]) -> bool:
    """Return True if an operator, or a reader given to it, hands videos to FFmpeg."""
    if args.get(DESCRIBES):
        return False
    given = () if schema.given_readers is None else schema.given_readers(args)
    return schema.decodes_video or any(
        _hands_over_videos(find(each["operator"]), each["arguments"]) for each in given
    )


def _sample_nodes(plan: Plan) -> list[OpNode]:
    return [n for s in plan.stages if s.device == "cpu" for n in s.sample_nodes]


def _why_not_chosen(plan: Plan, nodes: list[OpNode], readers: dict[int, Any]) -> str:
    """Return the reason why the engine does not choose processes by itself, or ""."""
    for node in nodes:
        if not node.schema.is_librarys:
            return (
                f"`{node.schema.name}` is an operator of the program, and might use what the "
                'program has in its memory; `workers="processes"` says that it does not'
            )
    for reader in readers.values():
        kind = _kind_of_program(reader.index)
        if kind:
            return f"only this process may know how to read addresses that begin with {kind}://"
    if any(map(_decodes_video, nodes)):
        return ""
    sampled = set(map(id, nodes))
    known: set[tuple[int, int]] = set()
    """Outputs computed for whole batches, and columns of readers."""
    for node in plan.nodes:
        if node.schema.reader:
            count = len(readers[id(node)].index.columns)
            first = len(node.outputs) - count
            known |= {(id(node), first + k) for k in range(count)}
        elif node.input_queue is None and all(
            (id(edge.source), edge.index) in known for edge in node.sources
        ):
            known |= {(id(node), k) for k in range(len(node.outputs))}
        elif id(node) in sampled:
            return ""
    return "nothing but reading is done on the CPU, and what is worked out for whole batches"


def _kind_of_program(index: Any) -> str:
    """A kind of addresses, like ``memory``, that fsspec may know from this program alone."""
    for part in index.indices:
        if kind := _kind_of_program(part):
            return kind
    if not isinstance(index, (FileIndex, VideoIndex)) or getattr(index, "local", None) is not None:
        return ""
    paths = (getattr(index, "root", ""), *index.paths)
    kinds = {path.partition("://")[0] for path in paths if "://" in path}
    kinds.discard("file")
    if not kinds:
        return ""
    from fsspec.config import conf
    from fsspec.registry import known_implementations, registry

    for kind in sorted(kinds):
        usual = known_implementations.get(kind, {}).get("class", "")
        loaded = registry.get(kind)
        name = usual if loaded is None else f"{loaded.__module__}.{loaded.__qualname__}"
        if kind == "memory" or kind in conf or not usual or name != usual:
            return kind
    return ""
