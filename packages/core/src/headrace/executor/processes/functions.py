"""Functions of the user's for whole batches, called in worker processes.

The thread that is at a batch divides it among the idle workers, and waits for all.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from headrace.errors import BadSampleError, WorkerProcessError
from headrace.executor.packed_error import PackedError
from headrace.executor.processes.graph import packed_object
from headrace.executor.processes.inputs import WorkerInput
from headrace.executor.processes.messages import (
    EMPTY,
    CallTask,
    FunctionResults,
    MemoryRequest,
    Rejection,
)
from headrace.executor.processes.pool import POOL
from headrace.executor.processes.shared_pool import SHARED_POOL, Extent
from headrace.executor.processes.worker_process import LostWorkerError, WorkerProcess, lost_error
from headrace.operators.support.python_function import CallResult, FunctionCaller

if TYPE_CHECKING:
    from headrace.executor.cpu.batch_step import HostBatchContext
    from headrace.executor.processes.pipeline_processes import WorkerProcesses

_LEAST_SAMPLES = 4
"""A worker is asked to call a function for so many samples, if the batch has them."""


class RemoteFunctions:
    """The functions of one pipeline that worker processes call."""

    def __init__(self, processes: WorkerProcesses) -> None:
        self._processes = processes
        self._lock = threading.Lock()
        """Guards `_packed`: several nodes may be at work."""
        self._packed: dict[int, tuple[int, bytes]] = {}
        """Number and content of each operator that travels, by the ``id`` of its node."""
        self.why_here: dict[str, str] = {}
        """Reasons why functions are called in this process, by name of the operator."""
        self._memory_bytes: dict[int, int] = {}
        """Recent number of bytes that each function returned for a sample, by its number."""

    def calls(self, c: HostBatchContext, op: FunctionCaller) -> Iterable[CallResult] | None:
        """Yield the results of calling the function of `op` in workers; `None` if it must be called
        here.
        """
        node = c.step.node
        if self._processes.refused or node.name in self.why_here:
            return None
        with self._lock:
            known = self._packed.get(id(node))
            if known is None:
                why = "" if op.may_travel else "its library is to have one process with threads"
                try:
                    known = len(self._packed), b"" if why else packed_object(op)
                except Exception as error:
                    why = f"it cannot be pickled: {error}"
                if why or known is None:
                    self.why_here[node.name] = why
                    return None
                self._packed[id(node)] = known
        try:
            return _Calls(self, self._processes, c, op, known).all()
        except _RefusedError as refused:
            if refused.of_function:
                self.why_here[node.name] = str(refused)
            else:
                self._processes.refused = str(refused)
            return None

    def memory_bytes(self, number: int) -> int:
        """About how many bytes a function returns for a sample."""
        return self._memory_bytes.get(number, 0)

    def returned(self, number: int, each_bytes: int) -> None:
        """Take note of how many bytes a function has returned for a sample."""
        self._memory_bytes[number] = each_bytes * 9 // 8 + 128


class _RefusedError(Exception):
    def __init__(self, refused: Rejection) -> None:
        super().__init__(refused.reason)
        self.of_function = refused.of_function


class _Calls:
    """The calls for one batch."""

    def __init__(
        self,
        functions: RemoteFunctions,
        processes: WorkerProcesses,
        c: HostBatchContext,
        op: FunctionCaller,
        known: tuple[int, bytes],
    ) -> None:
        self.functions = functions
        self.processes = processes
        self.number, self.packed = known
        self._c = c
        self._takes_batches = op.takes_batches
        inputs = [WorkerInput(batch) for batch in c.batches]
        for given in inputs:
            given.copy(slice(c.size))
        self.inputs = [given.whole() for given in inputs]
        self._kept = inputs
        """Owners of the memory that workers read."""

    def all(self) -> list[CallResult]:
        """Make all calls; the results are in the order of the samples."""
        size = self._c.size
        wanted = 1 if self._takes_batches else -(-size // _LEAST_SAMPLES)
        parts = [_WorkerCall(self, self._first())]
        try:
            for _ in range(1, min(wanted, self.processes.count)):
                worker = self.processes.lend(again=False, starts=False)
                if worker is None:
                    break
                parts.append(_WorkerCall(self, worker))
            for part, indices in zip(parts, np.array_split(range(size), len(parts)), strict=True):
                part.begin(indices.tolist())
            found = [call for part in parts for call in part.finished()]
        finally:
            for part in parts:
                part.drop()
        for part in parts:
            if part.lost is not None:
                found += self._again(part.indices, part.lost)
        return sorted(found, key=lambda call: -1 if call.sample is None else call.sample)

    def _first(self) -> WorkerProcess:
        try:
            worker = self.processes.lend(again=False)
        except LostWorkerError:  # that it has ended has nothing to do with the function
            worker = self.processes.lend(again=True)
        assert worker is not None
        return worker

    def _again(self, indices: list[int], lost: LostWorkerError) -> list[CallResult]:
        """Repeat the calls of samples whose worker has ended."""
        if self.processes.policy == "raise":
            raise self._error(lost, indices)
        found, error = self._once(indices)
        if error is None:
            return found
        if self._takes_batches:
            raise self._error(error, indices)
        found = []
        for index in indices:
            calls, error = self._once([index])
            if error is not None:
                calls = [CallResult(index, (), BadSampleError(str(self._error(error, [index]))))]
            found += calls
        return found

    def _once(self, indices: list[int]) -> tuple[list[CallResult], LostWorkerError | None]:
        worker = self.processes.lend(again=True)
        assert worker is not None
        part = _WorkerCall(self, worker)
        try:
            part.begin(indices)
            return part.finished(), part.lost
        finally:
            part.drop()

    def _error(self, lost: LostWorkerError, indices: list[int]) -> WorkerProcessError:
        return lost_error(lost, [self._c.indices[index] for index in indices], self._c.iteration)


class _WorkerCall:
    """Some samples of a batch, for which one worker calls a function."""

    def __init__(self, calls: _Calls, worker: WorkerProcess) -> None:
        self._calls = calls
        self._worker: WorkerProcess | None = worker
        self._blocks: list[np.ndarray] = []
        """Memory that the worker was given."""
        self.indices: list[int] = []
        self.lost: LostWorkerError | None = None
        """Error that ended the worker."""

    def begin(self, indices: list[int]) -> None:
        """Ask the worker for samples."""
        self.indices = indices
        calls, worker = self._calls, self._worker
        assert worker is not None
        try:
            for given in calls.inputs:
                if given.file is not None:
                    worker.show(given.file)
            key = calls.processes.graph.number, -1 - calls.number
            if not worker.knows_program(key):
                worker.know_function(key, calls.packed)
            memory = self._block(calls.functions.memory_bytes(calls.number) * len(indices))
            worker.send(("call", CallTask(key, indices, calls.inputs, memory)))
        except LostWorkerError as error:
            self._lose(error)

    def finished(self) -> list[CallResult]:
        """Wait for the worker; return its results, none if it has ended."""
        worker = self._worker
        if worker is None:
            return []
        try:
            while isinstance(answer := worker.receive(), MemoryRequest):
                worker.send(("memory", self._block(answer.size)))
        except LostWorkerError as error:
            self._lose(error)
            return []
        self._worker = None
        POOL.give_back(worker)
        if isinstance(answer, Rejection):
            raise _RefusedError(answer)
        if isinstance(answer, PackedError):
            raise answer.unpacked()
        return self._taken(answer)

    def drop(self) -> None:
        """Do without the worker, if it has not answered."""
        worker, self._worker = self._worker, None
        if worker is not None:
            POOL.discard(worker)

    def _lose(self, error: LostWorkerError) -> None:
        self.lost = error
        self.drop()

    def _block(self, size: int) -> Extent | None:
        if not size:
            return None
        block = self._calls.processes.pool.empty((size,), np.uint8)
        self._blocks.append(block)
        place = SHARED_POOL.place_of(block)
        assert self._worker is not None
        self._worker.show(place.file)
        return place

    def _taken(self, answer: FunctionResults) -> list[CallResult]:
        found, used = [], 0
        for index, values, error, raised in answer.calls:
            arrays = []
            for block, offset, shape, dtype in values:
                if block == EMPTY:
                    arrays.append(np.empty(shape, dtype))
                else:
                    arrays.append(np.ndarray(shape, dtype, self._blocks[block], offset))
                used += arrays[-1].nbytes
            failed = None if error is None else error.unpacked()
            assert failed is None or isinstance(failed, Exception)
            found.append(CallResult(index, arrays, failed, raised))
        self._calls.functions.returned(self._calls.number, used // len(self.indices))
        return found
