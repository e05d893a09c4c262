"""The threads that queue work on the GPU: one a lane, with a stream of its own."""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, NamedTuple

import penstock.kernels.gpu.strided_copy  # noqa: F401 - tells queues how to copy through strides
from penstock._forking import no_fork
from penstock.executor.cpu.batch import BatchBuffer, EdgeHistory
from penstock.executor.cpu.worker import track
from penstock.executor.gpu.batch import GpuBatch
from penstock.kernels.gpu.transfer import HostCopy
from penstock.operators.support.late_batch import LateBatch
from penstock.tensors.gpu.faults import FaultReport

if TYPE_CHECKING:
    from penstock.executor.executor import Executor
    from penstock.executor.gpu.program import GpuProgram
    from penstock.executor.iteration import Iteration
    from penstock.tensors.gpu.device import Device
    from penstock.tensors.gpu.queue import Queue
    from penstock.tensors.gpu.runtime import Event


class Begun(NamedTuple):
    """A stage of an iteration that operators have queued."""

    program: GpuProgram
    found: dict[int, Any]
    """What leaves the stage, by register, as `GpuProgram.run` has it."""
    deferred: list[Callable[[Queue], None]]
    """What is left to be done before anybody gets it."""
    kept: list[Any]
    """What is to be kept until the device has done its work."""


class Lane:
    """One stream, and what must be kept until its work is done.

    Parameters
    ----------
    device
        The GPU.
    name
        ``"mixed"`` or ``"gpu"``.
    ahead
        How many iterations may be queued that the device has not finished: the host stops there, so
        that memory does not grow where nobody ever waits for results.
    stream
        The stream, where it is not to be one of the lane's own.
    """

    def __init__(self, device: Device, name: str, ahead: int, stream: int | None = None) -> None:
        self.name = name
        self.busy = False
        """Whether a thread is at work on it, where several may be; guarded by the lock of the
        executor.
        """
        self._device = device
        self._ahead = ahead
        self._owns_stream = stream is None
        self._stream = device.runtime.acquire_stream() if stream is None else stream
        self._queue = device.queue(self._stream)
        self._kept: deque[tuple[Event, list[Any]]] = deque()

    @property
    def stream(self) -> int:
        """The number of the stream."""
        return self._stream

    def activate(self) -> None:
        """Make the device current in the thread that is going to use the lane."""
        self._device.runtime.activate()

    def active(self) -> AbstractContextManager[Any]:
        """The same for the length of a ``with``, for threads that are not the engine's own."""
        return self._device.runtime.active()

    def run(self, program: GpuProgram, iteration: Iteration) -> None:
        """Queue a stage of an iteration and put what leaves it where other stages find it."""
        self.end(iteration, self.begin(program, iteration), self._queue)

    def begin(self, program: GpuProgram, iteration: Iteration, *, defer: bool = False) -> Begun:
        """Queue a stage of an iteration.

        Parameters
        ----------
        defer
            Whether what operators may do later is left to `end`.
        """
        self._let_go()
        buffers: list[Any] = iteration.buffers
        kept: list[Any] = [buffers[r] for r in program.stage.reads]
        deferred: list[Callable[[Queue], None]] = []
        queue = self._queue
        if defer:
            queue.collect(deferred)
        try:
            found = program.run(iteration, queue)
        except BaseException:
            self._keep([*kept, *queue.finish()])
            raise
        finally:
            if defer:
                queue.collect(None)
        return Begun(program, found, deferred, kept + queue.finish())

    def _keep(self, owners: list[Any]) -> Event:
        event = self._device.runtime.record(self._stream)
        self._kept.append((event, owners))
        return event

    def end(self, iteration: Iteration, begun: Begun, queue: Queue | None = None) -> None:
        """End what `begin` has begun, with the lane's queue or one for the same stream."""
        kept = begun.kept
        program = begun.program
        buffers: list[Any] = iteration.buffers
        if begun.deferred:
            queue = self._device.queue(self._stream) if queue is None else queue
            try:
                for work in begun.deferred:
                    work(queue)
            except BaseException:
                self._keep([*kept, *queue.finish()])
                raise
            kept = kept + queue.finish()
        event = self._keep(kept)
        for r, (value, sources) in begun.found.items():
            spec = program.specs[r]
            if isinstance(value, LateBatch):
                value, spec = value
            if isinstance(value, HostCopy):
                buffer = BatchBuffer(iteration.size, spec, EdgeHistory())
                buffer.rows = list(value.rows)
                if value.dense is not None:
                    buffer.adopt(value.dense)
                buffer.sources = sources
                buffer.event = event
                buffers[r] = buffer
            else:
                buffers[r] = GpuBatch(value, spec, sources, event, self._stream)

    def _let_go(self) -> None:
        """Drop what is done with; wait for the device where it is too far behind."""
        kept = self._kept
        while kept and (len(kept) > self._ahead or kept[0][0].done()):
            event, owners = kept[0]
            event.synchronize()
            try:
                for owner in owners:
                    if type(owner) is FaultReport:
                        owner.check()
            finally:
                del owners
                kept.popleft()  # not before: the memory would be lent again

    def synchronize(self) -> None:
        """Wait for all work of the lane."""
        self._device.runtime.synchronize(self._stream)

    def close(self) -> None:
        """Wait for the work of the lane and give its stream back."""
        if self._kept:
            self._kept[-1][0].synchronize()
        self._kept.clear()
        if self._owns_stream:
            self._device.runtime.release_stream(self._stream)


class LaneThread(threading.Thread):
    """Takes iterations that have come to its lane. Like a worker, it keeps no executor alive.

    Where lanes take nothing but the interpreter's time it goes on with an iteration on the next
    one, and so do workers: see `penstock.executor.plan.shares_lanes`.
    """

    takes_lanes = True

    def __init__(self, executor: Executor, lane: Lane) -> None:
        super().__init__(name=f"penstock-{lane.name}", daemon=True)
        self._executor = weakref.ref(executor)
        self._gate = executor.gate
        self._lane = lane
        self._ender: EndingThread | None = None
        track(self)

    def run(self) -> None:
        """Work until the executor shuts down."""
        self._lane.activate()
        try:
            while (task := self._next_task()) is not None:
                executor, iteration, lane = task
                with no_fork:
                    begun = executor.run_on_lane(iteration, lane)
                if begun is not None:
                    self._leave_to_ender(executor, iteration, begun)
                del task, executor, iteration, begun
        finally:
            if self._ender is not None:
                self._ender.tasks.put(None)
                self._ender.join()
            with self._gate.lock:
                while self._lane.busy:
                    self._gate.lanes[self._lane.name].wait()
            self._lane.close()

    def _leave_to_ender(self, executor: Executor, iteration: Iteration, begun: Begun) -> None:
        if self._ender is None:
            self._ender = EndingThread(self._lane)
            self._ender.start()
        self._ender.tasks.put((executor, iteration, begun))

    def _next_task(self) -> tuple[Executor, Iteration, Lane] | None:
        gate = self._gate
        with gate.lock:
            while not gate.closed:
                executor = self._executor()
                if executor is None:
                    break
                shared = executor.find_shared_task()
                if shared is not None:
                    return executor, *shared
                iteration = executor.find_lane_task(self._lane.name)
                if iteration is not None:
                    return executor, iteration, self._lane
                del executor
                gate.lanes[self._lane.name].wait()
            return None


class EndingThread(threading.Thread):
    """Waits for decoders where operators of a lane have deferred that, and ends their stages.

    The thread of the lane begins the next iteration meanwhile. Where iterations go on to the other
    lane, this thread takes them there: to wake the other lane's would take as long as most of what
    there is to do.
    """

    ends_stages = True

    def __init__(self, lane: Lane) -> None:
        super().__init__(name=f"penstock-{lane.name}-end", daemon=True)
        self._lane = lane
        self.tasks: SimpleQueue[tuple[Executor, Iteration, Begun] | None] = SimpleQueue()
        """Stages to end, in their order; `None` is the last."""
        track(self)

    def run(self) -> None:
        """Work until there is no more."""
        self._lane.activate()
        while (task := self.tasks.get()) is not None:
            executor, iteration, begun = task
            executor.end_on_lane(iteration, self._lane, begun)
            executor.run_on_last_lane()
            del task, executor, iteration, begun
