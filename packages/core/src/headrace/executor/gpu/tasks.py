"""Tasks of a stage on the GPU: launch its work, complete it, continue after it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from headrace.executor.iteration import (
    AWAITING_FILES,
    BEGINNING,
    LAUNCHING,
    QUEUED,
    READING,
    SCHEDULED,
)
from headrace.executor.schedule import is_early

if TYPE_CHECKING:
    from headrace.executor.cpu.program import Program
    from headrace.executor.gpu.stream import LaunchedStage, StreamExecutor
    from headrace.executor.iteration import Iteration
    from headrace.executor.programs import Programs
    from headrace.executor.schedule import Schedule
    from headrace.executor.stages import Stages
    from headrace.executor.starting import Starter
    from headrace.executor.threads import ExecutorThread, Task


class GpuTasks:
    """Launches stages on the streams of an executor."""

    def __init__(
        self,
        streams: Mapping[str, StreamExecutor],
        schedule: Schedule,
        starter: Starter,
        stages: Stages,
        programs: Programs,
        *,
        is_shared: bool,
    ) -> None:
        self.streams = streams
        self._schedule = schedule
        self._starter = starter
        self._stages = stages
        self._programs = programs
        self._is_shared = is_shared

    def find_task(self) -> Task | None:
        """A stage to launch on any stream. The caller holds the lock."""
        for name, stream in self.streams.items():
            iteration = None if stream.busy else self.take_queued(name)
            if iteration is not None:
                return self._launch_anywhere, iteration, stream
        return None

    def find_on(self, stream: StreamExecutor) -> Iteration | None:
        """The oldest iteration that is queued for `stream`, or that begins there.

        The caller holds the lock.

        The calling thread then owns it.
        """
        name, schedule = stream.name, self._schedule
        if not stream.busy:
            iteration = self.take_queued(name)
            if iteration is not None:
                return iteration
        if schedule.first_stream == name:
            for iteration in schedule.queue:
                if (
                    iteration.state is SCHEDULED
                    and iteration.error is None
                    and schedule.may_begin()
                ):
                    schedule.begin(iteration)
                    return iteration
            for iteration in schedule.queue:
                if iteration.state is READING:
                    iteration.change(AWAITING_FILES)
                    return iteration
        return None

    def take_queued(self, name: str) -> Iteration | None:
        """The oldest iteration that is queued for a stream, for the calling thread to launch.

        The caller holds the lock.
        """
        queue, in_order = self._schedule.queue, self._schedule.in_order
        for iteration in queue:
            if iteration.state is QUEUED and iteration.stream == name and iteration.error is None:
                number = iteration.stage + 1
                if number in in_order and is_early(queue, iteration, number):
                    continue
                iteration.change(LAUNCHING)
                iteration.stage = number
                # The thread that completes stages of the other stream goes on with this one, too.
                self.streams[name].busy = self._is_shared or name == "gpu"
                return iteration
        return None

    def _launch_anywhere(
        self, iteration: Iteration, stream: StreamExecutor, thread: ExecutorThread
    ) -> None:
        if not thread.has_device:
            # Once: it lets go of the interpreter, which takes long to get back.
            stream.activate()
            thread.has_device = True
        launched = self.launch(iteration, stream)
        if launched is not None:
            self.complete(iteration, stream, launched)

    def launch(self, iteration: Iteration, stream: StreamExecutor) -> LaunchedStage | None:
        """Launch the stage of an iteration that the calling thread owns; or begin the iteration.

        The device is current in that thread.
        """
        if iteration.state is BEGINNING:
            self._starter.begin(iteration)
            return None
        if iteration.state is AWAITING_FILES:
            self._starter.await_files(iteration)
            return None
        try:
            program = self._programs.on_gpu(iteration, iteration.stage)
            launched = stream.launch(program, iteration, defer=stream.name == "mixed")
        except BaseException as error:  # of any kind: a thread waits for this iteration
            self._leave(iteration, stream, error)
            return None
        if launched.deferred:
            return launched
        self.complete(iteration, stream, launched)
        return None

    def complete(
        self, iteration: Iteration, stream: StreamExecutor, launched: LaunchedStage
    ) -> None:
        """Complete a stage that `launch` has returned."""
        failed: BaseException | None = None
        try:
            stream.complete(iteration, launched)
        except BaseException as error:  # of any kind: a thread waits for this iteration
            failed = error
        self._leave(iteration, stream, failed)

    def launch_behind(self) -> None:
        """Launch the work queued for the stream after that of decoders."""
        stream = self.streams.get("gpu")
        monitor = self._schedule.monitor
        while stream is not None:
            with monitor.lock:
                is_free = not (stream.busy or monitor.closed)
                iteration = self.take_queued(stream.name) if is_free else None
            if iteration is None:
                return
            self.launch(iteration, stream)

    def _leave(
        self, iteration: Iteration, stream: StreamExecutor, failed: BaseException | None
    ) -> None:
        """Continue an iteration whose stage was launched, or has failed."""
        following: Program | str | None = None
        try:
            if failed is None:
                iteration.completed = iteration.stage
                following = self._stages.following(iteration)
            else:
                following = self._stages.mend(iteration, failed)
                failed = None
        except BaseException as given_up:
            failed = given_up
        schedule = self._schedule
        monitor, consumer = schedule.monitor, schedule.consumer
        with monitor.lock:
            stream.busy = False
            if monitor.closed:  # its own thread waits for that
                monitor.streams[stream.name].notify_all()
            schedule.follow(iteration, following, failed)
            schedule.advance(iteration)
            if consumer.is_here and not consumer.is_inline:
                self._wake_left_streams(iteration)
            schedule.tell_progress()

    def _wake_left_streams(self, iteration: Iteration) -> None:
        """Have other iterations looked at that were queued while the consumer worked on this one.
        The caller holds the lock.
        """
        for other in self._schedule.queue:
            if other.state is QUEUED and other is not iteration:
                self._schedule.monitor.streams[other.stream].notify()
