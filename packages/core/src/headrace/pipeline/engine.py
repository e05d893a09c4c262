"""Running part of a built pipeline: readers, sources, the executor, and taken outputs."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from headrace.errors import CheckpointError, GpuNotAvailableError, UsageError
from headrace.executor.executor import Executor
from headrace.executor.fallback import tell
from headrace.executor.memory import PipelineMemory
from headrace.executor.plan import (
    batches_for_processes,
    batches_read_ahead,
    begins_early,
    check_constants,
    make_plan,
)
from headrace.executor.statistics import MemoryStatistics
from headrace.graph.cached import expand_caches
from headrace.graph.data_node import DataNode
from headrace.graph.fuse import merge_expressions
from headrace.graph.nodes import OpNode
from headrace.graph.on_cpu import on_cpu
from headrace.graph.transfers import insert_transfers
from headrace.pipeline.checkpointing import Checkpointing
from headrace.pipeline.input_queues import InputQueues
from headrace.pipeline.open_readers import OpenReaders
from headrace.pipeline.output_checks import OutputChecks
from headrace.pipeline.prefetch import Prefetch
from headrace.pipeline.presizing import iteration_estimate, reserve
from headrace.pipeline.profiled import describe, recorder_of
from headrace.pipeline.workers import start_processes
from headrace.tensors._repr import shape_range
from headrace.tensors.gpu.device import GpuDevice
from headrace.tensors.gpu.runtime import check_available
from headrace.tensors.gpu.tensor_list import TensorListGPU
from headrace.tensors.on_host import TensorListOnHost
from headrace.tensors.tensor_list import TensorListCPU

if TYPE_CHECKING:
    from headrace.executor.checkpoint import PipelineCheckpoint
    from headrace.executor.elsewhere import Elsewhere
    from headrace.executor.plan import Plan
    from headrace.pipeline.settings import Settings
    from headrace.pipeline.source_workers import SourceWorkers

    Batch = TensorListCPU | TensorListGPU

RUNNING: weakref.WeakSet[Any] = weakref.WeakSet()
"""Objects with an `executor` whose threads run."""


class Engine:
    """Runs the graph of one pipeline; its threads are started when it is made."""

    def __init__(
        self,
        settings: Settings,
        nodes: list[OpNode],
        outputs: list[DataNode],
        workers: SourceWorkers,
        *,
        reads_ahead: bool,
        elsewhere: Elsewhere | None = None,
    ) -> None:
        assert settings.batch_size is not None
        batch_size = settings.batch_size
        self.checkpointing = Checkpointing(settings, nodes)
        workers.start_processes(nodes, batch_size)
        run_nodes, run_outputs = placed(settings, *expand_caches(nodes, outputs))
        _check_gpu(settings, run_nodes)
        if settings.fuse:
            run_nodes, run_outputs = merge_expressions(run_nodes, run_outputs)
        check_constants(run_nodes)
        seeds = self.checkpointing.seeds(run_nodes, settings.seed)
        self.readers = OpenReaders(
            [node for node in run_nodes if node.schema.reader],
            seeds,
            batch_size,
            checkpointing=settings.enable_checkpointing,
        )
        plan = make_plan(
            *(run_nodes, run_outputs, seeds, self.readers.parsers(), self.readers.apart()),
            bytes_per_sample=settings.bytes_per_sample,
        )
        self.checks = OutputChecks(settings, len(outputs))
        self._stand_for_gpu: list[bool] = []
        """Of each output, whether it would be on the GPU that there is none of."""
        if settings.on_cpu_because:
            self._stand_for_gpu = [edge.device == "gpu" for edge in outputs]
        device = device_for(settings, plan)
        recorder = recorder_of(settings)
        memory = PipelineMemory(device)
        names = self.checkpointing.names
        self.queues = InputQueues(*(plan, batch_size, device, names, memory.host, recorder))
        workers.start_threads()
        processes = None
        reads_ahead = reads_ahead and settings.works_ahead
        if elsewhere is None:
            processes = start_processes(
                *(settings, plan, self.readers.by_node, run_outputs, device),
                begins_early=reads_ahead and begins_early(plan),
                is_profiled=recorder.is_on,
            )
        depth = settings.depth
        if reads_ahead:
            depth += batches_read_ahead(plan)
        scheduled = depth
        if reads_ahead and processes is not None:
            scheduled += batches_for_processes(plan, processes.count, batch_size, depth)
        make_executor: Callable[..., Executor] = partial(
            Executor, recorder=recorder, output_pool=settings.output_pool
        )
        if elsewhere is not None:
            scheduled = max(scheduled, elsewhere.batches_ahead)
            make_executor = partial(
                elsewhere.make_executor,
                outputs=run_outputs,
                taken=self.checkpointing.taken,
                recorder=recorder,
            )
        elif self.checkpointing.taken:
            raise CheckpointError(
                "The checkpoint was made by an iterator that hands batches over out of turn "
                "(`ordered=False` of `headrace.plugin.ray`); only one on a cluster can go on "
                "from it, whatever its `ordered`."
            )
        num_threads = int(settings.num_threads or 1) if processes is None else processes.count
        describe(*(recorder, settings, plan), threads=num_threads, processes=processes is not None)
        self.executor = make_executor(
            plan,
            self.readers.by_node,
            num_threads=num_threads,
            fuse=settings.fuse,
            on_bad_sample=settings.on_bad_sample,
            affinity=settings.affinity,
            device=device,
            depth=depth,
            most_ahead=scheduled,
            processes=processes,
            memory=memory,
        )
        limit = settings.memory_limit(memory, iteration_estimate(plan, batch_size))
        self.reserves = reserve(
            *(plan, batch_size, depth, memory, device),
            in_processes=processes is not None,
            keeps_outputs=settings.output_pool is None,
        )
        """Memory that is set aside for batches, as long as the pipeline lives."""
        self.memory_statistics: MemoryStatistics | None = None
        """Sizes of batches, where they are asked for."""
        if settings.enable_memory_stats:
            self.memory_statistics = MemoryStatistics(plan)
        number = self.checkpointing.resume(self.readers, self.queues)
        self.prefetch = Prefetch(
            *(self.executor, self.queues, settings.depth, number, limit),
            early=scheduled - settings.depth,
            waits=not settings.exec_async,
        )
        self.first_shapes: list[str] = []
        """Shapes of the samples of each output, in the first batch that was taken."""
        self.skipped = 0
        """Number of bad samples that were replaced in the outputs taken last."""
        self.draw_numbers: list[int] | None = None
        """`Iteration.draw_numbers` of these."""
        self.executor.start()
        RUNNING.add(self)

    def take(self, cuda_stream: Any, set_up: Callable[[], None] | None) -> tuple[Batch, ...]:
        """Wait for the outputs of the oldest iteration; the arguments are those of `run`."""
        iteration = self.prefetch.take(set_up)
        if self.memory_statistics is not None:
            self.memory_statistics.note(iteration)
        buffers = iteration.buffers
        batches = tuple([buffers[r].tensor_list() for r in self.executor.plan.outputs])
        if self._stand_for_gpu:
            batches = tuple(
                [
                    TensorListOnHost.of(batch) if stands else batch
                    for batch, stands in zip(batches, self._stand_for_gpu, strict=True)
                ]
            )
        self.checks.check(batches)
        if cuda_stream is not None:
            for batch in batches:
                batch._set_stream(cuda_stream)
        self.skipped = iteration.skipped
        self.draw_numbers = iteration.draw_numbers
        if not self.first_shapes:
            self.first_shapes = [shape_range(batch.shape()) for batch in batches]
        return batches

    def reset(self) -> None:
        """Begin the next epoch, if the data of an external source has come to its end."""
        if self.queues.ended:
            self.queues.reset()
            self.prefetch.begin_epoch()

    def restart_epoch(self, at_least: Mapping[str, int] | None = None) -> dict[str, int]:
        """Drop everything in progress and begin the next epoch, wherever the current one is."""
        self.prefetch.number -= self.executor.pending()
        shards = self.readers.next_epoch(self.executor.cancel(), at_least)
        self.queues.new_epoch()
        self.prefetch.begin_epoch()
        return shards

    def checkpoint(self, iterator: dict[str, Any] | None) -> PipelineCheckpoint:
        """A checkpoint after the outputs that were taken, with the state of the `iterator`."""
        return self.checkpointing.current(
            self.executor, self.readers, self.queues, self.prefetch, iterator
        )


def placed(
    settings: Settings, nodes: list[OpNode], outputs: list[DataNode]
) -> tuple[list[OpNode], list[DataNode]]:
    """The graph with copies between host and device; or on the CPU, where the user wants that."""
    reason = settings.on_cpu_because
    if not reason:
        return insert_transfers(nodes, outputs, outputs_on=settings.outputs_device)
    found = on_cpu(nodes, outputs, reason)
    if found[0] is not nodes:
        tell("The graph of a pipeline", reason)
    return found


def _check_gpu(settings: Settings, nodes: list[OpNode]) -> None:
    """Check that there is a GPU for the first node that needs one, if any does."""
    node = next((n for n in nodes if n.device != "cpu"), None)
    if node is None:
        return
    needs = "The pipeline requires a CUDA-capable GPU but"
    user = f"`{node.where().operator}`, created at {node.user_line}"
    try:
        check_available()
    except GpuNotAvailableError as error:
        raise GpuNotAvailableError(f"{needs} there is none for {user}. {error}") from error
    if settings.device_id is None:
        raise UsageError(
            f"{needs} has none (`device_id` is None) for {user}. Give the pipeline a `device_id`, "
            "or keep the data on the CPU."
        )


def device_for(settings: Settings, plan: Plan) -> GpuDevice | None:
    """The GPU, if the graph has work for one."""
    if not plan.streams:
        return None
    _check_gpu(settings, plan.nodes)
    from headrace.tensors.gpu.device import get_device

    assert settings.device_id is not None
    return get_device(settings.device_id).share()


def shut_down_all() -> None:
    """Stop the threads of all pipelines, without waiting for them, because the program ends."""
    for engine in list(RUNNING):
        engine.executor.shut_down_at_exit()
