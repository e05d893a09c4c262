"""The `Pipeline`: a graph of operators and the engine that runs it ahead of its consumer."""

from __future__ import annotations

import atexit
import weakref
from collections import deque
from typing import TYPE_CHECKING, Any

from penstock.errors import (
    ArgumentTypeError,
    NoReaderError,
    OutOfRangeError,
    UsageError,
    did_you_mean,
)
from penstock.executor.executor import Executor
from penstock.executor.iteration import Iteration
from penstock.executor.plan import batches_read_ahead, make_plan
from penstock.executor.threads import join_all
from penstock.graph.data_node import DataNode
from penstock.graph.fuse import merge_expressions
from penstock.graph.transfers import insert_transfers
from penstock.pipeline.feeding import Feeding
from penstock.pipeline.output_checks import check_output, per_output
from penstock.pipeline.resumable import ResumablePipeline
from penstock.pipeline.settings import Settings
from penstock.pipeline.workers import prepare_processes, start_processes, what_carries
from penstock.tensors._repr import shape_range
from penstock.tracebacks import public_methods
from penstock.types import (
    DALIDataType,
    DataTypeLike,
    OperatorConcurrency,
    PipelineAPIType,
    StreamPolicy,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from penstock.executor.bad_samples import BadSample
    from penstock.executor.plan import Plan
    from penstock.tensors.gpu.device import Device
    from penstock.tensors.gpu.tensor_list import TensorListGPU
    from penstock.tensors.tensor_list import TensorListCPU

    Batch = TensorListCPU | TensorListGPU

_running: weakref.WeakSet[Pipeline] = weakref.WeakSet()

EXIT_SECONDS = 5.0
"""How long the end of the program waits for operators that are at work."""


@public_methods
class Pipeline(ResumablePipeline):
    """Runs a graph of operators, batch after batch, on threads of its own.

    Parameters
    ----------
    batch_size : int
        Largest number of samples in a batch.
    num_threads : int, optional
        Worker threads; all processors available to the process when not given.
    device_id : int, optional
        Number of the GPU to use; `None` for a pipeline on the CPU.
    seed : int, optional
        Seed of all random operators without one of their own. The same seed gives the same bytes,
        whatever the number of threads or the prefetch depth. A new one in each run when not given.
    exec_pipelined, exec_async : bool
        Without either, nothing is worked on ahead.
    prefetch_queue_depth : int or dict
        Number of batches worked on ahead.
    bytes_per_sample, max_streams, default_cuda_stream_priority, stream_policy, concurrency
        DALI's hints for memory and the GPU; they change no result.
    set_affinity : bool
        Bind each worker thread to a processor.
    enable_memory_stats : bool
        Add memory figures to `executor_statistics`.
    enable_checkpointing : bool
        Allow `checkpoint` to be called, and to be given. The order of readers with
        ``shuffle_after_epoch`` is another one then, from the second epoch on, as in DALI.
    checkpoint : bytes, optional
        What the method `checkpoint` of such a pipeline has returned: go on behind the batches that
        had been taken by then.
    py_num_workers, py_start_method, py_callback_pickler
        Workers of parallel external sources: their number; how processes are started (``"fork"``,
        ``"spawn"``, ``"forkserver"``); what packs the sources for those that are started anew.
    py_worker_timeout_seconds : float, optional
        How long such a process may neither return nor compute; any time if None.
    output_dtype, output_ndim, output_layout
        What outputs must be, one value for all or one for each; checked in every iteration.
        Element types as `types.as_data_type` takes them.
    exec_dynamic : bool, optional
        DALI's choice of executor. Here there is one, whose outputs always stay valid.
        `experimental_exec_dynamic` is its old name.
    fuse : bool
        Merge neighbouring operators where the result stays bit-identical. Off for debugging.
    on_bad_sample : {"raise", "skip", "replace"}
        What to do with a sample that cannot be read, decoded or processed: raise an error; drop it
        and refill the batch from the reader; or use a good sample from before it, of the batch or,
        where all of that is bad, of the data set. Its row takes the place of the bad one in all
        outputs, also those of external sources and random operators. See `bad_samples`.
    workers : {"threads", "processes"}, optional
        What carries samples through operators on the CPU: threads, or as many worker processes,
        which share no interpreter. A graph that cannot travel stays in threads, as
        `executor_statistics` says. ``PENSTOCK_WORKERS`` decides where it is not given.
    """

    def __init__(
        self,
        batch_size: int | None = None,
        num_threads: int | None = None,
        device_id: int | None = None,
        seed: int | None = None,
        exec_pipelined: bool = True,
        prefetch_queue_depth: int | dict[str, int] = 2,
        exec_async: bool = True,
        bytes_per_sample: int = 0,
        set_affinity: bool = False,
        max_streams: int | None = None,
        default_cuda_stream_priority: int | None = None,
        *,
        enable_memory_stats: bool = False,
        enable_checkpointing: bool = False,
        checkpoint: bytes | None = None,
        py_num_workers: int = 1,
        py_start_method: str = "fork",
        py_callback_pickler: Any = None,
        py_worker_timeout_seconds: float | None = 60.0,
        output_dtype: DataTypeLike | Sequence[DataTypeLike | None] | None = None,
        output_ndim: int | Sequence[int | None] | None = None,
        output_layout: str | Sequence[str | None] | None = None,
        exec_dynamic: bool | None = None,
        experimental_exec_dynamic: bool | None = None,
        stream_policy: StreamPolicy | None = None,
        concurrency: OperatorConcurrency | None = None,
        fuse: bool = True,
        on_bad_sample: str = "raise",
        workers: str | None = None,
    ) -> None:
        given = {k: v for k, v in locals().items() if k not in ("self", "__class__")}
        self._settings = Settings(**given)
        self._begin_definition()
        self._expected: list[tuple[Any, ...]] = []
        self._api: PipelineAPIType | None = None
        self._api_checked = True
        self._begin_running()

    def _begin_running(self) -> None:
        """Set what is known about running to what it is before the first iteration."""
        self._depth = self._settings.depth
        """Number of batches that are worked on ahead."""
        self._owed = 0
        """Iterations that were asked for while an external source had not been fed."""
        self._prefetched = False
        self._retrying = False
        self._is_set_up = False
        """Whether `iter_setup` was called for the next iteration."""
        self._in_use: deque[tuple[Batch, ...]] = deque()
        self._first_shapes: list[str] = []
        """Shapes of the samples of each output, in the first batch that was taken."""
        self._skipped_in_last_outputs = 0
        self._draw_numbers_in_last_outputs: list[int] | None = None

    # -- building ----------------------------------------------------------------------------

    def build(self) -> None:
        """Check the graph, open its readers and start the threads. Does nothing a second time."""
        if self._executor is not None:
            self._executor.check_process()
            return
        with self._building:
            if self._executor is None:
                self._build()

    def _build(self) -> None:
        settings = self._settings
        nodes = self._define()
        prepare_processes(settings)
        self._begin_resuming(nodes)
        self._py_pool.start_processes(nodes, self.max_batch_size)
        assert self._outputs is not None
        run_nodes, run_outputs = insert_transfers(nodes, self._outputs)
        if settings.fuse:
            run_nodes, run_outputs = merge_expressions(run_nodes, run_outputs)
        seeds = self._seeds(run_nodes)
        for node in run_nodes:
            if node.schema.reader:
                self._readers[id(node)] = self._opened(node, seeds)
        parsers = {k: len(r.parser_inputs()) for k, r in self._readers.items() if r.parses}
        plan = make_plan(run_nodes, run_outputs, seeds, parsers)
        count = len(self._outputs)
        asked = settings.output_dtype, settings.output_ndim, settings.output_layout
        self._expected = list(zip(*(per_output(each, count) for each in asked), strict=True))
        self._checks_outputs = any(each != (None, None, None) for each in self._expected)
        device = self._device(plan)
        self._feeding = Feeding(plan, self.max_batch_size, device, self._checkpoint_names)
        self._py_pool.start_threads()
        if settings.works_ahead and type(self).iter_setup is Pipeline.iter_setup:
            self._depth += batches_read_ahead(plan)
        executor = Executor(
            plan,
            self._readers,
            num_threads=int(settings.num_threads or 1),
            fuse=settings.fuse,
            on_bad_sample=settings.on_bad_sample,
            set_affinity=settings.set_affinity,
            device=device,
            depth=self._depth,
            processes=start_processes(settings, plan, self._readers, run_outputs),
        )
        self._resume(plan)
        executor.start()
        self._executor = executor
        _running.add(self)

    def _device(self, plan: Plan) -> Device | None:
        """The GPU, if the graph has work for one."""
        if not plan.streams:
            return None
        if self._settings.device_id is None:
            node = next(n for n in plan.nodes if n.device != "cpu")
            raise UsageError(
                f"The pipeline has no GPU (`device_id` is None), but `{node.where().operator}`, "
                f"created at {node.user_line}, needs one. Give the pipeline a `device_id`, or keep "
                "the data on the CPU."
            )
        from penstock.tensors.gpu.device import get_device

        return get_device(self._settings.device_id)

    # -- running -----------------------------------------------------------------------------

    def run(self, cuda_stream: Any = None, /, **pipeline_inputs: Any) -> tuple[Batch, ...]:
        """Return the outputs of the next iteration, and start on the one behind those in progress.

        Parameters
        ----------
        cuda_stream
            Stream on which outputs on the GPU are going to be used: work that it is given from now
            on waits for them, and the host does not. A number, or a stream of PyTorch or CuPy.
            Must be `None` on the CPU.
        **pipeline_inputs
            Batches for external sources, by their names.

        Raises
        ------
        StopIteration
            At the end of the data of an external source.
        """
        self.build()
        if cuda_stream is not None and self._settings.device_id is None:
            raise ArgumentTypeError(
                f"Cannot interpret the object {cuda_stream!r} as a CUDA stream of a pipeline "
                "on the CPU; pass batches by name: run(name=batch)."
            )
        self._latch_api(PipelineAPIType.BASIC)
        self._feeding.feed_all(pipeline_inputs)
        self._schedule()
        return self._take_and_hold(cuda_stream)

    def schedule_run(self) -> None:
        """Start on a further iteration; the first call starts as many as are worked on ahead.

        Raises
        ------
        StopIteration
            Never here: the end of the data shows when outputs are taken.
        """
        self.build()
        if self._api is not PipelineAPIType.ITERATOR:
            self._latch_api(PipelineAPIType.SCHEDULED)
        self._schedule()

    def share_outputs(self, cuda_stream: Any = None) -> tuple[Batch, ...]:
        """Wait for the oldest scheduled iteration and return its outputs.

        They stay valid for as long as they are referred to. `cuda_stream` is that of `run`.
        """
        self.build()
        if self._api is not PipelineAPIType.ITERATOR:
            self._latch_api(PipelineAPIType.SCHEDULED)
        return self._take(cuda_stream)

    def release_outputs(self) -> None:
        """Let go of the outputs that were shared first; does nothing if there are none."""
        if self._in_use:
            self._in_use.popleft()

    def outputs(self, cuda_stream: Any = None) -> tuple[Batch, ...]:
        """Release the outputs shared before and share the next ones; `cuda_stream` as in `run`."""
        self.build()
        if self._api is not PipelineAPIType.ITERATOR:
            self._latch_api(PipelineAPIType.SCHEDULED)
        return self._take_and_hold(cuda_stream)

    def _schedule(self) -> None:
        if not self._prefetched:
            self._prefetched = True
            self._owed += self._depth
        elif not (self._retrying and self._owed):
            self._owed += 1
        self._retrying = True  # a source that raises is asked again for the same iteration
        self._schedule_owed()
        self._retrying = False

    def _schedule_owed(self, *, wait: bool = True) -> None:
        """Schedule what was asked for, as far as external sources have data.

        Without `wait`, nothing is done while this is being done already, be it by another thread or
        further up in this one: a source, or `iter_setup`, may call `feed_input`.
        """
        lock = self._scheduling
        try:
            if wait:
                with lock:  # not `acquire`, behind which a Ctrl-C would leave it locked
                    self._schedule_while_fed()
            elif lock.acquire(blocking=False):
                try:
                    self._schedule_while_fed()
                finally:
                    lock.release()
        finally:
            self._feeding.note_change()

    def _schedule_while_fed(self) -> None:
        executor = self._executor
        assert executor is not None
        while self._owed and not self._feeding.ended:
            try:
                self._set_up()
                if self._feeding.starving():
                    break
                size, fed = self._feeding.collect()
            except StopIteration:
                self._feeding.ended = True
                break
            executor.schedule(Iteration(self._iteration, size, fed, self._feeding.before))
            self._iteration += 1
            self._owed -= 1
            self._is_set_up = False

    def _set_up(self) -> None:
        """Call `iter_setup`, once for each iteration, however often the rest is tried again."""
        if not self._is_set_up and type(self).iter_setup is not Pipeline.iter_setup:
            self.iter_setup()
            self._is_set_up = True

    def iter_setup(self) -> None:
        """Called before each iteration is scheduled; for sub-classes that feed data so.

        Raises
        ------
        StopIteration
            By sub-classes, to end the epoch.
        """

    def _take_and_hold(self, cuda_stream: Any = None) -> tuple[Batch, ...]:
        self.release_outputs()
        return self._take(cuda_stream)

    def _take(self, cuda_stream: Any = None) -> tuple[Batch, ...]:
        executor = self._executor
        assert executor is not None
        if self._owed:
            self._schedule_owed()
        while True:
            seen = self._feeding.changes
            if executor.pending():
                break
            if self._feeding.ended or not self._owed:
                self._feeding.warn_of_empty_epoch()
                raise StopIteration
            starving = self._feeding.starving()
            if starving and self._feeding.may_wait():
                self._feeding.wait_for_change(seen)
            elif starving:
                self._owed = 0
                raise OutOfRangeError(
                    f"The external source{'s' if len(starving) > 1 else ''} "
                    f"{', '.join(map(repr, starving))} had no data for this iteration: call "
                    "`feed_input` before each run."
                )
            self._schedule_owed()
        iteration = executor.take()
        buffers = iteration.buffers
        batches = tuple([buffers[r].tensor_list() for r in executor.plan.outputs])
        if self._checks_outputs:
            for number, (batch, expected) in enumerate(zip(batches, self._expected, strict=True)):
                check_output(number, batch, *expected)
        if cuda_stream is not None:
            for batch in batches:
                batch._set_stream(cuda_stream)
        self._skipped_in_last_outputs = iteration.skipped
        self._draw_numbers_in_last_outputs = iteration.draw_numbers
        if not self._first_shapes:
            self._first_shapes = [shape_range(batch.shape()) for batch in batches]
        self._in_use.append(batches)
        return batches

    def reset(self) -> None:
        """Begin the next epoch, after the data of an external source has come to its end."""
        self.build()
        if self._feeding.ended:
            self._feeding.reset()
            self._owed = 0
            self._prefetched = False

    def _restart_epoch(self, at_least: Mapping[str, int] | None = None) -> dict[str, int]:
        """Drop everything in progress and begin the next epoch, wherever the current one is.

        Parameters
        ----------
        at_least
            By the names of readers, the number of the first epoch that may begin now.

        Returns
        -------
        By the names of the readers, the shards they read now.
        """
        self.build()
        executor = self._executor
        assert executor is not None
        self._iteration -= executor.pending()
        states = executor.cancel()
        shards = {}
        for node in executor.plan.readers:
            reader = self._readers[id(node)]
            if states is not None:
                reader.restore(states[id(node)])
            shards[node.name] = reader.next_epoch((at_least or {}).get(node.name, 0))
        self._feeding.new_epoch()
        self._owed = 0
        self._prefetched = False
        return shards

    def _reader_epoch(self, name: str) -> int:
        """Number of the epoch that reader `name` is in."""
        assert self._executor is not None
        readers = self._executor.plan.readers
        return next(int(self._readers[id(n)].epoch) for n in readers if n.name == name)

    def empty(self) -> bool:
        """Whether no iteration is scheduled whose outputs were not taken."""
        return self._executor is None or self._executor.pending() == 0

    def feed_input(
        self,
        data_node: DataNode | str,
        data: Any,
        layout: str | None = None,
        cuda_stream: Any = None,
        use_copy_kernel: bool = False,
    ) -> None:
        """Give a batch to an external source without a `source`.

        Parameters
        ----------
        data_node
            The source's edge or name.
        data
            An array whose outermost dimension is the batch, or a list of samples.
        layout
            Layout of the samples.
        cuda_stream
            Stream that writes data on the GPU, where the data does not say: a number, or a stream
            of PyTorch or CuPy. -1 if it is written; it then has been copied when this returns.
        use_copy_kernel
            DALI's hint how to copy data on the GPU; there is one way here.
        """
        self.build()
        if isinstance(data_node, str):
            name = data_node
        elif isinstance(data_node, DataNode):
            name = data_node.source.name if data_node.source is not None else data_node.name
        else:
            raise ArgumentTypeError(
                f"Expected the name of an external source or its `DataNode`, got {data_node!r}."
            )
        feed = self._feeding.feed(name)
        feed.append(feed.prepare(data, layout, cuda_stream))
        self._feeding.note_change()
        self._schedule_owed(wait=False)

    def input_feed_count(self, input_name: str) -> int:
        """How many batches the source `input_name` is fed ahead at most."""
        self.build()
        self._feeding.feed(input_name)
        return self._settings.queue_size

    # -- which way of running is in use ---------------------------------------------------------

    def enable_api_check(self, enable: bool) -> None:
        """Forbid (`enable`) or allow to mix `run`, the scheduling calls and iterators."""
        self._api_checked = enable

    def _latch_api(self, api: PipelineAPIType) -> None:
        if self._api is None:
            self._api = api
        elif self._api is not api and self._api_checked:
            raise UsageError(
                f"Mixing pipeline API type. Currently used: {self._api}, but trying to use {api}. "
                "Use one of `run`, `schedule_run`/`share_outputs`/`release_outputs`, or an "
                "iterator; `enable_api_check(False)` lifts this check."
            )

    # -- readers ---------------------------------------------------------------------------------

    def epoch_size(self, name: str | None = None) -> Any:
        """Padded number of samples in an epoch of reader `name`, or of all readers by name."""
        meta = self.reader_meta(name)
        if name is not None:
            return meta["epoch_size_padded"]
        return {k: m["epoch_size_padded"] for k, m in meta.items()}

    def reader_meta(self, name: str | None = None) -> dict[str, Any]:
        """Sizes and shards of reader `name`, or of all readers by name."""
        self.build()
        assert self._executor is not None
        readers = self._executor.plan.readers
        named = {node.name: self._readers[id(node)].meta() for node in readers}
        if name is None:
            return named
        if name not in named:
            raise NoReaderError(
                f"Operator {name} not found or does not expose valid metadata."
                f"{did_you_mean(str(name), named)} Readers of this pipeline: "
                f"{', '.join(named) or 'none'}. Name one with `name=`."
            )
        return dict(named[name])

    # -- what is known about the pipeline ----------------------------------------------------------

    @property
    def bad_samples(self) -> list[BadSample]:
        """Samples that were skipped or replaced so far: source, operator, reason.

        Those of iterations that are worked on ahead are among them; see `BadSample.iteration`.
        """
        return [] if self._executor is None else list(self._executor.bad_samples)

    def executor_statistics(self) -> dict[str, Any]:
        """Counters since the build, times in seconds; and why ``workers`` are threads, if they are.

        ``consumer_wait_seconds`` near zero says that the pipeline keeps up with its consumer.
        """
        if self._executor is None:
            return {}
        found: dict[str, Any] = {**self._executor.statistics.as_dict()}
        found |= what_carries(self._executor, self._settings)
        if self._settings.enable_memory_stats:
            from penstock.tensors.pool import HOST_POOL

            found["host_pool"] = HOST_POOL.stats()
        return found

    def output_dtype(self) -> list[DALIDataType | None]:
        """Demanded element type of each output; `None` where any will do."""
        self.build()
        return [e[0] for e in self._expected]

    def output_ndim(self) -> list[int | None]:
        """Demanded number of dimensions of each output; `None` where any will do."""
        self.build()
        return [e[1] for e in self._expected]

    @property
    def num_outputs(self) -> int:
        """Number of outputs."""
        self.build()
        return len(self._outputs or ())

    # -- end ---------------------------------------------------------------------------------

    def _shutdown(self) -> None:
        executor, self._executor = self._executor, None
        if executor is not None:
            executor.shutdown()
            self._py_pool.close()

    def __del__(self) -> None:
        if getattr(self, "_executor", None) is not None:
            self._shutdown()
        elif hasattr(self, "_py_pool"):
            self._py_pool.close()


@atexit.register
def _shut_down_all() -> None:
    # Threads that still run while the interpreter is torn down could crash it; but an operator that
    # never returns must not keep the program from ending.
    for pipeline in list(_running):
        if pipeline._executor is not None:
            pipeline._executor.shut_down_at_exit()
    join_all(EXIT_SECONDS)
