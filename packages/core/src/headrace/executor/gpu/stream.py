"""A stream of the GPU that stages are launched on, and the memory that their work uses."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NamedTuple

import headrace.kernels.gpu.strided_copy  # noqa: F401 - tells queues how to copy through strides
from headrace.executor.cpu.batch import BatchBuffer
from headrace.executor.cpu.shape_statistics import ShapeStatistics
from headrace.executor.gpu.batch import GpuBatch
from headrace.kernels.gpu.transfer import HostCopy
from headrace.operators.support.runtime_typed_batch import RuntimeTypedBatch
from headrace.tensors.gpu.device import GpuDevice
from headrace.tensors.gpu.faults import FaultReport
from headrace.tensors.gpu.queue import Queue
from headrace.tensors.gpu.runtime import Event

if TYPE_CHECKING:
    from headrace.executor.gpu.program import GpuProgram
    from headrace.executor.iteration import Iteration


class LaunchedStage(NamedTuple):
    """A stage of an iteration whose work is on the stream."""

    program: GpuProgram
    found: dict[int, Any]
    """Values that leave the stage, by register, as `GpuProgram.run` returns them."""
    deferred: list[Callable[[Queue], None]]
    """Work to finish before the values are handed over."""
    kept: list[Any]
    """Owners of memory that must live until the device has done its work."""


class StreamExecutor:
    """One stream, and the memory that must be kept until its work is done.

    One thread at a time uses it, the one that has set `busy`; or, where only its own thread
    launches stages, that thread, and another one that completes them.
    """

    def __init__(self, device: GpuDevice, name: str, ahead: int, stream: int | None = None) -> None:
        self.name = name
        self.busy = False
        """True if a thread is at work on it, where several may be; guarded by the executor's
        monitor."""
        self._device = device
        self._ahead = ahead
        self._owns_stream = stream is None
        self._stream = device.runtime.acquire_stream() if stream is None else stream
        self._queue = device.queue(self._stream)
        self._kept: deque[tuple[Event, list[Any]]] = deque()
        """Owners of memory that the stream still uses, each until its event is reached. Appended by
        the thread that completes a stage, removed by the one that launches the next: no lock.
        """

    @property
    def stream(self) -> int:
        """The number of the stream."""
        return self._stream

    def activate(self) -> None:
        """Make the device current in the thread that is going to use the stream."""
        self._device.runtime.activate()

    def active(self) -> AbstractContextManager[Any]:
        """The same for the length of a ``with``, for threads that are not the engine's own."""
        return self._device.runtime.active()

    def run(self, program: GpuProgram, iteration: Iteration) -> None:
        """Launch a stage of an iteration and store its results for other stages."""
        self.complete(iteration, self.launch(program, iteration), self._queue)

    def launch(
        self, program: GpuProgram, iteration: Iteration, *, defer: bool = False
    ) -> LaunchedStage:
        """Launch the work of a stage."""
        self._let_go()
        buffers: list[Any] = iteration.buffers
        kept: list[Any] = [buffers[r] for r in program.stage.reads]
        deferred: list[Callable[[Queue], None]] = []
        queue = self._queue
        if defer:
            queue.collect(deferred)
        try:
            for buffer in kept:
                if buffer is not None:  # no sample took the branch
                    buffer.wait()  # of what the GPU has copied to the host
            found = program.run(iteration, queue)
        except BaseException:
            self._keep([*kept, *queue.finish()])
            raise
        finally:
            if defer:
                queue.collect(None)
        return LaunchedStage(program, found, deferred, kept + queue.finish())

    def _keep(self, owners: list[Any]) -> Event:
        event = self._device.runtime.record(self._stream)
        self._kept.append((event, owners))
        return event

    def complete(
        self, iteration: Iteration, launched: LaunchedStage, queue: Queue | None = None
    ) -> None:
        """Finish a launched stage, with `queue` or a new one for the same stream."""
        kept = launched.kept
        program = launched.program
        buffers: list[Any] = iteration.buffers
        if launched.deferred:
            queue = self._device.queue(self._stream) if queue is None else queue
            try:
                for work in launched.deferred:
                    work(queue)
            except BaseException:
                self._keep([*kept, *queue.finish()])
                raise
            kept = kept + queue.finish()
        event = self._keep(kept)
        for there, here in program.left_on_host:
            buffers[here] = buffers[there]
        for r, (value, sources, places) in launched.found.items():
            if value is None:
                continue
            spec = program.specs[r]
            if isinstance(value, RuntimeTypedBatch):
                value, spec = value
            if isinstance(value, HostCopy):
                host = self._device.host
                buffer = BatchBuffer(iteration.size, spec, ShapeStatistics(), host)
                if places is None:
                    buffer.rows = list(value.rows)
                    if value.dense is not None:
                        buffer.adopt(value.dense)
                else:
                    for index, row in zip(places.tolist(), value.rows, strict=True):
                        buffer.rows[index] = row
                buffer.sources = sources
                buffer.event = event
                buffers[r] = buffer
            else:
                if places is not None:
                    value = value.spread(places, iteration.size)
                buffers[r] = GpuBatch(value, spec, sources, event, self._stream)

    def _let_go(self) -> None:
        """Drop finished work; wait for the device if it is too far behind."""
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
        """Wait for all work of the stream."""
        self._device.runtime.synchronize(self._stream)

    def close(self) -> None:
        """Wait for the work of the stream and give its stream back."""
        if self._kept:
            self._kept[-1][0].synchronize()
        self._kept.clear()
        if self._owns_stream:
            self._device.runtime.release_stream(self._stream)
