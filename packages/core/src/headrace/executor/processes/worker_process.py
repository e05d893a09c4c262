"""One worker process, as the thread sees it that has it carry samples."""

from __future__ import annotations

import contextlib
import os
import signal
import weakref
from typing import TYPE_CHECKING, Any

from headrace.errors import WorkerProcessError
from headrace.executor.processes.server_process import SERVER
from headrace.executor.processes.shared_pool import SHARED_POOL
from headrace.executor.sources.channel import wait_for_any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.executor.processes.graph import PackedGraph
    from headrace.executor.sources.channel import Channel

_LOOK_SECONDS = 1.0
"""Interval of checks on a process that has not answered."""
_END_SECONDS = 10.0
"""Time that a killed process may take to exit."""


class LostWorkerError(Exception):
    """A worker process has ended, or was ended because it does nothing; the text says how.

    `pid`: its process id; 0 if it has not begun. `hung`: true if it did nothing.
    """

    def __init__(self, pid: int, how: str, *, hung: bool = False) -> None:
        super().__init__(how)
        self.pid = pid
        self.hung = hung


class WorkerProcess:
    """Parent-side handle of a worker process. Used by one thread at a time."""

    def __init__(self, modules: list[str], processors: tuple[int, ...]) -> None:
        self.pid = 0
        """Process id, once the process has reported it."""
        self.processors = processors
        self.timeout_seconds: float | None = None
        """Time it may neither answer nor compute; unlimited if None."""
        self.graphs: set[int] = set()
        """Graphs that it knows, by their numbers."""
        self.is_discarded = False
        """True if it is no longer used; see `WorkerPool.discard`."""
        self.changes = -1
        """State of the pool for which it has forgotten unused graphs."""
        self._files: set[int] = set()
        """Shared files that it has mapped."""
        self._programs: set[tuple[int, int]] = set()
        """Programs that it knows, by graph."""
        self._channel: Channel = SERVER.fork(modules)
        weakref.finalize(self, self._channel.close)  # no thread can be waiting for it then
        self.send(("bind", processors))

    def send(self, message: Any, file: int | None = None) -> None:
        """Send a message. Raises `LostWorkerError` if the process is gone or does not read."""
        try:
            self._channel.send(message, file)
        except BlockingIOError as error:
            raise self._hangs(self.pid) from error
        except OSError as error:
            raise LostWorkerError(self.pid, "ended") from error

    def receive(self) -> Any:
        """Wait for an answer, without the interpreter. Raises `LostWorkerError` if the process
        ends, or neither answers nor computes for `timeout_seconds`.
        """
        try:
            message = self._message()
            if isinstance(message, int):
                self.pid = message
                message = self._message()
        except (EOFError, OSError) as error:
            raise LostWorkerError(self.pid, "ended") from error
        return message

    def _message(self) -> Any:
        silent, used = 0.0, -1
        pid = 0
        while True:
            try:
                return self._channel.answer()
            except BlockingIOError:
                limit = self.timeout_seconds
                assert limit is not None
            pid = pid or self.pid or SERVER.pid()
            # Time in which this very process is stopped, too, does not count.
            before, (state, used) = used, activity(pid)
            silent = silent + _pause(limit) if used == before and state != "R" else 0.0
            if silent >= limit:
                raise self._hangs(pid)

    def _hangs(self, pid: int) -> LostWorkerError:
        """Kill the hung process, or the server `pid` that was to fork it; return the error to
        raise.
        """
        how = "was stopped" if activity(pid)[0] == "T" else "hung"
        if self.pid:
            self.kill()
        else:
            SERVER.kill(pid)  # the other workers end with it
        return LostWorkerError(
            pid,
            f"{how}, neither answering nor computing for {self.timeout_seconds:g} seconds "
            "(`py_worker_timeout_seconds`), and was killed",
            hung=True,
        )

    def know(self, graph: PackedGraph) -> None:
        """See to it that the process knows a graph."""
        if graph.number not in self.graphs:
            self.send(("graph", graph.number, graph.parts), graph.file)
            self.graphs.add(graph.number)

    def forget(self, graph: int) -> None:
        """Have the process let go of a graph."""
        self.graphs.discard(graph)
        self._programs = {key for key in self._programs if key[0] != graph}
        self.send(("forget", graph))

    def knows_program(self, key: tuple[int, int]) -> bool:
        """Return True if the process knows a program of a graph."""
        return key in self._programs

    def know_program(self, key: tuple[int, int], content: tuple[Any, ...]) -> None:
        """Tell the process about a program of a graph."""
        self.send(("program", key, *content))
        self._programs.add(key)

    def know_function(self, key: tuple[int, int], packed: bytes) -> None:
        """Tell the process about a function, as about a program."""
        self.send(("function", key, packed))
        self._programs.add(key)

    def show(self, number: int) -> None:
        """See to it that the process has mapped a shared file."""
        if number in self._files:
            return
        for other in [n for n in self._files if SHARED_POOL.file(n) is None]:
            self.send(("drop", other))
            self._files.discard(other)
        file = SHARED_POOL.file(number)
        assert file is not None
        self.send(("file", number, file.size), file.descriptor)
        self._files.add(number)

    def lend(self, timeout_seconds: float | None) -> None:
        """Prepare for one thread's use."""
        if timeout_seconds != self.timeout_seconds:
            self.timeout_seconds = timeout_seconds
            if timeout_seconds is None:
                self._channel.limit(0, 0)
            else:
                self._channel.limit(timeout_seconds, _pause(timeout_seconds))

    def is_ready(self) -> bool:
        """True if the process has begun, or has ended."""
        return bool(self.pid) or self._channel.wait(0)

    def has_ended(self) -> bool:
        """Return True if the idle process has exited."""
        try:
            while self._channel.wait(0):
                self.pid = self._channel.answer()  # else it has nothing to say
        except (EOFError, OSError):
            return True
        return False

    def end(self) -> None:
        """Ask the worker to exit after its current task; do not wait."""
        with contextlib.suppress(OSError):
            self._channel.shutdown()

    def kill(self) -> None:
        """End the process, and wait until it cannot write to shared memory any more."""
        with contextlib.suppress(EOFError, OSError):
            while self._channel.wait(0):
                self._channel.answer()  # it has ended: its number may be another process's by now
            if not self.pid:  # it has not begun with anything
                self.end()
                return
            os.kill(self.pid, signal.SIGKILL)
            # The kernel takes its memory from a process before it closes its files.
            while self._channel.wait(_END_SECONDS):
                self._channel.answer()


def that_answer(workers: Sequence[WorkerProcess], wakeup: int) -> list[int]:
    """Wait, at most for a while or until `wakeup` can be read, for an answer or the end of a
    worker; return the positions of workers that have one.
    """
    return wait_for_any([worker._channel for worker in workers], _LOOK_SECONDS, wakeup)


def _pause(timeout_seconds: float) -> float:
    """After how long a process is looked at that may be silent for `timeout_seconds`."""
    return min(_LOOK_SECONDS, timeout_seconds / 4)


def lost_error(lost: LostWorkerError, indices: list[int], iteration: int) -> WorkerProcessError:
    """The error for samples that a lost process had to work on."""
    several = len(indices) > 1
    why = "."
    if not lost.hung:
        why = (
            ": it was killed, as by a system that is short of memory, or a library that it "
            "calls has crashed."
        )
    return WorkerProcessError(
        f"Worker process {lost.pid} {lost} while it worked on "
        f"{'samples' if several else 'sample'} {', '.join(map(str, indices))} of iteration "
        f"{iteration}{why} The pipeline goes on with another one."
    )


def activity(pid: int) -> tuple[str, int]:
    """Letter of the state of a process (R: it wants a processor, T: it is stopped), and time of
    processors that it has used, in ticks of the system's clock; ``("", 0)`` if there is none.
    """
    try:
        with open(f"/proc/{pid}/stat") as file:
            fields = file.read().rpartition(")")[2].split()
        return fields[0], int(fields[11]) + int(fields[12])
    except (OSError, IndexError, ValueError):
        return "", 0
