"""Workers of a pipeline: its threads, or a worker process for each of them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from headrace.errors import ArgumentTypeError
from headrace.executor.processes.choice import (
    decodes_video,
    process_count,
    wanted,
    why_threads,
)
from headrace.graph.data_node import DataNode
from headrace.pipeline.input_queues import is_for_gpu
from headrace.tensors.gpu.device import GpuDevice

if TYPE_CHECKING:
    from headrace.executor.executor import Executor
    from headrace.executor.plan import Plan
    from headrace.executor.processes.pipeline_processes import WorkerProcesses
    from headrace.pipeline.settings import Settings


def prepare_processes(settings: Settings) -> None:
    """Start the server of worker processes where they are asked for, while the graph is defined."""
    if wanted(settings.workers) == "processes":
        from headrace.executor.processes.server_process import SERVER

        SERVER.start()


def end_processes() -> None:
    """End all worker processes, because the program ends. Pipelines were shut down before: what
    becomes of their samples does not matter.
    """
    module = sys.modules.get("headrace.executor.processes.server_process")
    if module is not None:
        module.SERVER.close()


def start_processes(
    settings: Settings,
    plan: Plan,
    readers: dict[int, Any],
    outputs: list[DataNode],
    device: GpuDevice | None,
    *,
    begins_early: bool,
    is_profiled: bool = False,
) -> WorkerProcesses | None:
    """The processes that carry samples; where there are none, `settings` say why.

    `begins_early`: whether iterations are begun as soon as a process has nothing to do.
    """
    num_threads = int(settings.num_threads or 1)
    settings.why_threads = why_threads(settings.workers, plan, readers, num_threads)
    if settings.why_threads:
        return None
    from headrace.executor.processes.graph import Graph
    from headrace.executor.processes.pipeline_processes import WorkerProcesses
    from headrace.executor.processes.worker_process import LostWorkerError

    graph = Graph(plan, readers, settings.fuse, settings.on_bad_sample, is_profiled)
    is_asked_for = wanted(settings.workers) == "processes"
    found = None
    try:
        found = WorkerProcesses(
            graph,
            outputs,
            num_threads if is_asked_for else process_count(num_threads),
            affinity=settings.affinity,
            timeout_seconds=settings.py_worker_timeout_seconds,
            device=device,
            is_asked_for=is_asked_for,
            begins_at_once=decodes_video(plan),
            begins_early=begins_early,
            calls_functions=settings.workers == "processes",
        )
        found.start()
    except ArgumentTypeError as error:
        settings.why_threads = str(error)
        return None
    except (OSError, MemoryError, LostWorkerError) as error:
        settings.why_threads = f"worker processes cannot be started here: {error}"
        if found is not None:
            found.close()
        return None
    for node in plan.fed_nodes:
        # What sources give is copied to where workers read it.
        pools = [
            found.pinned if found.pinned and is_for_gpu(plan, node, k) else found.pool
            for k in range(len(node.outputs))
        ]
        node.input_queue.place(
            None if device is None else device.runtime.device_id, node.device == "gpu", pools
        )
    return found


def what_carries(executor: Executor, settings: Settings) -> dict[str, Any]:
    """Return the entries of `Pipeline.counters` about workers."""
    if executor.carriers is not None:
        return executor.carriers
    processes = executor.processes
    why = settings.why_threads if processes is None else processes.why_threads
    functions = None if processes is None else processes.functions
    return {
        "workers": "threads" if why else "processes",
        "why_threads": why,
        "functions_not_in_workers": {} if functions is None else dict(functions.why_here),
    }
