"""Main loop of a worker process: tasks come in, samples are made in memory of the parent."""

from __future__ import annotations

import contextlib
import os
import pickle
import time
from collections import deque
from typing import Any

import numpy as np

from headrace.errors import HeadraceError
from headrace.executor.cpu.arena import Arena
from headrace.executor.cpu.batch import BatchBuffer
from headrace.executor.cpu.program import Program
from headrace.executor.cpu.runner import SampleRunner
from headrace.executor.cpu.shape_statistics import ShapeStatistics
from headrace.executor.cpu.step_marks import StepMarks
from headrace.executor.guards import Choices
from headrace.executor.packed_error import PackedError
from headrace.executor.processes.foreign import read_rows
from headrace.executor.processes.graph import Graph, unpack
from headrace.executor.processes.messages import (
    CallTask,
    CopyRequest,
    FunctionResults,
    InputColumn,
    MemoryRequest,
    Rejection,
    Returned,
    Task,
    TaskBatch,
    TaskResult,
)
from headrace.executor.processes.task_memory import MappedFiles, TaskMemory, WorkerBuffer
from headrace.executor.sources.channel import Channel
from headrace.operators.support.python_function import FunctionCaller
from headrace.operators.support.schema import Spec
from headrace.profiling.rows import SpanRows
from headrace.tensors.interop import dali_type

_ROWS = 1024
"""Rows of a profile that are kept until the answer: a task has few steps and groups."""


class TaskIteration:
    """Part of an iteration that a task needs; stands in for it in a `SampleRunner`."""

    seeds = None

    def __init__(
        self, number: int, entries: dict[int, np.ndarray], buffers: list[BatchBuffer | None]
    ) -> None:
        self.number = number
        self.entries = entries
        self.buffers = buffers


class WorkerMain:
    """The loop of a worker process."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._files = MappedFiles()
        self._graphs: dict[int, Graph] = {}
        """Those of pipelines that it works for; not those that it refuses."""
        self._specs: dict[tuple[int, int], tuple[Any, ...]] = {}
        """Specs of programs, by number of the graph and of the program."""
        self._runners: dict[tuple[int, int], tuple[Program, SampleRunner]] = {}
        self._functions: dict[tuple[int, int], FunctionCaller] = {}
        self._arena = Arena()
        self._batch: tuple[bytes, TaskBatch | None] = b"", None
        """The batch that the last task belongs to, as it came, and unpacked."""
        self._waiting: deque[tuple[Any, ...]] = deque()
        """The next task, where that came before the memory for the present one."""

    def run(self) -> None:
        """Work until the parent closes its end."""
        self._channel.send(os.getpid())
        while True:
            if self._waiting:
                self._heed(self._waiting.popleft(), None)
            else:
                self._heed(*self._channel.receive())

    def _heed(self, message: tuple[Any, ...], file: int | None) -> None:
        kind, *content = message
        getattr(self, f"_on_{kind}")(*content, *(() if file is None else (file,)))

    def _on_bind(self, processors: tuple[int, ...]) -> None:
        if processors:
            with contextlib.suppress(OSError):  # taken away meanwhile
                os.sched_setaffinity(0, processors)

    def _on_graph(self, number: int, parts: list[tuple[int, int]], file: int) -> None:
        try:
            self._graphs[number] = unpack(file, parts)
        except Exception as error:
            self._channel.send(Rejection(f"{type(error).__name__}: {error}"))
        finally:
            os.close(file)

    def _on_forget(self, number: int) -> None:
        self._graphs.pop(number, None)
        known: dict[tuple[int, int], Any]
        for known in (self._specs, self._runners, self._functions):
            for key in [key for key in known if key[0] == number]:
                del known[key]

    def _on_file(self, number: int, size: int, file: int) -> None:
        self._files.add(number, file, size)

    def _on_drop(self, number: int) -> None:
        self._files.drop(number)

    def _on_program(
        self,
        key: tuple[int, int],
        stage: int,
        part: tuple[int, ...],
        choices: Choices,
        specs: dict[int, Spec],
        whole: bool,
    ) -> None:
        self._specs[key] = stage, part, choices, specs, whole

    def _made(self, key: tuple[int, int], graph: Graph) -> tuple[Program, SampleRunner]:
        found = self._runners.get(key)
        if found is None:
            stage, part, choices, specs, whole = self._specs[key]
            program = Program(
                *(graph.plan, graph.plan.part(stage, part), specs, graph.readers, graph.fuse),
                whole=whole,
                choices=choices,
            )
            # Its rows travel with the answer, and the first step has the code 0.
            marks = StepMarks(program, SpanRows(_ROWS), 0) if graph.is_profiled else None
            runner = SampleRunner(
                program, self._arena, materialise_views=not graph.fuse, marks=marks
            )
            found = self._runners[key] = program, runner
        return found

    def _on_task(self, *content: Any) -> None:
        task = Task(*content)
        packed, batch = self._batch
        if batch is None or packed != task.batch:
            batch = TaskBatch.unpacked(task.batch)
            self._batch = task.batch, batch
        graph = self._graphs.get(batch.program[0])
        if graph is None:  # it has said so
            return
        try:
            answer: Any = tuple(self._done(batch, task, graph))
        except Exception as error:  # of the engine, or of an operator's `infer`
            answer = PackedError.of(error)
        self._channel.send(answer)

    def _done(self, batch: TaskBatch, task: Task, graph: Graph) -> TaskResult:
        started = time.thread_time()
        program, runner = self._made(batch.program, graph)
        first = None if task.memory is None else self._files.memory(task.memory)
        memory = TaskMemory(len(task.indices), first, self._ask)
        buffers: list[BatchBuffer | None] = [None] * len(graph.plan.consumers)
        try:
            inputs = self._inputs(program, batch, task.indices)
        except OSError:  # the system does not let this process read them
            batch = self._ask_for_copies()
            inputs = self._inputs(program, batch, task.indices)
        for r, buffer in zip(shared_reads(program), inputs, strict=True):
            buffers[r] = buffer
        for r, array in program.constants.items():
            if r not in program.ahead:
                continue
            constant = BatchBuffer(batch.size, program.specs[r], ShapeStatistics())
            constant.rows = [array] * batch.size
            buffers[r] = constant
        written = []
        for (r, _), output in zip(program.written, batch.outputs, strict=True):
            made = WorkerBuffer.placed(batch.size, program.specs[r], output, memory, self._files)
            buffers[r] = made
            written.append(made)
        entries = {}
        for node, drawn in zip(graph.plan.readers, task.entries, strict=True):
            entries[id(node)] = whole = np.zeros(batch.size, np.int64)
            whole[task.indices] = drawn
        runner.bind(TaskIteration(batch.iteration, entries, buffers))  # type: ignore[arg-type]
        try:
            failures = runner.run(task.indices)
        finally:
            runner.release()
        failed = {index for index, _ in failures}
        good = [index for index in task.indices if index not in failed] if failed else task.indices
        return TaskResult(
            good if failed else None,
            [tuple(buffer.column(good, memory)) for buffer in written],
            [(index, PackedError.of(error)) for index, error in failures],
            time.thread_time() - started,
            runner.spans(),
        )

    def _on_function(self, key: tuple[int, int], packed: bytes) -> None:
        if key[0] not in self._graphs:  # it has said so
            return
        try:
            self._functions[key] = pickle.loads(packed)
        except Exception as error:
            self._channel.send(Rejection(f"{type(error).__name__}: {error}", of_function=True))

    def _on_call(self, task: CallTask) -> None:
        op = self._functions.get(task.function)
        if op is None:  # it has said so
            return
        try:
            answer: FunctionResults | PackedError = self._called(op, task)
        except Exception as error:  # of the engine
            answer = PackedError.of(error)
        self._channel.send(answer)

    def _called(self, op: FunctionCaller, task: CallTask) -> FunctionResults:
        first = None if task.memory is None else self._files.memory(task.memory)
        memory = TaskMemory(len(task.indices), first, self._ask)
        calls = []
        # The function may write to what it gets.
        inputs = [
            [np.array(row) for row in self._rows(given, task.indices)] for given in task.inputs
        ]
        for index, values, error, raised in op.calls(inputs, len(task.indices)):
            packed = None if error is None else PackedError.of(error)
            kept: list[Returned] = []
            if error is None:
                try:
                    kept = [_returned(value, memory) for value in values]
                except HeadraceError as refused:
                    packed = PackedError.of(refused)
            calls.append((None if index is None else task.indices[index], kept, packed, raised))
        return FunctionResults(calls)

    def _rows(self, given: InputColumn, indices: list[int]) -> list[np.ndarray]:
        if given.values is not None:
            return [given.values[index] for index in indices]
        if given.process:
            return read_rows(given, indices)
        assert given.offsets is not None
        assert given.shapes is not None
        return [
            self._files.array(
                given.file,
                int(given.offsets[index]),
                tuple(given.shapes[index].tolist()),
                given.dtype,
            )
            for index in indices
        ]

    def _inputs(self, program: Program, batch: TaskBatch, indices: list[int]) -> list[BatchBuffer]:
        return [
            self._input(program.specs[r], given, batch.size, indices)
            for r, given in zip(shared_reads(program), batch.inputs, strict=True)
        ]

    def _input(self, spec: Spec, given: InputColumn, size: int, indices: list[int]) -> BatchBuffer:
        if given.values is not None:
            buffer = BatchBuffer.of_values(given.values, spec, ShapeStatistics())
        else:
            buffer = BatchBuffer(size, spec, ShapeStatistics())
            rows = buffer.rows
            for index, row in zip(indices, self._rows(given, indices), strict=True):
                rows[index] = row
        if given.sources is not None:
            buffer.set_sources(indices, [given.sources[index] for index in indices])
        return buffer

    def _ask(self, size: int) -> np.ndarray:
        place = self._reply(MemoryRequest(size), "memory")
        if place is None:
            raise MemoryError
        return self._files.memory(place)

    def _ask_for_copies(self) -> TaskBatch:
        packed = self._reply(CopyRequest(), "copies")
        batch = TaskBatch.unpacked(packed)
        self._batch = packed, batch
        return batch

    def _reply(self, request: MemoryRequest | CopyRequest, kind: str) -> Any:
        """Return the parent's answer to a request for something the present task needs."""
        self._channel.send(request)
        while True:
            message, file = self._channel.receive()
            if message[0] == kind:
                return message[1]
            if message[0] == "task":
                self._waiting.append(message)
            else:
                self._heed(message, file)


def _returned(value: np.ndarray, memory: TaskMemory) -> Returned:
    dali_type(value.dtype)  # what is no number is refused here
    block, offset = memory.find(memory.copy_of(value))
    return Returned(block, offset, value.shape, value.dtype)


def shared_reads(program: Program) -> list[int]:
    """Return the registers whose samples a worker must be sent; it makes constants itself."""
    return [r for r in program.reads if r not in program.constants]


def serve(channel: Channel) -> None:
    """Be a worker, until the other end of `channel` is closed."""
    WorkerMain(channel).run()
