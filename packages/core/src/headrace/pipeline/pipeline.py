"""The `Pipeline`: a graph of operators and the engine that runs it ahead of its consumer."""

from __future__ import annotations

import atexit
import threading
import weakref
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, Self

from headrace.errors import ArgumentTypeError
from headrace.executor.threads import join_all
from headrace.graph import scope
from headrace.graph.data_node import DataNode
from headrace.graph.misuse import explain
from headrace.graph.nodes import OpNode
from headrace.pipeline.checkpointing import check_enabled, write_whole
from headrace.pipeline.engine import Engine, shut_down_all
from headrace.pipeline.graph_definition import GraphDefinition
from headrace.pipeline.input_queues import source_name
from headrace.pipeline.inspection import Inspection
from headrace.pipeline.old_calls import OldCalls
from headrace.pipeline.open_readers import are_lazy
from headrace.pipeline.outputs import no_outputs
from headrace.pipeline.printing import pipeline_html, pipeline_line, pipeline_text
from headrace.pipeline.properties import SettingsProperties
from headrace.pipeline.serialization import Serialization
from headrace.pipeline.settings import Settings
from headrace.pipeline.source_workers import SourceWorkers
from headrace.pipeline.ways import WaysOfRunning
from headrace.pipeline.workers import end_processes, prepare_processes
from headrace.tracebacks import public_methods
from headrace.types import (
    DataTypeLike,
    OperatorConcurrency,
    PipelineAPIType,
    StreamPolicy,
)

if TYPE_CHECKING:
    import os

    from headrace.executor.checkpoint import PipelineCheckpoint
    from headrace.executor.elsewhere import Elsewhere
    from headrace.executor.executor import Executor
    from headrace.pipeline.engine import Batch
    from headrace.profiling.profile import Profile

_by_scope: weakref.WeakValueDictionary[int, Pipeline] = weakref.WeakValueDictionary()
"""Pipelines by ``id(scope)`` of the scope that they define their graph in."""

EXIT_SECONDS = 5.0
"""Time the end of the program waits for operators at work."""


@public_methods
class Pipeline(SettingsProperties, Inspection, Serialization, WaysOfRunning, OldCalls):
    """Runs a graph of operators, batch after batch, on threads of its own.

    Parameters
    ----------
    batch_size : int
        Largest number of samples in a batch.
    num_threads : int, optional
        Worker threads; all processors available to the process when not given.
    device_id : int or "auto", optional
        Number of the GPU to use; `None` for a pipeline on the CPU. "auto" is the current GPU or,
        without one, the CPU for whatever asks for a GPU, as with ``HEADRACE_GPU=never``.
    seed : int, optional
        Seed of all random operators without one of their own. The same seed gives the same bytes,
        whatever the number of threads or the prefetch depth. A new one in each run when not given.
    exec_pipelined, exec_async : bool
        Without the first, one batch at a time is worked on; without the second, calls wait for it.
    prefetch_queue_depth : int or dict
        Number of batches worked on ahead; or, with the keys "cpu_size" and "gpu_size", that of
        each stage, of which the greater one counts.
    bytes_per_sample : int
        About how many bytes a sample takes, for each output of an operator that has no
        `bytes_per_sample_hint`: so much memory is set aside when the pipeline is built.
    max_streams, default_cuda_stream_priority, stream_policy, concurrency
        DALI's hints for the GPU; they change no result.
    set_affinity : bool
        Bind workers to processors: the first ones to those that ``HEADRACE_AFFINITY_MASK`` or
        ``DALI_AFFINITY_MASK`` lists, as "0,2,4,6", each to one; all others to those near the GPU.
    enable_memory_stats : bool
        Have `executor_statistics` tell the memory of each operator.
    enable_checkpointing : bool
        Allow `checkpoint` to be called, and to be given. The order of readers with
        ``shuffle_after_epoch`` is another one then, from the second epoch on, as in DALI.
    checkpoint : bytes, optional
        State from the method `checkpoint` of such a pipeline: continue after the batches taken by
        then.
    py_num_workers, py_start_method, py_callback_pickler
        Workers of parallel external sources: their number; how processes are started (``"fork"``,
        ``"spawn"``, ``"forkserver"``); what packs the sources for those that are started anew.
    py_worker_timeout_seconds : float, optional
        Time such a process, or one of ``workers="processes"``, may neither return nor compute;
        any time if None.
    output_dtype, output_ndim, output_layout
        Requirements on outputs, one value for all or one for each; checked in every iteration.
        Element types as `types.as_data_type` takes them.
    exec_dynamic : bool, optional
        DALI's choice of executor. Here there is one, whose outputs always stay valid.
        `experimental_exec_dynamic` is its old name.
    fuse : bool
        Merge neighbouring operators where the result stays bit-identical. Off for debugging.
    on_bad_sample : {"raise", "skip", "replace"}
        Treatment of a sample that cannot be read, decoded or processed: raise an error; drop it
        and refill the batch from the reader; or use a good sample from before it, of the batch or,
        where all of that is bad, of the data set. Its row takes the place of the bad one in all
        outputs, also those of external sources and random operators. See `bad_samples`.
    workers : {"threads", "processes"}, optional
        Carriers of samples through operators on the CPU: threads, or as many worker processes,
        which share no interpreter; all pipelines of a program share them. A graph that cannot
        travel stays in threads, as `counters` says. Where it is not given,
        ``HEADRACE_WORKERS`` decides, and else the engine: processes from two threads and
        processors on, where all operators are the library's. Given here, ``"processes"`` call the
        functions of `fn.python_function`, too, where these can be pickled.
    random_numbers : {"dali"}, optional
        Random operators draw the numbers that DALI draws for the same seeds, given or not.
    profile : path or headrace.profiling.Profile, optional
        Record what the pipeline spends its time on, and when it ends, write a page of HTML to this
        path, and a timeline beside it; see `headrace.profile`.
    memory_limit_bytes : int or dict, optional
        Memory that batches may take: of the host and of the GPU, each, or as a dictionary with
        the keys ``"host"`` and ``"device"``. Where batches in progress, those that wait to be
        taken, those that the user still has, and one more would exceed it, nothing is begun until
        the next batch is asked for. There is always one in progress, however large it is.
    """

    def __init__(
        self,
        batch_size: int | None = None,
        num_threads: int | None = None,
        device_id: int | str | None = None,
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
        random_numbers: str | None = None,
        profile: str | os.PathLike[str] | Profile | None = None,
        memory_limit_bytes: int | dict[str, int] | None = None,
    ) -> None:
        given = {k: v for k, v in locals().items() if k not in ("self", "__class__")}
        self._settings = Settings(**given)
        prepare_processes(self._settings)
        self._begin_definition()
        self._building = threading.RLock()
        """Held while the pipeline is built, or taken to a checkpoint; taken before all others."""
        self._running = threading.RLock()
        """Held by the thread that takes outputs: another one takes the next ones, after it."""
        self._source_workers = SourceWorkers(self._settings)
        self._engine: Engine | None = None
        """Engine it runs on, once it is built."""
        self._elsewhere: Elsewhere | None = None
        """Other processes or machines to carry samples; set before it is built."""
        self._in_use: deque[tuple[Batch, ...]] = deque()
        """Outputs that were shared and not released, oldest first."""

    def __repr__(self) -> str:
        return pipeline_line(self)

    def __str__(self) -> str:
        return pipeline_text(self)

    def _repr_html_(self) -> str:
        return pipeline_html(self)

    # -- the definition ------------------------------------------------------------------------

    def _begin_definition(self) -> None:
        self._definition = GraphDefinition()
        self._register(self._definition.scope)

    def _register(self, of_definition: scope.GraphScope) -> None:
        """Be found by `current` while the graph is being defined."""
        _by_scope[id(of_definition)] = self

    def __enter__(self) -> Self:
        scope.push(self._definition.scope)
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        scope.pop()
        explain(error)

    @staticmethod
    def push_current(pipeline: Pipeline) -> Pipeline | None:
        """Make `pipeline` the current one; return the one that was."""
        previous = Pipeline.current()
        scope.push(pipeline._definition.scope)
        return previous

    @staticmethod
    def pop_current() -> None:
        """Return to the pipeline that was current before."""
        scope.pop()

    @staticmethod
    def current() -> Pipeline | None:
        """The pipeline that is being defined, if any."""
        found = scope.current()
        return None if found is None else _by_scope.get(id(found))

    def define_graph(self) -> Any:
        """Return the outputs; for sub-classes that define their graph so."""
        raise no_outputs()

    def __iter__(self) -> NoReturn:
        """Refuse: batches are asked for, or looped over by an iterator."""
        raise ArgumentTypeError(
            "A pipeline is not iterable. `pipe.run()` returns the next batch; iterators loop over "
            "epochs, as `headrace.plugin.pytorch.DALIGenericIterator(pipe, [...])`."
        )

    def set_outputs(self, *outputs: Any) -> None:
        """Say which edges (or constants) the pipeline returns: `outputs`, in their order."""
        self._definition.set_outputs(outputs)

    def add_sink(self, edge: DataNode) -> None:
        """Keep the operator that makes `edge`, though nothing reads it."""
        self._definition.sinks.append(edge)

    def _define(self) -> list[OpNode]:
        """The operators that are needed, found once."""
        self._settings.check_for_build()
        # A mistake in the definition is told on a machine without a GPU, too.
        nodes = self._definition.complete(self.define_graph)
        self._settings.find_gpu()
        return nodes

    # -- building ----------------------------------------------------------------------------

    def build(self) -> None:
        """Check the graph, open its readers and start the threads. Does nothing a second time.

        Where a reader has `lazy_init`, readers are opened and threads started at the first use,
        unless there is a checkpoint to go on from.
        """
        if self._engine is not None:
            self._engine.executor.check_process()
            return
        with self._building:
            is_new = self._engine is None
            if is_new and (self._settings.checkpoint is not None or not are_lazy(self._define())):
                self._build()

    def _build(self) -> None:
        nodes, outputs = self._define(), self._definition.outputs
        assert outputs is not None
        self._engine = Engine(
            self._settings,
            nodes,
            outputs,
            self._source_workers,
            reads_ahead=type(self).iter_setup is Pipeline.iter_setup,
            elsewhere=self._elsewhere,
        )

    def _built(self) -> Engine:
        engine = self._engine
        if engine is None:
            with self._building:
                if self._engine is None:
                    self._build()
                assert self._engine is not None
                return self._engine
        engine.executor.check_process()
        return engine

    # -- running -----------------------------------------------------------------------------

    def run(self, cuda_stream: Any = None, /, **pipeline_inputs: Any) -> tuple[Batch, ...]:
        """Return the outputs of the next iteration, and start on the one after those in progress.

        Parameters
        ----------
        cuda_stream
            Stream on which outputs on the GPU are going to be used: work that it is given from now
            on waits for them, and the host does not. A number, or a stream of PyTorch or CuPy.
            Must be `None` on the CPU, but where that stands in for a GPU.
        **pipeline_inputs
            Batches for external sources, by their names.

        Raises
        ------
        StopIteration
            At the end of the data of an external source.
        """
        engine = self._built()
        if cuda_stream is not None and self._settings.is_plainly_on_cpu:
            raise ArgumentTypeError(
                f"Cannot interpret the object {cuda_stream!r} as a CUDA stream of a pipeline "
                "on the CPU; pass batches by name: run(name=batch)."
            )
        self._latch_api(PipelineAPIType.BASIC)
        with self._running:
            engine.queues.feed_all(pipeline_inputs)
            engine.prefetch.schedule(self._set_up)
            self._release()
            return self._take(engine, cuda_stream)

    def schedule_run(self) -> None:
        """Start on a further iteration; the first call starts as many as are worked on ahead.

        Raises
        ------
        StopIteration
            Never here: the end of the data shows when outputs are taken.
        """
        engine = self._built()
        self._latch_api(PipelineAPIType.SCHEDULED)
        with self._running:
            engine.prefetch.schedule(self._set_up)

    def share_outputs(self, cuda_stream: Any = None) -> tuple[Batch, ...]:
        """Wait for the oldest scheduled iteration and return its outputs.

        They stay valid for as long as they are referred to. `cuda_stream` is that of `run`.
        """
        engine = self._built()
        self._latch_api(PipelineAPIType.SCHEDULED)
        return self._take(engine, cuda_stream)

    def release_outputs(self) -> None:
        """Let go of the outputs that were shared first; does nothing if there are none."""
        self._latch_api(PipelineAPIType.SCHEDULED)
        self._release()

    def outputs(self, cuda_stream: Any = None) -> tuple[Batch, ...]:
        """Release the outputs shared before and share the next ones; `cuda_stream` as in `run`."""
        engine = self._built()
        self._latch_api(PipelineAPIType.SCHEDULED)
        self._release()
        return self._take(engine, cuda_stream)

    def iter_setup(self) -> None:
        """Called before each iteration is scheduled; for sub-classes that feed data so.

        Raises
        ------
        StopIteration
            By sub-classes, to end the epoch.
        """

    @property
    def _set_up(self) -> Callable[[], None] | None:
        """Function to call before an iteration is scheduled, if a subclass has one."""
        return None if type(self).iter_setup is Pipeline.iter_setup else self.iter_setup

    def _release(self) -> None:
        if self._in_use:
            self._in_use.popleft()

    def _take(self, engine: Engine, cuda_stream: Any) -> tuple[Batch, ...]:
        with self._running:
            batches = engine.take(cuda_stream, self._set_up)
            self._in_use.append(batches)
            return batches

    def reset(self) -> None:
        """Begin the next epoch, after the data of an external source has come to its end."""
        self._built().reset()

    def empty(self) -> bool:
        """Return True if no scheduled iteration has outputs left to take."""
        return self._engine is None or not self._engine.prefetch.has_next()

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
        engine = self._built()
        queue = engine.queues.queue(source_name(data_node))
        queue.append(queue.prepare(data, layout, cuda_stream))
        engine.queues.note_change()
        engine.prefetch.schedule_fed(self._set_up)

    def input_feed_count(self, input_name: str) -> int:
        """Return the largest number of batches that the source `input_name` is fed ahead."""
        self._built().queues.queue(input_name)
        return self._settings.queue_size

    # -- readers ---------------------------------------------------------------------------------

    def epoch_size(self, name: str | None = None) -> Any:
        """Padded number of samples in an epoch of reader `name`, or of all readers by name."""
        meta = self.reader_meta(name)
        if name is not None:
            return meta["epoch_size_padded"]
        return {k: m["epoch_size_padded"] for k, m in meta.items()}

    def reader_meta(self, name: str | None = None) -> dict[str, Any]:
        """Sizes and shards of reader `name`, or of all readers by name.

        Those of a reader of classes with names have these, with their labels, as ``classes``.
        """
        return self._built().readers.meta(name)

    # -- checkpoints -----------------------------------------------------------------------------

    @property
    def is_restored_from_checkpoint(self) -> bool:
        """True if the pipeline started from a checkpoint; False before the build."""
        return self._restored is not None

    @property
    def _restored(self) -> PipelineCheckpoint | None:
        return None if self._engine is None else self._engine.checkpointing.restored

    def checkpoint(self, filename: str | os.PathLike[str] | None = None) -> bytes:
        """Return the state to continue from here, to be given to a pipeline as `checkpoint`.

        From here means after the batches that have been taken; those that are being worked on are
        made again. Batches that an external source is *fed* (`feed_input`) and that were not taken
        have to be fed again.

        Parameters
        ----------
        filename
            A file to write the bytes to. A reader finds the old one or the new one whole,
            also if the program is interrupted here.

        Raises
        ------
        UsageError
            If the pipeline was not made with ``enable_checkpointing=True``, or a source cannot say
            where it stands.
        OSError
            If the file cannot be written.
        """
        return self._checkpoint(filename)

    def _checkpoint(
        self,
        filename: str | os.PathLike[str] | None = None,
        iterator: dict[str, Any] | None = None,
    ) -> bytes:
        """`checkpoint`, with the state of the `iterator` that runs the pipeline."""
        check_enabled(self._settings)
        data = self._built().checkpoint(iterator).packed()
        if filename is not None:
            write_whole(Path(filename), data)
        return data

    def _readable_checkpoint(self, data: bytes | str) -> PipelineCheckpoint:
        """The checkpoint in `data`, if this pipeline can go on from it."""
        engine = self._built()
        return engine.checkpointing.readable(data, engine.readers)

    def _go_to(self, data: bytes | str) -> None:
        """Go to where a checkpoint was made, from wherever the pipeline is.

        All that is worked on ahead is dropped. Readers are opened anew, and worker processes of
        external sources are started anew, because they hold sources that have been used.
        """
        with self._building:
            if self._engine is not None:
                self._engine.executor.cancel()
            self._shutdown()
            self._source_workers.close()  # also where the last build failed
            self._source_workers = SourceWorkers(self._settings)
            for node in self._definition.nodes:
                if node.input_queue is not None:
                    node.input_queue.begin_anew()
            self._settings.checkpoint = data
            self._in_use.clear()
            self.build()

    # -- parallel external sources ----------------------------------------------------------------

    def start_py_workers(self) -> None:
        """Start the processes of parallel external sources, which `build` does otherwise.

        With ``py_start_method="fork"``, processes are best started before anything else has
        threads, another pipeline for instance.
        """
        with self._building:
            self._source_workers.start_processes(self._define(), self.max_batch_size)

    @property
    def _py_pool(self) -> SourceWorkers | None:
        """Owner of the processes, once they are started; programs ask it for `pids`."""
        return self._source_workers if self._source_workers.pids() else None

    @property
    def _py_pool_started(self) -> bool:
        """True if processes for parallel external sources have started."""
        return self._py_pool is not None

    # -- what is known about the pipeline ----------------------------------------------------------

    @property
    def num_outputs(self) -> int:
        """Number of outputs."""
        self.build()
        return len(self._definition.outputs or ())

    # -- for iterators ---------------------------------------------------------------------------

    @property
    def _executor(self) -> Executor | None:
        return None if self._engine is None else self._engine.executor

    @property
    def _skipped_in_last_outputs(self) -> int:
        return 0 if self._engine is None else self._engine.skipped

    @property
    def _draw_numbers_in_last_outputs(self) -> list[int] | None:
        return None if self._engine is None else self._engine.draw_numbers

    def _restart_epoch(self, at_least: Mapping[str, int] | None = None) -> dict[str, int]:
        """Begin the next epoch: see `Engine.restart_epoch`."""
        return self._built().restart_epoch(at_least)

    def _reader_epoch(self, name: str) -> int:
        """Number of the epoch that reader `name` is in."""
        return self._built().readers.epoch(name)

    def _reader_rest(self, name: str) -> tuple[int, int | None]:
        """See `OpenReaders.rest`."""
        return self._built().readers.rest(name)

    # -- end ---------------------------------------------------------------------------------

    def _shutdown(self) -> None:
        engine, self._engine = self._engine, None
        if engine is not None:
            engine.executor.shutdown()
            self._source_workers.close()
            for reserve in engine.reserves:
                reserve.release()

    def __del__(self) -> None:
        if getattr(self, "_engine", None) is not None:
            self._shutdown()
        elif hasattr(self, "_source_workers"):
            self._source_workers.close()


# What `weakref.finalize` is to do at the exit, it does in one go, registered with the first of all
# finalizers. There is one now, so that connections to worker processes are closed after this.
weakref.finalize(Pipeline, int)


@atexit.register
def _shut_down_all() -> None:
    # Threads that still run while the interpreter is torn down could crash it; but an operator that
    # never returns must not keep the program from ending.
    shut_down_all()
    end_processes()
    join_all(EXIT_SECONDS)
