"""Starts the workers of all parallel sources of a pipeline."""

from __future__ import annotations

import os
import warnings
from typing import TYPE_CHECKING, Any

from headrace.errors import NotYetSupportedError, UsageError
from headrace.graph.user_line import stack_level
from headrace.operators.support.external.parallel.workers import (
    SourceEntry,
    Workers,
    useful_workers,
)

if TYPE_CHECKING:
    from headrace.operators.support.external.parallel.input_queue import ParallelInputQueue


def start_threads(queues: list[tuple[ParallelInputQueue, str]], count: int) -> Workers | None:
    """Threads for those of `queues` (each with its place) that want threads."""
    from headrace.executor.sources.thread_pool import SourceThreads

    chosen = [(queue, where) for queue, where in queues if queue.threads]
    if not chosen:
        return None
    entries = _entries(chosen)
    pool = SourceThreads(entries, _count(entries, count))
    for number, (queue, _) in enumerate(chosen):
        pool.set_owner(number, queue)
    _attach(chosen, pool)
    return pool


def start_processes(
    queues: list[tuple[ParallelInputQueue, str]],
    count: int,
    *,
    start_method: str,
    pickler: Any,
    timeout_seconds: float | None,
) -> Any:
    """Processes for those of `queues` (each with its place) that want processes."""
    chosen = [(queue, where) for queue, where in queues if not queue.threads]
    if not chosen:
        return None
    if os.name != "posix":
        raise NotYetSupportedError(
            "Parallel external sources run in processes on Linux and macOS only; use "
            'parallel="threads" here.'
        )
    from headrace.executor.sources.process_pool import ProcessPool

    entries = _entries(chosen)
    pool = ProcessPool(
        entries,
        _count(entries, count),
        start_method=start_method,
        pickler=pickler,
        timeout_seconds=timeout_seconds,
    )
    _attach(chosen, pool)
    return pool


def _entries(queues: list[tuple[ParallelInputQueue, str]]) -> list[SourceEntry]:
    return [SourceEntry(queue.source, queue.traits, where) for queue, where in queues]


def _count(entries: list[SourceEntry], wanted: int) -> int:
    if wanted < 1:
        raise UsageError(
            "The external source cannot run in parallel mode without Python workers pool, and "
            f"`py_num_workers` is {wanted}. Give it at least one, or leave `parallel` out."
        )
    count = useful_workers(entries, wanted)
    if count < wanted:
        warnings.warn(
            f"Only {count} of {wanted} workers (`py_num_workers`) are started: the parallel "
            "external sources are iterables, each of which belongs to one worker.",
            UserWarning,
            stacklevel=stack_level(),
        )
    return count


def _attach(queues: list[tuple[ParallelInputQueue, str]], workers: Workers) -> None:
    given = 0
    for number, (queue, _) in enumerate(queues):
        places: list[int] = []
        if not queue.traits.indexed:
            units = max(1, queue.traits.shards)
            places = [(given + k) % workers.size for k in range(units)]
            given += units
        queue.attach(workers, number, places)
