"""Operators that work on a whole batch at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.errors import OperatorError, ShapeError, located
from headrace.executor.cpu.arena import Arena
from headrace.executor.cpu.batch import BatchBuffer
from headrace.executor.cpu.shape_statistics import ShapeStatistics
from headrace.executor.guards import chosen, members, spread
from headrace.operators.support.planning import (
    SAMPLE_ERRORS,
    PlanContext,
    Samples,
)
from headrace.operators.support.schema import Spec
from headrace.tensors.pool import HOST_POOL, HostPool
from headrace.tensors.rows import Rows
from headrace.types import to_dali_type

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from headrace.executor.cpu.program import Program
    from headrace.executor.iteration import Iteration
    from headrace.executor.processes.functions import RemoteFunctions
    from headrace.executor.step import Step


class HostBatchContext(PlanContext):
    """Context passed to `BatchOperator.cpu` besides the samples."""

    __slots__ = (
        "_arena",
        "_buffers",
        "_iteration",
        "_pool",
        "_program",
        "_tolerant",
        "batches",
        "functions",
        "step",
    )

    def __init__(
        self,
        step: Step,
        iteration: Iteration,
        inputs: list[BatchBuffer],
        buffers: list[BatchBuffer],
        places: Sequence[int],
        program: Program,
        *,
        tolerant: bool,
        functions: RemoteFunctions | None = None,
        pool: HostPool = HOST_POOL,
    ) -> None:
        tensors = {}
        for name, r, convert in step.tensor_args:
            batch = iteration.buffers[r]
            assert batch is not None
            rows = batch.rows
            tensors[name] = Samples([rows[index] for index in places]), convert
        sources = next((b.sources for b in inputs if b.sources is not None), None)
        seed, number = iteration.seed_of(step), iteration.number
        super().__init__(step.op.args, tensors, places, seed, number, sources)
        self.node = step.node
        self.step = step
        self.batches = inputs
        """Input batches of the operator."""
        self.functions = functions
        """Proxy that calls the user's functions in worker processes, if used."""
        self._program = program
        self._iteration = iteration
        self._tolerant = tolerant
        self._buffers = buffers
        self._arena: Arena | None = None
        self._pool = pool

    def own(self, position: int) -> list[np.ndarray]:
        """The samples of an input, C-contiguous, for the operator to do with as it likes.

        They are copies where they have other readers.
        """
        given = _given_rows(self.step, self._program, self._iteration, self.indices)
        return [
            row
            if id(row) in given and row.flags.writeable and row.flags.c_contiguous
            else self._pool.copy_of(row)
            for row in self.batches[position].rows
            if row is not None
        ]

    def declare(self, spec: Spec) -> None:
        """Declare the type of the next output, where only the data tells output types."""
        r = self.step.outputs[len(self._buffers)]
        history = self._program.plan.history[r]
        buffer = BatchBuffer(self._iteration.size, spec, history, self._pool)
        self._iteration.buffers[r] = buffer
        self._buffers.append(buffer)

    def fail(self, error: Exception, index: int, raised: str = "") -> None:
        """Record that there is no output for sample `index`, or raise if that is the end."""
        found = self.located(error, index, raised)
        if not self._tolerant:
            raise found from error
        found.__cause__ = error
        self._iteration.failures[self.indices[index]] = found

    def empty(
        self, index: int, shape: tuple[int, ...], dtype: DTypeLike, output: int = 0
    ) -> np.ndarray:
        """Memory for sample `index` of an output."""
        buffer = self._buffers[output]
        buffer.check(shape, dtype)
        return buffer.row(self.indices[index], shape)

    def empty_rows(
        self, places: Sequence[int], shapes: np.ndarray, dtype: DTypeLike, output: int = 0
    ) -> Rows:
        """The same for several samples, of shapes ``(samples, ndim)``."""
        buffer = self._buffers[output]
        buffer.check(shapes[0], dtype)
        return buffer.rows_for([self.indices[k] for k in places], shapes)

    def temp(self, shape: tuple[int, ...], dtype: DTypeLike) -> np.ndarray:
        """Scratch memory that lives until the operator returns."""
        if self._arena is None:
            self._arena = Arena()
        return self._arena.empty(shape, dtype)

    def whole(self, position: int) -> np.ndarray | None:
        """All samples of an input as one array; `None` if they do not lie in one piece."""
        return self.batches[position].dense


def run_batch_step(
    step: Step,
    program: Program,
    iteration: Iteration,
    history: list[ShapeStatistics],
    *,
    tolerant: bool = False,
    functions: RemoteFunctions | None = None,
    pool: HostPool = HOST_POOL,
) -> None:
    """Run one whole-batch operator and keep its outputs.

    If `tolerant`, it may leave out samples, and records them as failures of the iteration.
    `functions` have worker processes call functions of the user's. Memory comes from `pool`.
    """
    late = step.node.schema.is_typed_late(step.node.args) or step.reduces
    places: Sequence[int] = range(iteration.size)
    some = None
    if step.guard:
        some = members(step.guard, iteration.buffers, iteration.size)
        places = some.tolist()
    buffers = []
    for r in () if late else step.outputs:
        buffer = BatchBuffer(iteration.size, program.specs[r], history[r], pool)
        iteration.buffers[r] = buffer
        buffers.append(buffer)
    if not places:
        if step.reduces:
            _keep_reduced(step, (np.zeros(()),) * len(step.outputs), iteration, history)
        return
    inputs = [b for b in (iteration.buffers[r] for r in step.inputs) if b is not None]
    if some is not None and len(some) < iteration.size:
        inputs = [b.taken(some) for b in inputs]
    context = HostBatchContext(
        *(step, iteration, inputs, buffers, places, program),
        tolerant=tolerant,
        functions=functions,
        pool=pool,
    )
    began = time.perf_counter()
    try:
        samples = [_rows(b) if step.reduces else b.rows for b in inputs]
        result = step.function(context, *samples)
        results = result if isinstance(result, tuple) else (result,)
        if step.reduces:
            before, after = step.op.padding(samples[0].shapes, *results)
            iteration.elements += before
            iteration.padded_elements += after
            _keep_reduced(step, results, iteration, history)
        elif late and result is not None:
            buffers = _late_buffers(step, results, iteration, history, places)
        elif not late:
            given = _given_rows(step, program, iteration, places)
            for buffer, found in zip(buffers, results, strict=True):
                made = found if isinstance(found, np.ndarray) else list(found)
                if len(made) != len(places):
                    raise ShapeError(
                        f"The operator returned {len(made)} samples for a batch of "
                        f"{len(places)}; `cpu` of a `BatchOperator` returns one for each."
                    )
                if isinstance(made, np.ndarray):
                    buffer.check(made.shape[1:], made.dtype)
                    if len(places) == iteration.size and pool.is_ordinary:
                        buffer.adopt(made.copy())  # the operator may keep what it gives
                    else:
                        buffer.put_rows(places, made)
                    continue
                for index, value in zip(places, made, strict=True):
                    if given.pop(id(value), None) is None:
                        buffer.put(index, value)
                    else:
                        buffer.check(value.shape, value.dtype)
                        buffer.adopt_rows((index,), (value,))
    except OperatorError:
        raise
    except BaseException as error:
        raise located(error, step.node.where()) from error
    finally:
        if step.node.schema.calls_user:
            iteration.python_function_seconds += time.perf_counter() - began
    sources = context.sources
    if sources is not None:
        if not step.reduces and step.op.joins_sources():
            known = [b.sources or [""] * len(places) for b in inputs]
            sources = step.op.origins(context, known) or sources
        for buffer in buffers:
            buffer.set_sources(places, sources)


def _rows(batch: BatchBuffer) -> Rows:
    """The samples of a batch; arrays are made of them on demand."""
    dense = batch.dense
    if dense is None:
        return Rows([row for row in batch.rows if row is not None])
    return Rows.of_array(dense)


def _keep_reduced(
    step: Step, results: tuple[Any, ...], iteration: Iteration, history: list[ShapeStatistics]
) -> None:
    """Hand the result of an operator's `reduce` to all samples of the batch."""
    for r, result in zip(step.outputs, results, strict=True):
        array = np.asarray(result)
        spec = Spec(to_dali_type(array.dtype), array.ndim)
        buffer = iteration.buffers[r] = BatchBuffer(iteration.size, spec, history[r])
        buffer.rows = [array] * iteration.size


def _given_rows(
    step: Step, program: Program, iteration: Iteration, places: Sequence[int]
) -> dict[int, np.ndarray]:
    """Samples of inputs, by their ``id``, that may be those of outputs as they are: no other
    step reads them, and the engine has made their memory.
    """
    found: dict[int, np.ndarray] = {}
    for r in step.inputs:
        buffer = iteration.buffers[r]
        if program.plan.consumers[r] == 1 and r not in iteration.fed and buffer is not None:
            found.update((id(row), row) for row in buffer.own_rows(places))
    return found


def _late_buffers(
    step: Step,
    results: tuple[Any, ...],
    iteration: Iteration,
    history: list[ShapeStatistics],
    places: Sequence[int],
) -> list[BatchBuffer]:
    """The output batches of an operator whose output types depend on the data."""
    buffers = []
    for r, (values, spec) in zip(step.outputs, results, strict=True):
        if not values.flags.writeable:  # it may have another owner, and ours are given away
            values = HOST_POOL.copy_of(values)
        buffer = BatchBuffer(iteration.size, spec, history[r])
        for own, index in enumerate(places):
            buffer.rows[index] = values[own, ...]
        if len(places) == iteration.size:
            buffer.adopt(values)
        iteration.buffers[r] = buffer
        buffers.append(buffer)
    return buffers


def planned_program(
    make: Callable[..., Program], iteration: Iteration, history: list[ShapeStatistics]
) -> Program:
    """A program, and the batches that are there before its first sample runs.

    Where a sample of them is bad, it is the program that plans each sample alone, so that the
    error, or the replacement, is that sample's.
    """
    program = make()
    try:
        _plan_whole_batches(program, iteration, history)
    except OperatorError as error:
        if not isinstance(error.__cause__, SAMPLE_ERRORS):
            raise
        program = make(whole=False)
        _plan_whole_batches(program, iteration, history)
    return program


def _plan_whole_batches(
    program: Program, iteration: Iteration, history: list[ShapeStatistics]
) -> None:
    """Make the batches that are there before the first sample runs; see `Program.whole_steps`."""
    size = iteration.size
    known = dict(program.repeated_constants(size))
    for step in program.whole_steps:
        try:
            found = _planned_whole(step, known, program, iteration)
        except Exception as error:  # not a Ctrl-C, which is no sample's error
            raise located(error, step.node.where()) from error
        for r, values in zip(step.outputs, found, strict=True):
            known[r] = Samples(values=values)
    adopted: set[int] = set()
    for r in program.ahead:
        array = program.constants.get(r)
        if array is None:
            whole = known[r].dense
            assert whole is not None
            if not whole.flags.owndata or id(whole) in adopted:  # it is in another batch, too
                whole = whole.copy()
            adopted.add(id(whole))
            made = BatchBuffer.of_values(whole, program.specs[r], history[r])
        else:
            made = BatchBuffer(size, program.specs[r], history[r])
            made.rows = [array] * size
        iteration.buffers[r] = made


def _planned_whole(
    step: Step, known: dict[int, Samples], program: Program, iteration: Iteration
) -> Sequence[np.ndarray]:
    """The outputs of a step for the whole batch.

    To work on samples that do not take its branch costs less than to leave them out, which is done
    only where they are not fit for it.
    """
    assert step.planner is not None
    size, number, seed = iteration.size, iteration.number, iteration.seed_of(step)
    inputs = [known[r] for r in step.inputs]
    tensors = {name: (known[r], convert) for name, r, convert in step.tensor_args}
    try:
        return step.planner.values(inputs, tensors, range(size), seed, number)
    except SAMPLE_ERRORS:
        if not step.guard:
            raise
    places = chosen(step.guard, known, {(): range(size)})
    if not places:
        return [np.repeat(np.zeros_like(program.examples[r]), size, axis=0) for r in step.outputs]
    inputs = [each.taken(places) for each in inputs]
    tensors = {n: (each.taken(places), convert) for n, (each, convert) in tensors.items()}
    found = step.planner.values(inputs, tensors, places, seed, number)
    return [spread(values, places, size) for values in found]
