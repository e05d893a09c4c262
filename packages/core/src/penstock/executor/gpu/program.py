"""A stage on the GPU made ready for data of known types."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

from penstock.errors import BadSamplesError, DataTypeError, ShapeError, located
from penstock.executor.gpu.context import GpuContext
from penstock.executor.gpu.frames import GpuFrames
from penstock.executor.step import Step, StepMaker, with_place
from penstock.kernels.gpu.transfer import HostCopy, to_device
from penstock.operators.support.late_batch import LateBatch
from penstock.tensors.gpu.batch import DeviceBatch, LazyBatch, note_use
from penstock.types import storage_dtype

if TYPE_CHECKING:
    import numpy as np

    from penstock.executor.iteration import Iteration
    from penstock.executor.plan import Plan, Stage
    from penstock.graph.nodes import OpNode
    from penstock.operators.support.schema import Spec
    from penstock.tensors.gpu.queue import Queue
    from penstock.tensors.gpu.runtime import Event


_NO_TENSORS: dict[str, tuple[Any, Any]] = {}


class _Prepared(NamedTuple):
    """A step, and what is looked up for it once."""

    step: Step
    args: SimpleNamespace
    takes: tuple[type, ...]
    """Kinds of lazy value that the operator understands."""
    dropped: list[int]
    """Registers that nobody reads behind the step, so that its memory serves the next ones."""


class GpuProgram:
    """The steps of a stage, each one operator on whole batches.

    Parameters
    ----------
    plan, stage
        What to run.
    specs
        Types of the registers that the stage reads, and of what is fed to it.
    fuse
        Whether operators may take over what the one before them has only described.
    threads
        How many threads of the CPU an operator may use.
    maker
        What makes the steps, where it is not a new one.
    """

    def __init__(
        self,
        plan: Plan,
        stage: Stage,
        specs: dict[int, Spec],
        *,
        fuse: bool,
        threads: int,
        maker: StepMaker | None = None,
    ) -> None:
        self.plan = plan
        self.stage = stage
        self._maker = StepMaker(plan, specs, {}, frames=GpuFrames) if maker is None else maker
        self.specs = self._maker.specs
        self._threads = threads
        self._steps = [with_place(n, self._made, n) for n in stage.batch_nodes]
        last: dict[int, int] = {}
        for number, step in enumerate(self._steps):
            for r in step.inputs:
                last[r] = number
        self._dtypes = {
            r: storage_dtype(self.specs[r].dtype)
            for step in self._steps
            if not step.node.schema.tells_late
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
        self._leaving = [r for step in self._steps for r in step.outputs if plan.leaves_stage[r]]
        dropped: list[list[int]] = [[] for _ in self._steps]
        for r, number in last.items():
            if not plan.leaves_stage[r]:
                dropped[number].append(r)
        self._prepared = [
            _Prepared(step, SimpleNamespace(**step.args), _kinds(step), drop)
            for step, drop in zip(self._steps, dropped, strict=True)
        ]

    def _made(self, node: OpNode) -> Step:
        if node.attachment is not None:
            return self._maker.step(node, None, tuple(self._maker.fed(node)), _no_function)
        op, specs = self._maker.make(node)
        return self._maker.step(node, op, specs, op.gpu)

    def run(self, iteration: Iteration, queue: Queue) -> dict[int, Any]:
        """Queue all work of one iteration.

        Returns
        -------
        By register, what leaves the stage: a `DeviceBatch`, or a `HostCopy` on its way to the host;
        with where its samples were read from.
        """
        values: dict[int, Any] = {}
        sources: dict[int, list[str] | None] = {}
        waited: set[int] = set()
        for prepared in self._prepared:
            step = prepared.step
            try:
                if step.op is None:
                    self._take_fed(step, iteration, queue, values, sources, waited)
                    continue
                self._do(prepared, iteration, queue, values, sources, waited)
            except BadSamplesError:
                raise
            except BaseException as error:
                raise located(error, step.node.where()) from error
            for r in prepared.dropped:
                values.pop(r, None)
        return {r: (values[r], sources.get(r)) for r in self._leaving}

    def _do(
        self,
        prepared: _Prepared,
        iteration: Iteration,
        queue: Queue,
        values: dict[int, Any],
        sources: dict[int, list[str] | None],
        waited: set[int],
    ) -> None:
        step, takes = prepared.step, prepared.takes
        inputs = []
        for r in step.inputs:
            value = values.get(r)
            if value is None:
                inputs.append(self._from_outside(r, iteration, queue, values, sources, waited))
                continue
            if type(value) is not DeviceBatch and not isinstance(value, takes):
                value = values[r] = value.materialise(queue)
            inputs.append(value)
        origin = sources.get(step.inputs[0]) if step.inputs else None
        tensors = _NO_TENSORS
        if step.tensor_args:
            buffers = iteration.buffers
            tensors = {name: (buffers[r], convert) for name, r, convert in step.tensor_args}
        seeds = iteration.seeds
        context = GpuContext(
            step.node,
            prepared.args,
            tensors,
            queue,
            iteration.size,
            step.seed if seeds is None else iteration.seed_of(step),
            iteration.number,
            origin,
            self._threads,
        )
        result = step.function(context, *inputs)
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
        for r, value in zip(outputs, results, strict=True):
            values[r] = self._checked(value, r, queue)
            sources[r] = origin

    def _from_outside(
        self,
        r: int,
        iteration: Iteration,
        queue: Queue,
        values: dict[int, Any],
        sources: dict[int, list[str] | None],
        waited: set[int],
    ) -> Any:
        """What another stage has put on register `r`: samples in memory, which the stream waits
        for, or a batch on the host.
        """
        buffer = iteration.buffers[r]
        assert buffer is not None
        sources[r] = buffer.sources
        batch = getattr(buffer, "batch", None)
        if batch is None:
            return buffer
        event: Event = buffer.event
        if id(event) not in waited:
            waited.add(id(event))
            queue.runtime.wait(queue.stream, event)
        note_use(batch.owners, queue.stream)
        values[r] = batch
        return batch

    def _checked(self, value: Any, r: int, queue: Queue) -> Any:
        if not isinstance(value, LazyBatch):
            if isinstance(value, (HostCopy, LateBatch)):
                return value
            raise DataTypeError(
                f"The operator made a {type(value).__name__} where a batch on the GPU is expected."
            )
        expected = self._dtypes[r]
        if value.dtype != expected:
            raise DataTypeError(
                f"The operator made elements of type {value.dtype} where its declaration says "
                f"{expected}; its `infer` has to tell the type, or the values be converted."
            )
        if type(value) is DeviceBatch or isinstance(value, self._lazy[r]):
            return value
        return value.materialise(queue)

    def _take_fed(
        self,
        step: Step,
        iteration: Iteration,
        queue: Queue,
        values: dict[int, Any],
        sources: dict[int, list[str] | None],
        waited: set[int],
    ) -> None:
        """Take in what was fed: batches on the host are uploaded, others waited for."""
        for r in step.outputs:
            buffer: Any = iteration.fed[r]
            batch = getattr(buffer, "batch", None)
            if batch is None:
                rows: list[np.ndarray] = buffer.rows
                values[r] = to_device(queue, rows, buffer.dense)
            else:
                if buffer.event is not None and id(buffer.event) not in waited:
                    waited.add(id(buffer.event))
                    queue.runtime.wait(queue.stream, buffer.event)
                queue.keep(batch)
                values[r] = batch
            sources[r] = buffer.sources


def _no_function(*_: Any) -> Any:
    raise AssertionError("a source is not run")


def _kinds(step: Step) -> tuple[type, ...]:
    """Kinds of lazy batch that an operator takes."""
    takes = () if step.op is None else step.op.takes
    return tuple([kind for kind in takes if issubclass(kind, LazyBatch)])


def _is_several(result: Any) -> bool:
    return isinstance(result, tuple) and not isinstance(result, (HostCopy, LateBatch))
