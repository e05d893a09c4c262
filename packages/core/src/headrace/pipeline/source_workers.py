"""The processes and threads that run a pipeline's parallel external sources."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.graph.nodes import OpNode
from headrace.operators.support.external.parallel.input_queue import ParallelInputQueue

if TYPE_CHECKING:
    from headrace.pipeline.settings import Settings


class SourceWorkers:
    """Starts the workers of a pipeline, and knows them."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._processes: Any = None
        self._threads: Any = None
        self._started = False
        self._queues: list[tuple[ParallelInputQueue, str]] = []
        self._batch_size = 1

    def start_processes(self, nodes: list[OpNode], batch_size: int) -> None:
        """Start the processes for the sources among `nodes`. Does nothing a second time."""
        if self._started:
            return
        self._queues = [
            (node.input_queue, f'the external source "{node.name}", created at {node.user_line}')
            for node in nodes
            if isinstance(node.input_queue, ParallelInputQueue)
        ]
        self._batch_size = batch_size
        if self._queues:
            from headrace.executor.sources.start import start_processes

            settings = self._settings
            self._processes = start_processes(
                self._queues,
                settings.py_num_workers,
                start_method=settings.py_start_method,
                pickler=settings.py_callback_pickler,
                timeout_seconds=settings.py_worker_timeout_seconds,
            )
        self._started = True

    def start_threads(self) -> None:
        """Start the threads, now that the sources know where their data is wanted."""
        if self._queues and self._threads is None:
            from headrace.executor.sources.start import start_threads

            self._threads = start_threads(self._queues, self._settings.py_num_workers)

    def pids(self) -> list[int]:
        """Numbers of the worker processes."""
        return [] if self._processes is None else list(self._processes.pids())

    def shared_memory(self) -> dict[str, list[int]]:
        """Sizes of the pieces of shared memory, in bytes, and how much of each a sample has."""
        if self._processes is None:
            return {"capacities": [], "per_sample_capacities": []}
        sizes = list(self._processes.shared_memory_sizes())
        pieces = 1
        if all(queue.traits.indexed and not queue.traits.batch for queue, _ in self._queues):
            pieces = self._processes.size
        samples = -(-self._batch_size // pieces)
        return {"capacities": sizes, "per_sample_capacities": [s // samples for s in sizes]}

    def close(self) -> None:
        """End all of them."""
        for pool in (self._processes, self._threads):
            if pool is not None:
                pool.close()
        for queue, _ in self._queues:
            queue.drop()  # it may be in a cycle, and batches are large
