"""Runs iterations of a plan ahead of the consumer, on a pool of threads.

Iterations begin in order; their samples are handed out one by one, those of the oldest iteration
first. A thread that finds no sample left in the oldest iteration goes on with the next one, so no
thread waits for the last sample of a batch.
"""

from __future__ import annotations

import threading
import time
from functools import partial
from typing import TYPE_CHECKING, Any

from headrace.errors import BadSampleError, EndOfData, UsageError
from headrace.executor.cpu.inline import InlineCarrier, may_carry_inline
from headrace.executor.cpu.tasks import CpuTasks
from headrace.executor.cpu.worker import WorkerThread
from headrace.executor.gpu.batch import no_samples
from headrace.executor.gpu.inline import InlineExecution, may_run_inline
from headrace.executor.gpu.tasks import GpuTasks
from headrace.executor.iteration import DONE, SCHEDULED
from headrace.executor.memory import PipelineMemory
from headrace.executor.monitor import Monitor, interruption
from headrace.executor.plan import shares_streams
from headrace.executor.prefetch_tuner import PrefetchTuner
from headrace.executor.programs import Programs
from headrace.executor.recovery import Recovery
from headrace.executor.schedule import Schedule
from headrace.executor.sources.reading import BatchReader, decodes_next, reads_for_gpu
from headrace.executor.stages import Stages
from headrace.executor.starting import Starter
from headrace.executor.statistics import Statistics
from headrace.executor.threads import forks, join
from headrace.operators.support.schema import Spec
from headrace.profiling.recorder import CONSUMER, NO_RECORD, Label, ProfileRecorder, SpanRecorder
from headrace.tensors.gpu.device import GpuDevice
from headrace.tensors.pool import HostPool, PoolShare

if TYPE_CHECKING:
    from headrace.executor.affinity import Affinity
    from headrace.executor.bad_samples import BadSample
    from headrace.executor.gpu.stream_threads import StreamTasks
    from headrace.executor.iteration import Iteration
    from headrace.executor.plan import Plan
    from headrace.executor.processes.pipeline_processes import WorkerProcesses
    from headrace.executor.sampler import Sampler

_POLL_SECONDS = 0.5
"""A Ctrl-C that comes just as a thread falls asleep does not wake it, so the consumer wakes now and
then by itself."""

_WAY_OUT = (
    'A pipeline made with `on_bad_sample="skip"`, or "replace", goes on without bad samples and '
    "lists them in `Pipeline.bad_samples`."
)
"""For errors that end an iteration because of one sample that cannot be read."""


class Executor:
    """In-flight iterations of one pipeline and the threads that work on them."""

    carriers: dict[str, Any] | None = None
    """Entries of `Pipeline.counters` about who carries samples, where others than the engine do."""

    def __init__(
        self,
        plan: Plan,
        readers: dict[int, Any],
        *,
        num_threads: int,
        fuse: bool,
        on_bad_sample: str,
        affinity: Affinity | None = None,
        device: GpuDevice | None = None,
        depth: int = 2,
        most_ahead: int | None = None,
        processes: WorkerProcesses | None = None,
        packs: bool = True,
        memory: PipelineMemory | None = None,
        recorder: SpanRecorder = NO_RECORD,
        output_pool: HostPool | None = None,
    ) -> None:
        self.plan = plan
        self.readers = readers
        self.statistics = Statistics()
        self.monitor = Monitor()
        self._policy = on_bad_sample
        self._process = forks()
        self._num_threads = num_threads
        self._affinity = affinity
        self._threads: list[threading.Thread] = []
        self._recovery = Recovery(plan, readers, on_bad_sample, self.statistics)
        self._programs = Programs(plan, readers, fuse=fuse, threads=num_threads, recorder=recorder)
        self.memory = PipelineMemory(device) if memory is None else memory
        pools: tuple[HostPool, HostPool | None] = (self.memory.host, None)
        if processes is not None:
            pools = processes.pool, processes.pinned
            self.memory.add_shares(shared=processes.pool, shared_pinned=processes.pinned)
        if output_pool is not None:
            output_pool = PoolShare(output_pool)
            self.memory.add_shares(outputs=output_pool)
        functions = None if processes is None else processes.functions
        self._stages = Stages(
            plan,
            self._programs,
            self._recovery,
            device,
            *pools,
            packs=packs,
            functions=functions,
            batch_pool=self.memory.host,
            nothing_on_gpu=None if device is None else partial(no_samples, device),
            recorder=recorder,
            output_pool=output_pool,
            writes_outputs=processes is None,
            threads=num_threads,
        )
        self.processes = processes
        self._schedule = Schedule(
            plan,
            self._stages,
            self.monitor,
            self.statistics,
            redraws=on_bad_sample == "skip" and bool(plan.readers),
            shares_streams=shares_streams(plan),
            tuner=PrefetchTuner(depth, most_ahead or depth),
        )
        self.consumer = self._schedule.consumer
        self._batch_reader: BatchReader | None = None
        """Reader of whole batches, if a stage on the GPU follows."""
        if reads_for_gpu(plan):
            self._batch_reader = BatchReader(
                num_threads, affinity=affinity, scans=decodes_next(plan)
            )
        self._starter = Starter(plan, readers, self._stages, self._schedule, self._batch_reader)
        self._cpu = CpuTasks(
            plan,
            self._schedule,
            self._starter,
            self._stages,
            fuse=fuse,
            fails_at_once=on_bad_sample == "raise",
            threads=num_threads,
            processes=processes,
            recorder=recorder,
        )
        self._gpu: GpuTasks | None = None
        self._stream_tasks: list[StreamTasks] = []
        self._inline: InlineExecution | InlineCarrier | None = None
        if processes is None and not recorder.is_on and may_carry_inline(plan, readers):
            self._inline = InlineCarrier(
                self._schedule, self._starter, self._stages, self._programs, fuse=fuse
            )
        self._device = device
        self._depth = depth
        self._recorder = recorder
        self._take_code = recorder.code("take", lambda: [Label("wait for a batch", "take")])
        self._sampler: Sampler | None = None
        if isinstance(recorder, ProfileRecorder):
            from headrace.executor.sampler import Sampler

            statistics = self.statistics
            recorder.padding = lambda: statistics.padding
            self._sampler = Sampler(
                recorder, self._schedule.queue, self.memory, has_processes=processes is not None
            )

    @property
    def bad_samples(self) -> list[BadSample]:
        """Samples that were skipped or replaced so far."""
        return self._recovery.bad_samples

    def known_specs(self) -> dict[int, Spec]:
        """Types of the registers, as far as iterations have shown them."""
        return self._programs.known_specs()

    def scheduled(self) -> list[Iteration]:
        """Iterations that are scheduled and not yet handed over, oldest first."""
        with self.monitor.lock:
            return list(self._schedule.queue)

    # -- the consumer's side ---------------------------------------------------------------

    def start(self) -> None:
        """Start the threads, once."""
        if self._threads:
            return
        streams = self._stream_threads()
        shared = [self._gpu] if self._gpu is not None and shares_streams(self.plan) else []
        self._threads = [
            *(
                WorkerThread(
                    number,
                    self.monitor,
                    [*shared, self._cpu],
                    affinity=self._affinity,
                    looks_at=frozenset(self.plan.streams if shared else ()),
                    looks_for_samples=self.processes is None and not self.plan.streams,
                )
                for number in range(self._num_threads)
            ),
            *streams,
        ]
        try:
            for thread in self._threads:
                thread.start()
        except BaseException:
            self.monitor.close()
            raise
        if self._sampler is not None:
            self._sampler.start()

    def _stream_threads(self) -> list[threading.Thread]:
        """The threads of the streams, and what they work on."""
        plan, device = self.plan, self._device
        if not plan.streams:
            return []
        from headrace.executor.gpu.stream import StreamExecutor
        from headrace.executor.gpu.stream_threads import StreamTasks, StreamThread

        assert device is not None
        # What was handed over may still be worked on when the next iterations begin.
        ahead = 2 * self._depth + 1
        streams = {name: StreamExecutor(device, name, ahead) for name in sorted(plan.streams)}
        is_shared = shares_streams(plan)
        gpu = self._gpu = GpuTasks(
            streams,
            self._schedule,
            self._starter,
            self._stages,
            self._programs,
            is_shared=is_shared,
        )
        if is_shared and self._batch_reader is None and may_run_inline(plan):
            self._inline = InlineExecution(gpu, self._schedule, device.runtime)
        self._stream_tasks = [StreamTasks(gpu, stream) for stream in streams.values()]
        return [
            StreamThread(tasks.stream, self.monitor, tasks, gpu if is_shared else None)
            for tasks in self._stream_tasks
        ]

    def check_process(self) -> None:
        """Check that this is the process with the threads."""
        if self._process != forks():
            raise UsageError(
                "The pipeline was built in another process, of which this one is a fork: its "
                "threads are there. Build a pipeline of its own in each process."
            )

    def schedule(self, iteration: Iteration) -> bool:
        """Take in the next iteration. True: the consumer will get it."""
        with self.monitor.lock:
            self._schedule.add(iteration)
        return True

    def pending(self) -> int:
        """Number of iterations that are scheduled and not yet handed over."""
        return len(self._schedule.queue)

    def finish(self) -> None:
        """Wait until all that is scheduled is done, or, on a GPU, queued there."""
        if isinstance(self._inline, InlineCarrier):
            self._inline.leave_to_workers()
        elif self._inline is not None:
            return  # the consumer itself queues it, when it takes the outputs
        monitor, queue = self.monitor, self._schedule.queue
        self.consumer.is_inside = True
        try:
            with monitor.lock:
                while any(iteration.state is not DONE for iteration in queue):
                    self._check_open()
                    if not monitor.finished.wait(_POLL_SECONDS):
                        monitor.wake_all()
        except RuntimeError as failed:
            raise interruption(failed) from None
        finally:
            self.consumer.is_inside = False

    def take(self) -> Iteration:
        """Wait for the oldest iteration and hand it over."""
        if not self._recorder.is_on:
            return self._take()
        states = [iteration.state for iteration in list(self._schedule.queue)]
        # Its row says how many iterations were complete, and how many in the queue.
        fields = self._take_code, -1, states.count(DONE), len(states)
        with self._recorder.span(*fields, lane=CONSUMER) as span:
            iteration = self._take()
            span.iteration = iteration.number
        return iteration

    def _take(self) -> Iteration:
        began = time.perf_counter()
        inline, monitor, queue = self._inline, self.monitor, self._schedule.queue
        self.consumer.is_inside = True
        try:
            if inline is not None:
                inline.begin_waiting(began)
                inline.run_pending(queue[0])
            while True:
                with monitor.lock:
                    iteration = queue[0]
                    while iteration.state is not DONE or self._is_to_end():
                        self._check_open()
                        if inline is not None and inline.may_run(iteration):
                            break
                        if not monitor.finished.wait(_POLL_SECONDS):
                            # A Ctrl-C may have come after an iteration was queued and before a
                            # thread was notified of it: without this, none would ever be.
                            monitor.wake_all()
                    else:
                        self._schedule.hand_over()
                        break
                assert inline is not None
                inline.run_pending(iteration)
        except RuntimeError as failed:
            raise interruption(failed) from None
        finally:
            self.consumer.is_inside = False
        ended = time.perf_counter()
        self.statistics.waited(ended - began)
        if inline is not None:
            inline.end_waiting(ended)
        if iteration.error is not None:
            error, iteration.error = iteration.error, None
            if isinstance(error, BadSampleError) and self._policy == "raise" and self.plan.readers:
                error.add_note(_WAY_OUT)
            raise error
        return iteration

    def _check_open(self) -> None:
        if self.monitor.closed and not self._is_to_end():
            raise UsageError("The pipeline was shut down while its outputs were awaited.")

    def _is_to_end(self) -> bool:
        """Return True if this is a daemon thread that must exit silently with the program."""
        if not self.monitor.exiting:
            return False
        return threading.current_thread() is not threading.main_thread()

    def states(self) -> tuple[Iteration | None, dict[int, Any]]:
        """The oldest iteration in progress, and the readers' states from before it."""
        schedule, monitor = self._schedule, self.monitor
        try:
            with monitor.lock:
                oldest = schedule.queue[0] if schedule.queue else None
                found = {} if oldest is None else oldest.states
                schedule.is_awaited = True
                while schedule.is_beginning and len(found) < len(self.plan.readers):
                    self._check_open()
                    monitor.finished.wait(_POLL_SECONDS)
                schedule.is_awaited = False
                # Where an iteration has not begun, its readers have not drawn for any after it.
                return oldest, {
                    key: found[key] if key in found else reader.state()
                    for key, reader in self.readers.items()
                }
        except RuntimeError as failed:
            raise interruption(failed) from None

    def cancel(self) -> dict[int, Any] | None:
        """Drop all scheduled iterations; return the readers' states from before them."""
        schedule, monitor = self._schedule, self.monitor
        try:
            with monitor.lock:
                dropped = list(schedule.queue)
                for iteration in dropped:
                    iteration.next = iteration.size
                    iteration.queue.clear()
                    if iteration.error is None:
                        # Seen by its owner, which then finishes it; it is not taken from a thread.
                        iteration.error = EndOfData("cancelled")
                    if iteration.files is not None:
                        iteration.files.stop()
                schedule.is_awaited = True
                while any(iteration.is_busy for iteration in dropped):
                    monitor.finished.wait()
                schedule.is_awaited = False
                schedule.queue.clear()
                has_begun = bool(dropped) and dropped[0].state is not SCHEDULED
                return dropped[0].states if has_begun else None
        except RuntimeError as failed:
            raise interruption(failed) from None

    def shutdown(self, wait_seconds: float = 1.0) -> None:
        """Stop the threads; running samples are finished, the rest is dropped.

        Not more than `wait_seconds` are spent waiting for them: an operator may take long, or wait
        for a lock that is held further up in this very thread, where the garbage collector
        happened to run.
        """
        if self.monitor.exiting:
            return  # the threads are told, and modules may be torn down already
        if self._process != forks():
            return  # the lock may have been held when the process was forked, and stay so
        self.monitor.close()
        if self.processes is not None:
            self.processes.close()
        readers = [] if self._batch_reader is None else self._batch_reader.close()
        join([*self._threads, *readers], wait_seconds)
        self._threads = []
        self._end_record(wait_seconds)

    def _end_record(self, wait_seconds: float) -> None:
        """Look no more, and have the profile written, once."""
        sampler, self._sampler = self._sampler, None
        if sampler is not None:
            sampler.stop(wait_seconds)
            self._recorder.end()

    def shut_down_at_exit(self) -> None:
        """Stop the threads, without waiting for them, because the program ends."""
        if self._process == forks():
            self.monitor.exiting = True
            self.monitor.close()
            if self.processes is not None:
                self.processes.close()
            if self._batch_reader is not None:
                self._batch_reader.close()
            self._threads = []
            self._end_record(0.1)
