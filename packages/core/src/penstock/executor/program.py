"""A stage made ready for data of known types: the steps each sample goes through."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.errors import located
from penstock.executor.arena import Arena
from penstock.executor.context import Context
from penstock.executor.frames import FrameLoop
from penstock.executor.inputs import check_argument, checked
from penstock.operators.schema import Spec

if TYPE_CHECKING:
    from penstock.executor.plan import Plan, Stage
    from penstock.graph.nodes import OpNode


@dataclass(slots=True, eq=False)
class Step:
    """One operator within a stage."""

    node: OpNode
    op: Any
    function: Callable[..., Any]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    leaving: tuple[int, ...]
    """Positions among `outputs` of those that must become a batch."""
    tensor_args: tuple[tuple[str, int, Callable[[np.ndarray], Any]], ...]
    args: dict[str, Any]
    seed: int
    is_reader: bool
    is_light: bool = False
    """Whether the step hardly touches data: it reads a file, or hands on a recipe."""

    def context(self, arena: Arena) -> Context:
        """A context of this step for one worker."""
        return Context(self.node, SimpleNamespace(**self.args), arena, self.seed, len(self.outputs))


class Program:
    """The steps of a stage, and the types of everything they produce."""

    def __init__(
        self, plan: Plan, stage: Stage, specs: dict[int, Spec], readers: dict[int, Any], fuse: bool
    ) -> None:
        self.plan = plan
        self.stage = stage
        self.specs = dict(specs)
        self.steps: list[Step] = []
        self.drawn: list[tuple[Step, Any]] = []
        """Random operators whose whole batch is drawn at once."""
        self.constants: list[tuple[int, np.ndarray]] = []
        """Registers that hold the same array for every sample."""
        self.sample_seconds = 1.0
        """About how long one sample takes, on one thread."""
        self._readers = readers
        self._fuse = fuse
        for node in stage.sample_nodes:
            with_place(node, self._add, node)
        self._defer()
        self.batch_steps = [with_place(n, self._add_batch, n) for n in stage.batch_nodes]
        self.reads = [
            *stage.reads,
            *(r for step, _ in self.drawn for r in step.outputs),
            *(r for r, _ in self.constants),
        ]
        """Registers that hold batches before the first sample runs."""
        self.written = [r for step in self.steps for r in step.outputs if plan.leaves_stage[r]]

    def _specs_of(self, node: OpNode) -> tuple[list[Spec], dict[str, Spec]]:
        register = self.plan.register
        inputs = [
            checked(node.schema, position, self.specs[register(edge)])
            for position, edge in enumerate(node.inputs)
        ]
        tensors = {name: self.specs[register(e)] for name, e in node.tensor_args.items()}
        for name, spec in tensors.items():
            check_argument(node.schema.args[name], spec)
        return inputs, tensors

    def _make(self, node: OpNode) -> tuple[Any, tuple[Spec, ...]]:
        inputs, tensors = self._specs_of(node)
        op: Any
        if node.schema.reader:
            op = self._readers[id(node)]
        else:
            op = node.schema.cls(node.args, tensors)
        if node.schema.frames and inputs and "F" in inputs[0].layout:
            op = FrameLoop(op, inputs[0], {k: s.layout for k, s in tensors.items()})
        specs = op.infer(*inputs)
        return op, (specs,) if isinstance(specs, Spec) else tuple(specs)

    def _step(self, node: OpNode, op: Any, specs: tuple[Spec, ...], function: Any) -> Step:
        register = self.plan.register
        outputs = tuple(register(e) for e in node.outputs)
        for r, spec in zip(outputs, specs, strict=True):
            self.specs[r] = spec
        frame_args = getattr(op, "frame_args", ())
        tensor_args = tuple(
            (
                name,
                register(edge),
                _as_is if name in frame_args else node.schema.args[name].type.sample or _as_is,
            )
            for name, edge in node.tensor_args.items()
        )
        return Step(
            node=node,
            op=op,
            function=function,
            inputs=tuple(register(e) for e in node.inputs),
            outputs=outputs,
            leaving=tuple(k for k, r in enumerate(outputs) if self.plan.leaves_stage[r]),
            tensor_args=tensor_args,
            args=vars(getattr(op, "op", op).args),
            seed=self.plan.seeds.get(id(node), 0),
            is_reader=node.schema.reader,
            is_light=node.schema.reader,
        )

    def _add(self, node: OpNode) -> None:
        op, specs = self._make(node)
        function = op.load if node.schema.reader else op.cpu
        step = self._step(node, op, specs, function)
        draw = getattr(op, "batch_values", None)
        same = getattr(op, "same_for_all", None)
        if same is not None:
            self.constants.append((step.outputs[0], same))
        elif draw is not None and not node.sources and draw(step.seed, 0, 1) is not None:
            self.drawn.append((step, draw))
        else:
            self.steps.append(step)

    def _add_batch(self, node: OpNode) -> Step:
        op, specs = self._make(node)
        return self._step(node, op, specs, op.cpu_batch)

    def note_time(self, seconds: float) -> None:
        """Take the time that a sample took into account."""
        self.sample_seconds += (seconds - self.sample_seconds) / 4

    def _defer(self) -> None:
        """Let a producer hand a recipe to its only consumer, where both can."""
        if not self._fuse:
            return
        consumer_of = {s.inputs[0]: s for s in self.steps if s.inputs}
        for step in self.steps:
            schema = step.node.schema
            if not schema.defers or len(step.outputs) != 1 or isinstance(step.op, FrameLoop):
                continue
            r = step.outputs[0]
            consumer = consumer_of.get(r)
            if (
                consumer is not None
                and self.plan.consumers[r] == 1
                and not self.plan.leaves_stage[r]
                and consumer.node.schema.takes_deferred
                and not isinstance(consumer.op, FrameLoop)
                and self.specs[r].layout == "HWC"
            ):
                step.function = step.op.defer
                step.is_light = True


def with_place(node: OpNode, function: Callable[..., Any], *args: Any) -> Any:
    """Call `function`, in a worker; an error from it says that it belongs to `node`."""
    try:
        return function(*args)
    except BaseException as error:
        raise located(error, node.where()) from error


def _as_is(value: np.ndarray) -> np.ndarray:
    return value
