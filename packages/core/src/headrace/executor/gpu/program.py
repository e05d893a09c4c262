"""A stage on the GPU made ready for data of known types."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headrace.errors import BadSamplesError, DataTypeError, OperatorError, ShapeError, located
from headrace.executor.cpu.profile_labels import launch_labels
from headrace.executor.gpu.frames import GpuFrames
from headrace.executor.gpu.stage_replays import StageReplays
from headrace.executor.guards import Selection
from headrace.executor.own_results import type_error
from headrace.executor.step import Step, StepMaker, with_place
from headrace.graph.nodes import OpNode
from headrace.graph.transfers import LEAVES_SIDE_DATA
from headrace.kernels.gpu.transfer import HostCopy, to_device
from headrace.operators.support.batch_context import BatchContext
from headrace.operators.support.operator import BatchOperator
from headrace.operators.support.runtime_typed_batch import RuntimeTypedBatch
from headrace.operators.support.schema import Spec
from headrace.profiling.recorder import NO_RECORD, SpanRecorder
from headrace.tensors.gpu.batch import DeviceBatch, LazyBatch, note_use
from headrace.tensors.gpu.queue import Queue
from headrace.tensors.gpu.runtime import Event
from headrace.types import storage_dtype
from headrace.types.dtypes import SIDE_TYPES

if TYPE_CHECKING:
    from headrace.executor.guards import Choices, Guard
    from headrace.executor.iteration import Iteration
    from headrace.executor.plan import Plan, Stage


_NO_TENSORS: dict[str, tuple[Any, Any]] = {}


class _Prepared(NamedTuple):
    """A step with values looked up once."""

    step: Step
    args: SimpleNamespace
    takes: tuple[type, ...]
    """Kinds of lazy value that the operator understands."""
    dropped: list[int]
    """Registers that are not read after the step, so that its memory serves the next ones."""
    calls_user: bool
    """True if the operator calls a function of the user."""
    joins_sources: bool
    """True if an output may come from other files than the input at its position."""


class _Run(NamedTuple):
    """One iteration of a stage while its work is queued."""

    iteration: Iteration
    queue: Queue
    selection: Selection
    values: dict[int, Any]
    """Values of registers."""
    sources: dict[int, list[str] | None]
    """Files that the samples of registers were read from."""
    waited: set[int]
    """The ``id`` of events that the stream waits for already."""

    def wait(self, event: Event) -> None:
        """Have the stream wait for an event, once."""
        if id(event) not in self.waited:
            self.waited.add(id(event))
            self.queue.wait(event)


class OpenBranchError(Exception):
    """Types follow from the branches that samples take."""


class GpuProgram:
    """The steps of a stage, each one operator on whole batches."""

    def __init__(
        self,
        plan: Plan,
        stage: Stage,
        specs: dict[int, Spec],
        *,
        fuse: bool,
        threads: int,
        maker: StepMaker | None = None,
        choices: Choices = (),
        recorder: SpanRecorder = NO_RECORD,
    ) -> None:
        self.plan = plan
        self.stage = stage
        self._maker = maker or StepMaker(plan, specs, {}, GpuFrames, choices)
        self.specs = self._maker.specs
        self._threads = threads
        self._steps: list[Step] = []
        self.left_on_host: list[tuple[int, int]] = []
        """Registers with side data on the host, and those that it is handed over in."""
        for node in stage.batch_nodes:
            if self._maker.is_left_out(node) or not self._maker.has_types(node):
                continue
            if LEAVES_SIDE_DATA in node.args:
                there, here = plan.register(node.inputs[0]), plan.register(node.outputs[0])
                if self.specs[there].dtype in SIDE_TYPES:
                    self.specs[here] = self.specs[there]
                    self.left_on_host.append((there, here))
                    continue
            try:
                self._steps.append(with_place(node, self._made, node))
            except Exception as error:
                if self._maker.may_wait(node):
                    raise OpenBranchError from error
                raise
        last: dict[int, int] = {}
        for number, step in enumerate(self._steps):
            for r in step.inputs:
                last[r] = number
        self._dtypes = {
            r: storage_dtype(self.specs[r].dtype)
            for step in self._steps
            if not step.node.schema.is_typed_late(step.node.args)
            for r in step.outputs
        }
        self._lazy: dict[int, tuple[type, ...]] = {
            r: step.op.returns_lazy
            if step.op is not None and fuse and plan.consumers[r] == 1 and not plan.leaves_stage[r]
            else ()
            for step in self._steps
            for r in step.outputs
        }
        """Kinds of lazy value that may go to the next operator as they are."""
        self._guarded = any(step.guard or step.branches for step in self._steps)
        self._leaving = [r for step in self._steps for r in step.outputs if plan.leaves_stage[r]]
        dropped: list[list[int]] = [[] for _ in self._steps]
        for r, number in last.items():
            if not plan.leaves_stage[r]:
                dropped[number].append(r)
        self._prepared = [
            _Prepared(
                step,
                SimpleNamespace(**step.args),
                _kinds(step),
                drop,
                step.node.schema.calls_user,
                isinstance(step.op, BatchOperator) and step.op.joins_sources(),
            )
            for step, drop in zip(self._steps, dropped, strict=True)
        ]
        self._recorder = recorder
        is_replayed = bool(self._steps) and not recorder.is_on and self._may_be_replayed()
        self._replays = self._recordable() if is_replayed else None
        self._code = recorder.code(id(self), partial(launch_labels, self))

    @property
    def nodes(self) -> list[OpNode]:
        """The nodes of its steps, in order."""
        return [step.node for step in self._steps]

    def _made(self, node: OpNode) -> Step:
        if node.input_queue is not None:
            return self._maker.step(node, None, tuple(self._maker.fed(node)), _no_function)
        op, specs = self._maker.make(node)
        return self._maker.step(node, op, specs, op.gpu)

    def run(self, iteration: Iteration, queue: Queue) -> dict[int, Any]:
        """Queue all work of one iteration."""
        code = self._code + len(self._prepared)
        with self._recorder.span(code, iteration.number, iteration.size, is_range=True):
            return self._queued(iteration, queue)

    def _may_be_replayed(self) -> bool:
        """Return True if iterations may queue the same again, as far as declarations tell."""
        return not self._guarded and not any(
            each.calls_user
            or each.joins_sources
            or each.step.node.schema.in_order
            or each.step.node.schema.is_typed_late(each.step.node.args)
            or each.step.node.output_device == "cpu"
            for each in self._prepared
        )

    def _recordable(self) -> StageReplays:
        steps = [(each.step, each.args) for each in self._prepared]
        fed = [r for step in self._steps if step.op is None for r in step.outputs]
        made = {r for step in self._steps for r in step.outputs}
        outside = dict.fromkeys(r for step in self._steps for r in step.inputs if r not in made)
        return StageReplays(steps, fed, list(outside), self._carried_out)

    def _queued(self, iteration: Iteration, queue: Queue) -> dict[int, Any]:
        if self._replays is not None:
            found = self._replays.run(iteration, queue)
            if found is not None:
                return found
        return self._carried_out(iteration, queue)

    def _carried_out(self, iteration: Iteration, queue: Queue) -> dict[int, Any]:
        """Have each operator queue its work."""
        selection = Selection(iteration.buffers, iteration.size)
        run = _Run(iteration, queue, selection, {}, {}, set())
        values = run.values
        span = self._recorder.span
        for code, prepared in enumerate(self._prepared, self._code):
            step = prepared.step
            try:
                if step.op is None:
                    self._take_fed(step, run)
                    continue
                with span(code, iteration.number, iteration.size, is_range=True):
                    self._do(prepared, run)
            except (BadSamplesError, OperatorError):
                raise
            except BaseException as error:
                raise located(error, step.node.where()) from error
            for r in prepared.dropped:
                values.pop(r, None)
        guards = self.plan.guards
        return {
            r: (values[r], run.sources.get(r), selection.of(guards[r]) if r in guards else None)
            for r in self._leaving
        }

    def _do(self, prepared: _Prepared, run: _Run) -> None:
        iteration, queue, selection, values, sources, _ = run
        step, takes = prepared.step, prepared.takes
        indices: Sequence[int] = range(iteration.size)
        if step.guard:
            places = selection.of(step.guard)
            if len(places) < iteration.size:
                indices = places.tolist()
        inputs = []
        for position, r in enumerate(step.inputs):
            value = values.get(r)
            if value is None:
                value = self._from_outside(r, run)
            elif type(value) is not DeviceBatch and not isinstance(value, takes):
                value = values[r] = value.materialise(queue)
            if self._guarded:
                value = self._taken(value, r, _read_by(step, position), selection, queue)
            inputs.append(value)
        origin = self._origin(step, sources, selection)
        tensors = _NO_TENSORS
        if step.tensor_args:
            buffers = iteration.buffers
            tensors = {name: (buffers[r], convert) for name, r, convert in step.tensor_args}
        own_sources = origin
        if type(indices) is list:
            tensors = {n: (b.taken(places), convert) for n, (b, convert) in tensors.items()}
            own_sources = None if origin is None else [origin[k] for k in indices]
        seeds = iteration.seeds
        context = BatchContext(
            step.node,
            prepared.args,
            tensors,
            queue,
            indices,
            step.seed if seeds is None else iteration.seed_of(step),
            iteration.number,
            own_sources,
            self._threads,
        )
        began = time.perf_counter() if prepared.calls_user else 0.0
        result = step.function(context, *inputs) if indices else self._nothing(step, queue)
        if prepared.calls_user:
            iteration.python_function_seconds += time.perf_counter() - began
        outputs = step.outputs
        if len(outputs) == 1 and isinstance(result, LazyBatch):
            results: Any = (result,)
        else:
            results = (result,) if len(outputs) == 1 and not _is_several(result) else result
            if len(results) != len(outputs):
                raise ShapeError(
                    f"The operator made {len(results)} outputs where its declaration says "
                    f"{len(outputs)}; a tuple has one element for each of them."
                )
        if prepared.joins_sources and own_sources is not None and indices:
            assert origin is not None
            known = [sources.get(r) or [""] * len(origin) for r in step.inputs]
            found = step.op.origins(context, [[s[k] for k in indices] for s in known])
            if found is not None:
                origin = list(origin)
                for k, source in zip(indices, found, strict=True):
                    origin[k] = source
        for r, value in zip(outputs, results, strict=True):
            values[r] = self._checked(value, r, queue) if indices else value
            sources[r] = origin

    def _taken(self, value: Any, r: int, guard: Guard, selection: Selection, queue: Queue) -> Any:
        """The samples of register `r` that `guard` selects."""
        # Batches of other stages have a place for each sample.
        own = self.plan.guards.get(r, ()) if r in self._lazy else ()
        if own == guard or value is None:
            return value
        places = selection.within(own, guard)
        if len(places) == len(value):
            return value
        if isinstance(value, LazyBatch):
            value = value.materialise(queue)
        return value.taken(places)

    def _nothing(self, step: Step, queue: Queue) -> Any:
        """The outputs of a step that no sample takes."""
        if step.node.output_device == "cpu":
            return HostCopy([], None)
        made: list[DeviceBatch | None] = []
        for r in step.outputs:
            if r not in self._dtypes:  # only the data would tell
                made.append(None)
                continue
            shapes = np.zeros((0, self.specs[r].ndim or 0), np.int64)
            pointers = np.zeros(0, np.uint64)
            made.append(DeviceBatch(queue.runtime, (), pointers, shapes, self._dtypes[r]))
        return made[0] if len(made) == 1 else tuple(made)

    @staticmethod
    def _origin(
        step: Step, sources: dict[int, list[str] | None], selection: Selection
    ) -> list[str] | None:
        """Return the files that the samples of a step were read from."""
        if not step.inputs:
            return None
        if not step.branches:
            for r in step.inputs:
                found = sources.get(r)
                if found is not None:
                    return found
            return None
        origin, other = (sources.get(r) for r in step.inputs[:2])
        if other is None or other is origin:
            return origin
        if origin is None:
            return other
        merged = list(other)
        for k in selection.of(_read_by(step, 0)).tolist():
            merged[k] = origin[k]
        return merged

    def _from_outside(self, r: int, run: _Run) -> Any:
        """Return the value of register `r` from another stage: samples in memory, which the stream
        waits for, or a batch on the host.
        """
        buffer = run.iteration.buffers[r]
        if buffer is None:  # of a branch that no sample took, and only its data would tell its type
            return None
        run.sources[r] = buffer.sources
        batch = buffer.batch
        if batch is None:
            return run.queue.seen_on_host(r, buffer)
        run.wait(buffer.event)
        note_use(batch.owners, run.queue.stream)
        batch = run.values[r] = run.queue.seen(batch)
        return batch

    def _checked(self, value: Any, r: int, queue: Queue) -> Any:
        if not isinstance(value, LazyBatch):
            if isinstance(value, (HostCopy, RuntimeTypedBatch)):
                return value
            raise DataTypeError(
                f"The operator made a {type(value).__name__} where a batch on the GPU is expected."
            )
        expected = self._dtypes[r]
        if value.dtype != expected:
            raise type_error(value.dtype, expected)
        if type(value) is DeviceBatch or isinstance(value, self._lazy[r]):
            return value
        return value.materialise(queue)

    def _take_fed(self, step: Step, run: _Run) -> None:
        """Take fed batches: upload those on the host, wait for the others."""
        for r in step.outputs:
            buffer: Any = run.iteration.fed[r]
            batch = buffer.batch
            if batch is None:
                rows: list[np.ndarray] = buffer.rows
                run.values[r] = to_device(run.queue, rows, buffer.dense, self._threads)
            else:
                if buffer.event is not None:
                    run.wait(buffer.event)
                run.queue.keep(batch)
                run.values[r] = run.queue.seen(batch)
            run.sources[r] = buffer.sources


def _read_by(step: Step, position: int) -> Guard:
    """The samples of input `position` that a step reads."""
    return step.branches[position][1] if position < len(step.branches) else step.guard


def _no_function(*_: Any) -> Any:
    raise AssertionError("a source is not run")


def _kinds(step: Step) -> tuple[type, ...]:
    """Kinds of lazy batch that an operator takes."""
    takes = () if step.op is None else step.op.takes
    return tuple([kind for kind in takes if issubclass(kind, LazyBatch)])


def _is_several(result: Any) -> bool:
    return isinstance(result, tuple) and not isinstance(result, (HostCopy, RuntimeTypedBatch))
