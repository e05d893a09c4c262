"""Has samples carried by worker processes, for the threads of an executor.

A thread sends samples to a process that it alone uses, in place of carrying them itself, and
waits without the interpreter until they are done. All that is decided for a pipeline is decided
here: a process knows only the samples at hand.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.errors import (
    BadSampleError,
    ShapeError,
    WorkerProcessError,
    located,
)
from headrace.executor.packed_error import PackedError
from headrace.executor.processes.inputs import WorkerInput
from headrace.executor.processes.messages import (
    ABSENT,
    EMPTY,
    IN_PLACE,
    Column,
    CopyRequest,
    OutputColumn,
    Rejection,
    Task,
    TaskBatch,
    TaskResult,
)
from headrace.executor.processes.pool import POOL
from headrace.executor.processes.shared_pool import SHARED_POOL, Extent
from headrace.executor.processes.worker import shared_reads
from headrace.executor.processes.worker_process import (
    LostWorkerError,
    WorkerProcess,
    lost_error,
    that_answer,
)
from headrace.profiling.recorder import ProfileRecorder

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.executor.cpu.batch import BatchBuffer
    from headrace.executor.cpu.program import Program
    from headrace.executor.cpu.runner import SampleRunner
    from headrace.executor.iteration import Iteration
    from headrace.executor.processes.pipeline_processes import WorkerProcesses
    from headrace.profiling.recorder import SpanRecorder

_Failures = list[tuple[int, BaseException]]


class PackedBatch:
    """A `TaskBatch` as it travels."""

    __slots__ = ("_buffers", "_kept", "_redrawn", "copied", "files", "is_read", "packed", "program")

    def __init__(
        self,
        batch: TaskBatch,
        inputs: list[WorkerInput],
        iteration: Iteration,
        registers: list[int],
    ) -> None:
        self._buffers = [(r, iteration.buffers[r]) for r in registers]
        self._redrawn = iteration.skipped, iteration.redraws
        self.program = batch.program
        self.packed = batch.packed()
        self._kept = inputs
        self.is_read = any(given.is_read for given in inputs)
        """True if workers read memory of this process alone."""
        self.copied = [given for given in inputs if given.is_copied]
        """Inputs of which each task has to copy its samples first."""
        files = {*(i.file for i in batch.inputs), *(o.file for o in batch.outputs)}
        self.files = [number for number in files if number is not None]
        """Memory that a worker must have mapped."""

    def is_of(self, iteration: Iteration) -> bool:
        """Return True if `iteration` has not changed since."""
        buffers = iteration.buffers
        if self._redrawn != (iteration.skipped, iteration.redraws):
            return False
        return all(buffers[r] is buffer for r, buffer in self._buffers)


class SentSamples:
    """Samples of an iteration that a worker process has been sent, and has not answered yet."""

    __slots__ = ("batch", "blocks", "indices", "is_followed", "iteration", "lost", "worker")

    def __init__(self, iteration: Iteration, indices: list[int]) -> None:
        self.iteration = iteration
        self.indices = indices
        self.worker: WorkerProcess | None = None
        """Worker that has them; `None` if the thread must carry them itself."""
        self.is_followed = False
        """True if the worker was sent another task, which it does next."""
        self.lost: LostWorkerError | None = None
        """Error of the worker when they were sent to it."""
        self.batch: PackedBatch
        """Keeps alive the inputs that the worker reads."""
        self.blocks: list[np.ndarray] = []
        """Memory that the worker was given for them."""


class RemoteRunner:
    """Has samples carried through a stage by a worker process; in place of a `SampleRunner`.

    A worker may be sent the next samples while it is at some, so that it does not wait for the
    program to deal with what it has answered.
    """

    def __init__(
        self,
        program: Program,
        processes: WorkerProcesses,
        own: SampleRunner,
        recorder: SpanRecorder,
        codes: tuple[int, int, int],
    ) -> None:
        self._recorder = recorder
        self._base, self._sending, self._waiting = codes
        """Codes in the record: of the program's first step, of sending samples, and of waiting."""
        self._program = program
        self._processes = processes
        self._own = own
        self._iteration: Any = None
        self._reads = shared_reads(program)
        self._writes = [r for r, _ in program.written]
        self._registers = [*self._reads, *self._writes]
        plan = program.plan
        uploaded = any(plan.uploaded[r] and r not in plan.outputs for r, _ in program.written)
        self._pool = (processes.pinned if uploaded else None) or processes.pool
        self._hinted_bytes = sum(plan.hints.get(r, 0) for r, _ in program.written)
        self._memory_bytes = self._hinted_bytes
        """Approximate memory of a sample; at first, the user's hint."""
        self.processor_seconds = 0.0
        """Processor time of the last samples in other processes."""

    def send(
        self,
        iteration: Iteration,
        indices: list[int],
        previous: SentSamples | None = None,
        *,
        spreads: bool = True,
    ) -> SentSamples:
        """Send samples of an iteration to a worker. `receive` returns their results, in the order
        of the calls.
        """
        sent = SentSamples(iteration, indices)
        with self._recorder.span(self._sending, iteration.number, len(indices), indices[0]):
            if not self._processes.refused and self._processes.carry(self._program):
                self._iteration = iteration
                try:
                    self._hand_over(sent, previous, spreads=spreads)
                except LostWorkerError as lost:
                    sent.lost = lost
                finally:
                    self._iteration = None
        return sent

    def wait(self, sent: Sequence[SentSamples | None], wakeup: int) -> list[int]:
        """Wait, for a while at most, until some of the samples, of a worker each, have become
        something, or the file `wakeup` can be read; return which have.
        """
        workers = [s.worker for s in sent if s is not None and s.worker is not None]
        with self._recorder.span(self._waiting):
            return that_answer(workers, wakeup)

    @staticmethod
    def is_awaited() -> bool:
        """Return True if another thread waits for a worker in use."""
        return POOL.is_awaited()

    def receive(self, sent: SentSamples) -> _Failures:
        """Wait until samples were carried through all steps; return the failed ones with their
        errors.
        """
        self.processor_seconds = 0.0
        indices, self._iteration = sent.indices, sent.iteration
        # What the thread carries itself after all, its own rows tell.
        code = self._waiting if sent.worker is not None else -1
        try:
            with self._recorder.span(code, sent.iteration.number, len(indices), indices[0]):
                return self._received(sent)
        finally:
            self._iteration = None  # its buffers may belong to the user by now

    def _received(self, sent: SentSamples) -> _Failures:
        processes, indices = self._processes, sent.indices
        if processes.refused or (sent.worker is None and sent.lost is None):
            if sent.worker is not None:
                POOL.discard(sent.worker)  # it may not answer
            return self._carried_here(indices)
        # Where those before have ended it, it has not begun with these.
        has_begun = sent.worker is None or not sent.worker.is_discarded
        if has_begun:
            try:
                if sent.lost is not None:
                    raise sent.lost
                return self._answered(sent)
            except LostWorkerError as lost:
                if not processes.is_asked_for:
                    if lost.hung or not lost.pid:  # threads may wait for ever, and need no start
                        processes.refused = f"worker process {lost.pid or ''} {lost}"
                        return self._carried_here(indices)
                elif processes.policy == "raise":
                    raise self._lost(lost, indices) from None
        try:  # the end of a process may have nothing to do with the samples it had
            return self._carried_again(indices)
        except LostWorkerError:
            pass
        failures: _Failures = []
        for index in indices:
            failures += self._carried_alone(index)
        return failures

    def _carried_alone(self, index: int) -> _Failures:
        """Have a process carry a sample; if two end meanwhile, it is bad."""
        try:
            return self._carried_again([index])
        except LostWorkerError:  # the cause that ended others may have ended this one as well
            pass
        try:
            return self._carried_again([index])
        except LostWorkerError as lost:
            bad = BadSampleError(str(self._lost(lost, [index])))
            return [(index, self._located(bad, index))]

    def _carried_here(self, indices: list[int]) -> _Failures:
        self._own.bind(self._iteration)
        try:
            return self._own.run(indices)
        finally:
            self._own.release()

    def _lost(self, lost: LostWorkerError, indices: list[int]) -> WorkerProcessError:
        return lost_error(lost, indices, self._iteration.number)

    def _located(self, error: Exception, index: int) -> BaseException:
        step = self._program.steps[0]
        source = None
        if step.is_reader:
            source = step.op.index.source(int(self._iteration.entries[id(step.node)][index]))
        found = located(error, step.node.where(index, source))
        found.__cause__ = error
        return found

    def _carried_again(self, indices: list[int]) -> _Failures:
        """Have another process carry samples."""
        sent = SentSamples(self._iteration, indices)
        self._hand_over(sent, None, again=True)
        return self._carried_here(indices) if sent.worker is None else self._answered(sent)

    def _hand_over(
        self,
        sent: SentSamples,
        previous: SentSamples | None,
        *,
        spreads: bool = True,
        again: bool = False,
    ) -> None:
        """Send samples, if there is a worker to send them to."""
        iteration, processes, indices = self._iteration, self._processes, sent.indices
        sent.batch = batch = self._batch_for(indices)
        span = slice(indices[0], indices[-1] + 1)
        readers = self._program.plan.readers
        entries = [iteration.entries[id(node)][span].tolist() for node in readers]
        memory = self._block(self._memory_bytes * len(indices), sent.blocks)
        worker = None
        if previous is None or spreads:
            worker = processes.lend(again=again, starts=previous is None or POOL.is_short())
        if worker is not None:
            previous = None
        elif previous is not None:
            worker = previous.worker
        if worker is None:
            return
        try:
            self._tell(
                worker, batch, Task(batch.packed, indices, entries, memory and tuple(memory))
            )
        except LostWorkerError:
            if previous is None:
                POOL.discard(worker)
                raise  # else the thread that waits for the samples before finds out
        except BaseException:
            if previous is None:
                POOL.discard(worker)
            raise
        sent.worker = worker
        if previous is not None:
            previous.is_followed = True

    def _batch_for(self, indices: list[int]) -> PackedBatch:
        """Return the common part of the iteration's tasks, once workers can read these samples."""
        iteration = self._iteration
        batch: PackedBatch | None = iteration.packed.get(self._program)
        is_copied = self._processes.copies_inputs
        if batch is None or not batch.is_of(iteration) or (batch.is_read and is_copied):
            batch = iteration.packed[self._program] = self._packed_batch()
        span = slice(indices[0], indices[-1] + 1)  # as `Iteration.take` gives them
        for given in batch.copied:
            given.copy(span)
        return batch

    def _tell(self, worker: WorkerProcess, batch: PackedBatch, task: Task) -> None:
        """Send a worker a task, after all it must know for it."""
        program = self._program
        self._show(worker, batch)
        if task.memory is not None:
            worker.show(task.memory[0])
        if not worker.knows_program(batch.program):
            specs = {r: program.specs[r] for r in program.given}
            stage, whole = program.stage, program.is_whole
            content = stage.number, stage.part, program.choices, specs, whole
            worker.know_program(batch.program, content)
        worker.send(("task", *task))

    @staticmethod
    def _show(worker: WorkerProcess, batch: PackedBatch) -> None:
        for file in batch.files:
            worker.show(file)

    def _answered(self, sent: SentSamples) -> _Failures:
        """Store a worker's results; return the failed samples."""
        processes, worker, indices = self._processes, sent.worker, sent.indices
        assert worker is not None
        try:
            answer = self._answer(worker, sent)
        except BaseException:
            POOL.discard(worker)
            raise
        if not sent.is_followed:
            POOL.give_back(worker)
        if isinstance(answer, Rejection):
            processes.refused = answer.reason
            return self._carried_here(indices)
        if isinstance(answer, PackedError):
            raise answer.unpacked()
        good = indices if answer.good is None else answer.good
        return self._taken(answer, good, sent.blocks)

    def _answer(
        self, worker: WorkerProcess, sent: SentSamples
    ) -> TaskResult | Rejection | PackedError:
        """Return a worker's answer to a task, after serving all its requests."""
        while True:
            answer: Any = worker.receive()
            if type(answer) is tuple:
                return TaskResult(*answer)
            if isinstance(answer, (Rejection, PackedError)):
                return answer
            if isinstance(answer, CopyRequest):
                self._processes.copies_inputs = True
                sent.batch = self._batch_for(sent.indices)
                self._show(worker, sent.batch)
                worker.send(("copies", sent.batch.packed))
                continue
            more = self._block(answer.size, sent.blocks)
            if more is not None:
                worker.show(more.file)
            worker.send(("memory", more))

    def _block(self, size: int, blocks: list[np.ndarray]) -> Extent | None:
        """Room for a worker; `None` where it needs none, or there is none.

        A worker that has none asks for what it needs, and then says which sample it was for.
        """
        if not size:
            return None
        try:
            block = self._pool.empty((size,), np.uint8)
        except MemoryError:
            return None
        blocks.append(block)
        return SHARED_POOL.place_of(block)

    def _input(self, register: int) -> WorkerInput:
        """The samples of a register that workers are to read."""
        iteration = self._iteration
        buffer = iteration.buffers[register]
        is_read = not self._processes.copies_inputs
        with self._processes.carry_lock:
            given: WorkerInput | None = iteration.worker_inputs.get(register)
            if given is None or given.buffer is not buffer or (given.is_read and not is_read):
                given = iteration.worker_inputs[register] = WorkerInput(buffer, is_read=is_read)
        return given

    def _packed_batch(self) -> PackedBatch:
        """Return the common part of the iteration's tasks, while the iteration is unchanged."""
        program, iteration, processes = self._program, self._iteration, self._processes
        inputs = [self._input(r) for r in self._reads]
        batch = TaskBatch(
            (processes.graph.number, processes.number_of(program)),
            iteration.number,
            iteration.size,
            [given.whole() for given in inputs],
            [_output(iteration.buffers[r]) for r in self._writes],
        )
        return PackedBatch(batch, inputs, iteration, self._registers)

    def _taken(self, answer: TaskResult, good: list[int], blocks: list[np.ndarray]) -> _Failures:
        """Store a worker's results of the `good` samples in the iteration; return the failed
        samples.
        """
        self.processor_seconds = answer.processor_seconds
        if answer.spans is not None and isinstance(self._recorder, ProfileRecorder):
            pid, packed = answer.spans
            self._recorder.process(pid).add(packed, self._base)
        failures: _Failures = [(k, error.unpacked()) for k, error in answer.failures]
        program = self._program
        used = 0
        for (r, _), content in zip(program.written, answer.columns, strict=True):
            column = Column(*content)
            buffer = self._iteration.buffers[r]
            if column.sources is not None:
                buffer.set_sources(good, column.sources)
            if column.blocks is None:
                buffer.note_rows(good)
                continue
            others, rows = _rows(column, buffer, good, blocks)
            used += sum(row.nbytes for row in rows)
            try:
                if rows:
                    buffer.check(rows[0].shape, buffer.dtype)
            except ShapeError as error:
                step = next(s for s in program.steps if r in s.outputs)
                failures += [(index, located(error, step.node.where(index))) for index in others]
                break
            buffer.take_rows(others, rows)
        if used or self._memory_bytes:
            each = used // max(len(good), 1)
            # With the place that is lost to alignment, and to samples larger than most.
            needed = each * 9 // 8 + 128 if each else 0
            self._memory_bytes = max(needed, self._memory_bytes // 2, self._hinted_bytes)
        return failures


def _output(buffer: BatchBuffer) -> OutputColumn:
    whole = buffer.expect_rows()
    if whole is None or not whole.size:
        return OutputColumn(None, 0, None, buffer.ndim)
    place = SHARED_POOL.place_of(whole)
    return OutputColumn(place.file, place.offset, whole.shape[1:], buffer.ndim)


def _rows(
    column: Column, buffer: BatchBuffer, indices: list[int], blocks: Sequence[np.ndarray]
) -> tuple[list[int], list[np.ndarray]]:
    """The samples that are not in their places; of those that are, `buffer` takes note."""
    assert column.blocks is not None
    dtype = buffer.dtype
    others, rows = [], []
    for index, block, offset, shape in zip(
        indices, column.blocks, column.offsets, column.shapes, strict=True
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
