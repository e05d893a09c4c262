"""The threads of a stream of the GPU: one launches its stages, one may complete them."""

from __future__ import annotations

import weakref
from queue import SimpleQueue
from typing import TYPE_CHECKING

from headrace.executor.threads import ExecutorThread, serve

if TYPE_CHECKING:
    from headrace.executor.gpu.stream import LaunchedStage, StreamExecutor
    from headrace.executor.gpu.tasks import GpuTasks
    from headrace.executor.iteration import Iteration
    from headrace.executor.monitor import Monitor
    from headrace.executor.threads import Task


class StreamTasks:
    """Source of tasks for a `StreamThread`: those of its stream."""

    def __init__(self, tasks: GpuTasks, stream: StreamExecutor) -> None:
        self._tasks = tasks
        self.stream = stream

    def find_task(self) -> Task | None:
        """A stage to launch, or an iteration to begin. The caller holds the lock."""
        iteration = self._tasks.find_on(self.stream)
        return None if iteration is None else (self._launch, iteration, self.stream)

    def _launch(self, iteration: Iteration, stream: StreamExecutor, thread: StreamThread) -> None:
        launched = self._tasks.launch(iteration, stream)
        if launched is not None:
            thread.leave_to_completion(self._tasks, iteration, launched)


class StreamThread(ExecutorThread):
    """Launches stages on its stream. Like a worker, it keeps no executor alive."""

    def __init__(
        self, stream: StreamExecutor, monitor: Monitor, tasks: StreamTasks, shared: GpuTasks | None
    ) -> None:
        looks_at = frozenset() if shared is None else frozenset(shared.streams)
        super().__init__(f"headrace-{stream.name}", looks_at)
        self._monitor = monitor
        self._stream = stream
        self._sources = [weakref.ref(s) for s in (shared, tasks) if s is not None]
        self._completion: CompletionThread | None = None

    def run(self) -> None:
        """Work until the executor shuts down."""
        stream, monitor = self._stream, self._monitor
        stream.activate()
        self.has_device = True
        try:
            serve(monitor, monitor.streams[stream.name], self._sources)
        finally:
            if self._completion is not None:
                self._completion.launched.put(None)
                self._completion.join()
            with monitor.lock:
                while stream.busy:
                    monitor.streams[stream.name].wait()
            stream.close()

    def leave_to_completion(
        self, tasks: GpuTasks, iteration: Iteration, launched: LaunchedStage
    ) -> None:
        """Have another thread complete a stage."""
        if self._completion is None:
            self._completion = CompletionThread(self._stream)
            self._completion.start()
        self._completion.launched.put((tasks, iteration, launched))


class CompletionThread(ExecutorThread):
    """Waits for decoders where operators of a stage have deferred that, and completes the stage.

    The thread of the stream launches the next iteration meanwhile. Where iterations go on to the
    other stream, this thread launches them there: to wake the other stream's would take as long as
    most of what there is to do.
    """

    def __init__(self, stream: StreamExecutor) -> None:
        super().__init__(f"headrace-{stream.name}-end", frozenset({"gpu"}))
        self._stream = stream
        self.launched: SimpleQueue[tuple[GpuTasks, Iteration, LaunchedStage] | None] = SimpleQueue()
        """Stages to complete, in their order; `None` is the last."""

    def run(self) -> None:
        """Work until there is no more."""
        self._stream.activate()
        while (task := self.launched.get()) is not None:
            tasks, iteration, launched = task
            tasks.complete(iteration, self._stream, launched)
            tasks.launch_behind()
            del task, tasks, iteration, launched
