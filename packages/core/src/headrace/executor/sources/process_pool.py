"""Processes that run sources, as the main process sees them."""

from __future__ import annotations

import atexit
import contextlib
import multiprocessing
import os
import signal
import sys
import time
import weakref
from collections import deque
from multiprocessing import connection, resource_tracker
from multiprocessing import util as _util  # its own end of the program is to come after ours
from typing import TYPE_CHECKING, Any

from headrace.errors import ArgumentValueError, SourceWorkerError, UsageError
from headrace.executor.sources.channel import Channel
from headrace.executor.sources.process_worker import Report, WorkerSources, serve
from headrace.executor.sources.segments import SegmentReader
from headrace.operators.support.external.parallel.tasks import RewindTask
from headrace.operators.support.external.parallel.wire_format import OutputSamples, copied, read
from headrace.operators.support.external.parallel.workers import SourceEntry, TaskHandle, raised_in
from headrace.pickling import Pickler
from headrace.tensors.pool import HOST_POOL

if TYPE_CHECKING:
    from multiprocessing.process import BaseProcess

    from headrace.operators.support.external.parallel.tasks import Task

assert _util is not None
LENT_LIMIT = 32
"""From how many segments of a worker in use on results are copied out of them."""
_POLL_SECONDS = 1.0
_ASKS_AFTER_SECONDS = 2.0
_WARN_AFTER_SECONDS = 10.0
_IO_TIMEOUT_SECONDS = 10.0
_JOIN_TIMEOUT_SECONDS = 1.0
_IN_FLIGHT_BYTES = 1 << 16
"""Tasks sent ahead; more might fill the socket of a worker that is busy."""

_open: weakref.WeakSet[ProcessPool] = weakref.WeakSet()


class _Process:
    """A worker process with its pending tasks and answers."""

    def __init__(self, process: BaseProcess, channel: Channel, watch: Channel) -> None:
        self.process = process
        self.channel = channel
        self.watch = watch
        self.segments = SegmentReader()
        self.sent: dict[int, TaskHandle] = {}
        self.waiting: deque[TaskHandle] = deque()
        self.asked = False
        self.heard = time.monotonic()

    @property
    def load(self) -> int:
        """Number of its pending tasks."""
        return len(self.sent) + len(self.waiting)


class ProcessPool:
    """Worker processes of one pipeline."""

    def __init__(
        self,
        entries: list[SourceEntry],
        count: int,
        *,
        start_method: str,
        pickler: Any = None,
        timeout_seconds: float | None = None,
    ) -> None:
        self.size = count
        self._where = [e.where for e in entries]
        self._timeout = timeout_seconds
        self._pid = os.getpid()
        self._broken = ""
        self._given = 0
        self._start_method = start_method
        self._warned: set[int] = set()
        self._processes: list[_Process] = []
        self._end = weakref.finalize(self, _end_processes, self._processes, self._pid)
        try:
            context = multiprocessing.get_context(start_method)
        except ValueError as error:
            methods = ", ".join(multiprocessing.get_all_start_methods())
            raise ArgumentValueError(
                f"`py_start_method` is {start_method!r}; here it can be {methods}."
            ) from error
        traits = [e.traits for e in entries]
        if start_method == "fork":
            sources = WorkerSources(traits, [e.source for e in entries], [], None)
        else:
            packer = Pickler(pickler)
            packed = [packer.dumps(e.source) for e in entries]
            sources = WorkerSources(traits, None, packed, packer.loads)
        try:
            for _ in range(count):
                self._start(context, sources)
        except BaseException:
            self.close()
            raise
        _open.add(self)

    def _start(self, context: Any, sources: WorkerSources) -> None:
        if getattr(multiprocessing.current_process(), "daemon", False):
            raise UsageError(
                "This process is a daemon of `multiprocessing` (the worker of a DataLoader, say), "
                'which may have no processes of its own: use parallel="threads" here.'
            )
        ours, theirs = Channel.pair()
        ours_watch, theirs_watch = Channel.pair()
        channel = Channel(ours, _IO_TIMEOUT_SECONDS)
        watch = Channel(ours_watch, _IO_TIMEOUT_SECONDS)
        inherited: list[Any] = []
        if self._start_method == "fork":
            inherited = [channel, watch]
            for other in self._processes:
                inherited += [other.channel, other.watch]
        process = context.Process(
            target=serve,
            args=(theirs, theirs_watch, inherited, sources),
            kwargs={"own_child": self._start_method != "forkserver"},
            name=f"headrace-source-{len(self._processes)}",
            daemon=True,
        )
        if self._start_method == "spawn":
            # It would be started below otherwise, and unblock the signal.
            resource_tracker.ensure_running()
        # A Ctrl-C waits until all is in its place, on both sides.
        blocked = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            process.start()
            self._processes.append(_Process(process, channel, watch))
        finally:
            theirs.close()
            theirs_watch.close()
            signal.pthread_sigmask(signal.SIG_SETMASK, blocked)

    def pids(self) -> list[int]:
        """Numbers of the processes."""
        return [int(p.process.pid or 0) for p in self._processes]

    def shared_memory_sizes(self) -> list[int]:
        """Size of each segment of shared memory, in bytes."""
        return [size for p in self._processes for size in p.segments.sizes()]

    # -- tasks -------------------------------------------------------------------------------------

    def submit(self, source: int, task: Task, worker: int | None = None) -> TaskHandle:
        """Have a task done; see `Workers`."""
        self._check_open()
        if worker is None:
            turn = self._given
            loads = [self._processes[(turn + k) % self.size].load for k in range(self.size)]
            worker = (turn + loads.index(min(loads))) % self.size
        handle = TaskHandle(self._given, source, task, worker)
        self._given += 1
        self._processes[worker].waiting.append(handle)
        self._flush(worker)
        return handle

    def _flush(self, number: int) -> None:
        """Send as much as the worker can receive."""
        worker = self._processes[number]
        returned = worker.segments.collect()
        with self._exchange(number):
            if returned:
                worker.channel.send(("free", returned))
            while worker.waiting:
                handle = worker.waiting[0]
                if not handle.packed:
                    message = ("task", handle.number, handle.source, handle.task)
                    handle.packed = Channel.packed(message)
                on_the_way = sum(len(t.packed) for t in worker.sent.values())
                if worker.sent and on_the_way + len(handle.packed) > _IN_FLIGHT_BYTES:
                    return
                worker.waiting.popleft()
                worker.sent[handle.number] = handle
                worker.channel.send_packed(handle.packed)

    def discard(self, handles: list[TaskHandle]) -> None:
        """Give up tasks; see `Workers`."""
        unwanted: dict[int, list[int]] = {}
        for handle in handles:
            handle.discarded = True
            handle.outcome = None  # with it, what it holds of the shared memory
            worker = self._processes[handle.worker]
            if handle.number in worker.sent:
                unwanted.setdefault(handle.worker, []).append(handle.number)
            elif handle in worker.waiting and not isinstance(handle.task, RewindTask):
                worker.waiting.remove(handle)
        if self._broken:
            return
        for number, numbers in unwanted.items():
            with self._exchange(number):
                self._processes[number].channel.send(("cancel", numbers))

    def wait(self, handle: TaskHandle) -> list[OutputSamples]:
        """Wait for the result of a task; see `Workers`."""
        worker = self._processes[handle.worker]
        began = worker.heard = time.monotonic()
        while handle.outcome is None:
            self._check_open()
            self._receive_some(handle)
            if handle.outcome is None and time.monotonic() - began > _ASKS_AFTER_SECONDS:
                self._look_after(handle)
        kind, *content = handle.outcome
        handle.outcome = ()
        if kind == "end":
            raise StopIteration
        if kind == "failed":
            packed, sample = content
            raise raised_in(packed.unpacked(), self._place(handle, sample))
        memory, described = content
        if memory is None:
            return []
        parts = read(memory, described)
        if worker.segments.lent > LENT_LIMIT:  # a consumer that keeps batches may keep them all
            parts = [copied(part, HOST_POOL) for part in parts]
        return parts

    def _receive_some(self, handle: TaskHandle) -> None:
        """Wait for messages, and take them in."""
        awaited: dict[Any, int] = {}
        for number, worker in enumerate(self._processes):
            awaited[worker.channel] = awaited[worker.process.sentinel] = number
        awaited[self._processes[handle.worker].watch] = handle.worker
        ready: list[Any] = connection.wait(list(awaited), _POLL_SECONDS)
        # What a worker sent before it died is taken in before its death.
        for each in sorted(ready, key=lambda r: isinstance(r, int)):
            number = awaited[each]
            worker = self._processes[number]
            with self._exchange(number):
                if each is worker.channel:
                    self._take_in(number)
                elif each is worker.watch:
                    self._hear(handle, worker.watch.receive()[0])
                elif not worker.channel.ready():
                    raise EOFError

    def _take_in(self, number: int) -> None:
        worker = self._processes[number]
        (kind, *content), file = worker.channel.receive()
        if kind == "segment":
            assert file is not None
            worker.segments.add(content[0], file, content[1])
            return
        if kind == "broken":
            error = content[0].unpacked()
            raise self._break(
                f"A worker process could not unpack the sources: {type(error).__name__}: {error}. "
                "What they refer to must be found by a new process that imports the main module: "
                'not below `if __name__ == "__main__":`, nor in a notebook.'
            ) from error
        handle = worker.sent.pop(content[0])
        outcome: tuple[Any, ...] = (kind, *content[1:])
        if kind == "done":
            segment, described, dropped = content[1:]
            memory = None if segment is None else worker.segments.borrow(segment)
            outcome = (kind, memory, described)
            worker.segments.drop(dropped)
            del memory
        if not handle.discarded:
            handle.outcome = outcome
        del outcome
        self._flush(number)

    @contextlib.contextmanager
    def _exchange(self, number: int) -> Any:
        """Handle errors while messages are sent or received."""
        try:
            yield
        except SourceWorkerError:
            raise
        except (EOFError, BrokenPipeError, ConnectionError):
            self._hear_last(number)
            raise self._break(self._obituary(number)) from None
        except TimeoutError:
            raise self._break(
                f"Worker process {self._processes[number].process.pid} of parallel external "
                f"sources stopped in the middle of a message{self._task_of(number)}."
            ) from None
        except BaseException:  # a Ctrl-C, perhaps in the middle of a message
            self._break("The exchange with the workers of parallel external sources was cut off.")
            raise

    # -- trouble -------------------------------------------------------------------------------

    def _place(self, handle: TaskHandle, sample: int | None = None) -> str:
        at = f"sample {sample} of the batch, " if sample is not None else ""
        pid = self._processes[handle.worker].process.pid
        return f"worker process {pid} at {at}{handle.task}, for {self._where[handle.source]}"

    def _hear_last(self, number: int) -> None:
        """Find the last task of a dead worker, so that its death is reported with the right
        task.
        """
        worker = self._processes[number]
        with contextlib.suppress(EOFError, OSError):
            while worker.channel.ready():
                (kind, *content), file = worker.channel.receive()
                if file is not None:
                    os.close(file)
                if kind in ("done", "end", "failed"):
                    worker.sent.pop(content[0], None)

    def _task_of(self, number: int) -> str:
        for handle in self._processes[number].sent.values():
            return f", at {handle.task}, for {self._where[handle.source]}"
        return ", when it had nothing to do"

    def _obituary(self, number: int) -> str:
        worker = self._processes[number]
        worker.process.join(_JOIN_TIMEOUT_SECONDS)
        code = worker.process.exitcode
        if code is None:
            how = "closed its connection"
        elif code < 0:
            how = f"was killed by signal {-code}"
            with contextlib.suppress(ValueError):  # not all of them have names
                how = f"was killed by signal {signal.Signals(-code).name}"
            if code == -signal.SIGKILL:
                how += " (by a user, or by the system because memory ran out)"
        else:
            how = f"ended by itself with exit code {code}"
        text = f"Worker process {worker.process.pid} of parallel external sources {how}"
        text += f"{self._task_of(number)}."
        if self._start_method != "fork" and code == 1:
            text += (
                " Where workers are started anew, the main module is imported by each of them: "
                'what it runs must stand below `if __name__ == "__main__":`. See their output.'
            )
        return text

    def _break(self, text: str) -> SourceWorkerError:
        """Give up all workers; the error to raise."""
        self._broken = self._broken or text
        self.close()
        return SourceWorkerError(text)

    def _check_open(self) -> None:
        if self._pid != os.getpid():
            raise UsageError(
                "The workers of parallel external sources belong to another process, of which "
                "this one is a fork. Build a pipeline of its own in each process."
            )
        if self._broken:
            raise SourceWorkerError(self._broken)

    def _look_after(self, handle: TaskHandle) -> None:
        """See whether a worker that takes long is still at work."""
        worker = self._processes[handle.worker]
        now = time.monotonic()
        if not worker.asked:
            # Not so often that the answers were work themselves.
            if now - worker.heard >= _POLL_SECONDS:
                with self._exchange(handle.worker):
                    worker.watch.send(None)
                worker.asked = True
                worker.heard = now
            return
        silent = now - worker.heard
        if silent > _ASKS_AFTER_SECONDS:
            stopped = _state_of(worker.process.pid) == "T"
            if stopped or (self._timeout is not None and silent > self._timeout):
                why = "is stopped (SIGSTOP)" if stopped else "does not answer"
                raise self._break(
                    f"Worker process {worker.process.pid} of parallel external sources "
                    f"{why}{self._task_of(handle.worker)}."
                )

    def _hear(self, awaited: TaskHandle, report: Report) -> None:
        worker = self._processes[awaited.worker]
        worker.asked = False
        worker.heard = time.monotonic()
        handle = worker.sent.get(-1 if report.handle is None else report.handle)
        if handle is None or report.seconds < _WARN_AFTER_SECONDS:
            return
        place = f"{self._place(handle)}\n\n{report.stack}"
        if self._timeout is not None and report.idle_seconds > self._timeout:
            raise self._break(
                f"A parallel external source hangs: it has not returned for {report.seconds:.0f} "
                f"seconds, nor computed for {report.idle_seconds:.0f}, in {place}\n"
                "`py_worker_timeout_seconds` of the pipeline says how long it may take; None for "
                "any time."
            )
        if handle.number not in self._warned:
            self._warned.add(handle.number)
            _warn(
                f"A parallel external source has not returned for {report.seconds:.0f} seconds, "
                f"in {place}"
            )

    def close(self) -> None:
        """End all processes."""
        self._broken = self._broken or "The workers of parallel external sources were ended."
        _open.discard(self)
        self._end()


def _warn(text: str) -> None:
    import warnings

    warnings.warn(text, RuntimeWarning, stacklevel=2)


def _state_of(pid: int | None) -> str:
    """Letter of the state of a process: T when it is stopped; empty where that is not known."""
    if not sys.platform.startswith("linux"):
        return ""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return ""


def _end_processes(processes: list[_Process], pid: int) -> None:
    if pid != os.getpid():
        return  # they are the parent's
    for worker in processes:
        for channel in (worker.channel, worker.watch):
            with contextlib.suppress(OSError):  # the process has ended
                channel.shutdown()  # closing alone: forks have the connection, too
            channel.close()
        worker.waiting.clear()
        worker.segments.clear()
    latest = time.monotonic() + _JOIN_TIMEOUT_SECONDS
    for worker in processes:
        worker.process.join(max(0.0, latest - time.monotonic()))
    for worker in processes:
        if worker.process.is_alive():
            worker.process.kill()
        worker.process.join()


@atexit.register
def _close_all() -> None:
    for pool in list(_open):
        pool.close()
