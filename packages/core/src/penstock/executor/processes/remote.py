"""The worker processes of one pipeline, as the threads of its executor see them.

Each thread has a process of its own. It sends samples there in place of carrying them itself, and
waits without the interpreter until they are done. All that is decided for a pipeline is decided
here: a process knows only the samples at hand.
"""

from __future__ import annotations

import contextlib
import os
import threading
import weakref
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.errors import (
    BadSampleError,
    ShapeError,
    UsageError,
    WorkerProcessError,
    located,
)
from penstock.executor.processes.errors import PackedError
from penstock.executor.processes.graph import Graph, PackedGraph
from penstock.executor.processes.messages import (
    ABSENT,
    EMPTY,
    IN_PLACE,
    Column,
    Done,
    Input,
    More,
    Output,
    Refused,
    Task,
)
from penstock.executor.processes.server_process import SERVER
from penstock.executor.processes.shared_pool import SHARED_POOL, Place
from penstock.executor.processes.worker import shared_reads
from penstock.tensors.rows import pack_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from penstock.executor.cpu.batch import BatchBuffer
    from penstock.executor.cpu.program import Program
    from penstock.executor.cpu.runner import SampleRunner
    from penstock.executor.iteration import Iteration
    from penstock.executor.sources.channel import Channel

_SMALL_BYTES = 1024
"""Samples of no more travel in the message."""
_Failures = list[tuple[int, BaseException]]


class LostWorkerError(Exception):
    """A worker process has ended, or does not take this pipeline."""


class WorkerProcess:
    """One worker process and what it knows. Used by one thread.

    Parameters
    ----------
    graph
        The pipeline.
    processors
        Those it is bound to; empty for any.
    """

    def __init__(self, graph: PackedGraph, processors: list[int]) -> None:
        self.pid = 0
        self.files: set[int] = set()
        """Shared files that it has mapped."""
        self.programs: set[int] = set()
        self._channel: Channel = SERVER.fork(graph.modules)
        weakref.finalize(self, self._channel.close)  # no thread can be waiting for it then
        self.send(("graph", graph.parts, processors), graph.file)

    def send(self, message: Any, file: int | None = None) -> None:
        """Send a message; `LostWorkerError` if nobody is there."""
        try:
            self._channel.send(message, file)
        except OSError as error:
            raise LostWorkerError from error

    def receive(self) -> Any:
        """Wait for an answer; `LostWorkerError` if the process ends before."""
        try:
            message, _ = self._channel.receive()
            if isinstance(message, int):
                self.pid = message
                message, _ = self._channel.receive()
        except (EOFError, OSError) as error:
            raise LostWorkerError from error
        return message

    def show(self, place: Place) -> None:
        """See to it that the process has mapped the file of a place."""
        if place.file in self.files:
            return
        for number in [n for n in self.files if SHARED_POOL.file(n) is None]:
            self.send(("drop", number))
            self.files.discard(number)
        file = SHARED_POOL.file(place.file)
        assert file is not None
        self.send(("file", file.number, file.size), file.descriptor)
        self.files.add(place.file)

    def end(self) -> None:
        """Have the process end when it has done what it is at, and nobody wait for it."""
        with contextlib.suppress(OSError):
            self._channel.shutdown()


class WorkerProcesses:
    """The worker processes of one pipeline.

    Parameters
    ----------
    graph
        The pipeline.
    outputs
        Its outputs.
    count
        How many processes.
    bind
        Whether each is bound to a processor.

    Raises
    ------
    ArgumentTypeError
        If the graph cannot travel.
    """

    def __init__(self, graph: Graph, outputs: list[Any], count: int, *, bind: bool) -> None:
        self._graph = PackedGraph(graph, outputs)
        self.policy = graph.policy
        self.pool = SHARED_POOL
        """Where memory for samples comes from."""
        self.refused = ""
        """Why processes do not take the pipeline, where they have said so."""
        self._bind = bind
        self._workers: list[WorkerProcess | None] = [None] * count
        self._numbers: dict[Program, int] = {}
        self._lock = threading.Lock()
        """Guards the workers, the numbers of programs, and whether they are closed."""
        self._closed = False
        self.carry_lock = threading.Lock()
        """Held while a batch is put into shared memory."""

    def start(self) -> None:
        """Start the processes; do not wait for them."""
        for number in range(len(self._workers)):
            self.worker(number)

    def runner(self, program: Program, number: int, own: SampleRunner) -> RemoteRunner:
        """What has process `number` carry samples through a stage; see `RemoteRunner`."""
        return RemoteRunner(program, self, number, own)

    def worker(self, number: int) -> WorkerProcess:
        """Process `number`, started if it is not there."""
        with self._lock:
            if self._closed:
                raise UsageError("The pipeline was shut down.")
            found = self._workers[number]
            if found is None:
                processors: list[int] = []
                if self._bind:
                    allowed = sorted(os.sched_getaffinity(0))
                    processors = [allowed[number % len(allowed)]]
                found = self._workers[number] = WorkerProcess(self._graph, processors)
            return found

    def lose(self, number: int) -> int:
        """Let go of process `number`, which has ended, and return what the system called it."""
        with self._lock:
            worker = self._workers[number]
            self._workers[number] = None
        if worker is None:
            return 0
        return worker.pid

    def number_of(self, program: Program) -> int:
        """What a program is called in messages."""
        with self._lock:
            return self._numbers.setdefault(program, len(self._numbers))

    @property
    def is_closed(self) -> bool:
        """Whether the pipeline was shut down."""
        return self._closed

    def pids(self) -> list[int]:
        """Numbers of the processes that have answered."""
        return [w.pid for w in self._workers if w is not None and w.pid]

    def close(self) -> None:
        """Have all processes end."""
        # Without the lock, which the thread may hold that this is called in, by the garbage
        # collector: what is started now is closed by whoever starts it.
        if self._closed:
            return
        self._closed = True
        for worker in self._workers:
            if worker is not None:
                worker.end()


class RemoteRunner:
    """Has samples carried through a stage by a worker process; in place of a `SampleRunner`.

    Parameters
    ----------
    program
        The stage.
    processes
        Those of the pipeline.
    number
        Which of them.
    own
        What carries the samples where the processes do not take the pipeline.
    """

    def __init__(
        self, program: Program, processes: WorkerProcesses, number: int, own: SampleRunner
    ) -> None:
        self._program = program
        self._processes = processes
        self._number = number
        self._own = own
        self._iteration: Any = None
        self._room_bytes = 0
        """Room that a sample takes, about."""
        self.processor_seconds = 0.0
        """What the samples last carried took of a processor elsewhere."""

    def bind(self, iteration: Iteration) -> None:
        """Turn to another iteration's buffers."""
        self._iteration = iteration

    def release(self) -> None:
        """Let go of the iteration's buffers, which may belong to the user by now."""
        self._iteration = None

    def run(self, indices: list[int]) -> _Failures:
        """Carry samples through all steps; return what failed, and how.

        Raises
        ------
        WorkerProcessError
            If the process has ended meanwhile, and that is not to be made up for.
        """
        processes = self._processes
        self.processor_seconds = 0.0
        if processes.refused:
            return self._carried_here(indices)
        try:
            return self._carried(indices)
        except LostWorkerError:
            lost = self._lose(indices)
        if processes.refused:
            return self._carried_here(indices)
        if processes.policy == "raise":
            raise lost
        try:  # the end of a process may have nothing to do with the samples it had
            return self._carried(indices)
        except LostWorkerError:
            self._lose(indices)
        failures: _Failures = []
        for index in indices:
            try:
                failures += self._carried([index])
            except LostWorkerError:
                bad = BadSampleError(str(self._lose([index])))
                failures.append((index, self._located(bad, index)))
        return failures

    def _carried_here(self, indices: list[int]) -> _Failures:
        self._own.bind(self._iteration)
        try:
            return self._own.run(indices)
        finally:
            self._own.release()

    def _lose(self, indices: list[int]) -> WorkerProcessError:
        pid = self._processes.lose(self._number)
        several = len(indices) > 1
        return WorkerProcessError(
            f"Worker process {pid} ended while it worked on "
            f"{'samples' if several else 'sample'} {', '.join(map(str, indices))} of iteration "
            f"{self._iteration.number}: it was killed, as by a system that is short of memory, or "
            "a library that it calls has crashed. The pipeline goes on with another one."
        )

    def _located(self, error: Exception, index: int) -> BaseException:
        step = self._program.steps[0]
        source = None
        if step.is_reader:
            source = step.op.index.source(int(self._iteration.entries[id(step.node)][index]))
        found = located(error, step.node.where(index, source))
        found.__cause__ = error
        return found

    def _carried(self, indices: list[int]) -> _Failures:
        program, iteration, processes = self._program, self._iteration, self._processes
        worker = processes.worker(self._number)
        number = processes.number_of(program)
        inputs = [self._input(r, indices) for r in shared_reads(program)]
        wholes = [iteration.buffers[r].expect_rows() for r, _ in program.written]
        outputs = [
            _output(iteration.buffers[r], whole)
            for (r, _), whole in zip(program.written, wholes, strict=True)
        ]
        blocks: list[np.ndarray] = []
        room = self._block(self._room_bytes * len(indices), blocks)
        for place in (
            *(Place(i.file, 0, 0) for i in inputs if i.values is None),
            *(o.whole for o in outputs if o.whole is not None),
            *(() if room is None else (room,)),
        ):
            worker.show(place)
        if number not in worker.programs:
            specs = {r: program.specs[r] for r in program.given}
            worker.send(("program", number, program.stage.number, specs, program.is_whole))
            worker.programs.add(number)
        entries = [iteration.entries[id(node)][indices] for node in program.plan.readers]
        task = Task(
            number, iteration.number, iteration.size, indices, entries, inputs, outputs, room
        )
        worker.send(("task", task))
        while isinstance(answer := worker.receive(), More):
            more = self._block(answer.size, blocks)
            assert more is not None
            worker.show(more)
            worker.send(("room", more))
        if isinstance(answer, Refused):
            processes.refused = answer.reason
            raise LostWorkerError
        if isinstance(answer, PackedError):
            raise answer.unpacked()
        return self._taken(answer, blocks)

    def _block(self, size: int, blocks: list[np.ndarray]) -> Place | None:
        if not size:
            return None
        block = SHARED_POOL.empty((size,), np.uint8)
        blocks.append(block)
        return SHARED_POOL.place_of(block)

    def _input(self, register: int, indices: list[int]) -> Input:
        """The samples of a register that the worker is to read."""
        iteration = self._iteration
        buffer = iteration.buffers[register]
        sources = None
        if buffer.sources is not None:
            sources = [buffer.sources[index] for index in indices]
        carried: Carried | None = iteration.carried.get(register)
        if carried is None or carried.buffer is not buffer:
            with self._processes.carry_lock:
                carried = iteration.carried.get(register)
                if carried is None or carried.buffer is not buffer:
                    carried = iteration.carried[register] = Carried(buffer)
        return carried.part(indices, sources)

    def _taken(self, answer: Done, blocks: list[np.ndarray]) -> _Failures:
        """Make what a worker has made the samples of the iteration; return what failed."""
        self.processor_seconds = answer.processor_seconds
        failures: _Failures = [(k, error.unpacked()) for k, error in answer.failures]
        program = self._program
        used = 0
        for (r, _), column in zip(program.written, answer.columns, strict=True):
            buffer = self._iteration.buffers[r]
            if column.sources is not None:
                buffer.set_sources(answer.good, column.sources)
            if column.blocks is None:
                buffer.note_rows(answer.good)
                continue
            others, rows = _rows(column, buffer, answer.good, blocks)
            used += sum(row.nbytes for row in rows)
            try:
                if rows:
                    buffer.check(rows[0].shape, buffer.dtype)
            except ShapeError as error:
                step = next(s for s in program.steps if r in s.outputs)
                failures += [(index, located(error, step.node.where(index))) for index in others]
                break
            buffer.take_rows(others, rows)
        if used or self._room_bytes:
            each = used // max(len(answer.good), 1)
            # With the place that is lost to alignment, and to samples larger than most.
            self._room_bytes = max(each * 9 // 8 + 128 if each else 0, self._room_bytes * 15 // 16)
        return failures


def _output(buffer: BatchBuffer, whole: np.ndarray | None) -> Output:
    if whole is None:
        return Output(None, None, buffer.ndim)
    place = SHARED_POOL.place_of(whole) if whole.size else None
    return Output(place, whole.shape[1:], buffer.ndim)


def _rows(
    column: Column, buffer: BatchBuffer, indices: list[int], blocks: Sequence[np.ndarray]
) -> tuple[list[int], list[np.ndarray]]:
    """The samples that are not in their places; of those that are, `buffer` takes note."""
    assert column.blocks is not None
    assert column.offsets is not None
    assert column.shapes is not None
    dtype = buffer.dtype
    others, rows = [], []
    for index, block, offset, shape in zip(
        indices,
        column.blocks.tolist(),
        column.offsets.tolist(),
        column.shapes.tolist(),
        strict=True,
    ):
        if block == IN_PLACE:
            buffer.note_rows((index,))
        elif block != ABSENT:
            others.append(index)
            if block == EMPTY:
                rows.append(np.empty(shape, dtype))
            else:
                rows.append(np.ndarray(shape, dtype, blocks[block], offset))
    return others, rows


class Carried:
    """A batch that workers read, where they can read it. Once for each batch."""

    __slots__ = ("_file", "_memory", "_offsets", "_shapes", "_values", "buffer")

    def __init__(self, buffer: BatchBuffer) -> None:
        self.buffer = buffer
        self._values: np.ndarray | None = None
        dense = buffer.dense
        if dense is not None and dense[:1].nbytes <= _SMALL_BYTES:
            self._values = dense
            return
        rows: list[np.ndarray] = buffer.rows  # type: ignore[assignment]
        # Nobody reads what is in the place of a sample that has failed or took another branch.
        any_row = next((row for row in rows if row is not None), None)
        if any_row is None:
            self._values = np.empty((len(rows), 0), buffer.dtype)
            return
        rows = [any_row if row is None else row for row in rows]
        shapes = np.array([row.shape for row in rows], np.int64).reshape(len(rows), -1)
        found = SHARED_POOL.places_of(rows)
        if found is None:
            copies = pack_rows(shapes, rows[0].dtype, SHARED_POOL.empty)
            for row, copy in zip(rows, copies.rows, strict=True):
                np.copyto(copy, row)
            self._memory = copies.flat
            found = SHARED_POOL.places_of(copies.rows)
            assert found is not None
        self._shapes = shapes
        self._file, self._offsets = found

    def part(self, indices: list[int], sources: list[str] | None) -> Input:
        """Some of the samples."""
        dtype = self.buffer.dtype
        if self._values is not None:
            return Input(self._values[indices], 0, None, None, dtype, sources)
        return Input(
            None, self._file, self._offsets[indices], self._shapes[indices], dtype, sources
        )
