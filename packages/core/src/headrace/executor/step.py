"""Steps of a stage: operators at work, with what each reads and writes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.errors import ShapeError, located
from headrace.executor.inputs import check_argument, check_frame_arguments, checked, is_for_frames
from headrace.executor.loader import Loader
from headrace.executor.own_results import checking
from headrace.executor.planning import Planner
from headrace.graph.nodes import OpNode
from headrace.kernels.cpu.philox_state import EXAMPLE_SEED
from headrace.operators.generic.merge import check_predicate
from headrace.operators.support.schema import RANDOM_STATE, Spec, as_specs

if TYPE_CHECKING:
    from headrace.executor.guards import Choices, Guard
    from headrace.executor.plan import Plan


@dataclass(slots=True, eq=False)
class Step:
    """One operator within a stage."""

    node: OpNode
    op: Any
    function: Callable[..., Any]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    tensor_args: tuple[tuple[str, int, Callable[[np.ndarray], Any]], ...]
    args: dict[str, Any]
    seed: int
    is_reader: bool
    """True if it loads entries of a reader; `op` is a `Loader`."""
    is_pass_through: bool = False
    """True if the step hardly touches data: it reads a file, or passes on a lazy value."""
    planner: Planner | None = None
    """Planner that works out samples ahead of their data, if the operator can."""
    planned_args: tuple[tuple[str, int, Callable[[np.ndarray], Any]], ...] = ()
    """Those of `tensor_args` that it looks at."""
    sample_args: tuple[tuple[str, int, Callable[[np.ndarray], Any]], ...] = ()
    """Those of `tensor_args` that `function` finds in its context."""
    guard: Guard = ()
    """The samples that it does."""
    reduces: bool = False
    """True if it reduces the batch to values that the operator then uses sample by sample."""
    branches: tuple[tuple[int, Guard], ...] = ()
    """Of a step that joins branches (see `OpSchema.merges`), the register of each, and which
    samples take it."""
    chunked: bool = False
    """True if samples go through `function` several at a time."""
    takes_lazy: bool = False
    """True if it takes lists of lazy values."""
    light_function: Callable[..., Any] | None = None
    """The function for several samples of few bytes, where samples go through `function` one by
    one."""
    parses: bool = False
    """True if it parses records; `light_function` then takes those of any length."""
    read: tuple[bool, ...] = ()
    """Of each output, True if it is read."""
    is_lazy: bool = False
    """True if it passes on lazy values."""
    materialises: bool = False
    """True if the lazy values it returns are computed at once."""
    origin: int = -1
    """The register that tells where samples were read from; -1 for none."""
    branch_origins: tuple[int, ...] = ()
    """The same for each of `branches`."""

    @property
    def needs_plan(self) -> bool:
        """True if `function` works with what the operator has planned."""
        return self.planner is not None and self.planner.is_needed


class StepMaker:
    """Makes steps of nodes, in order, and finds the types of what they produce."""

    def __init__(
        self,
        plan: Plan,
        specs: dict[int, Spec],
        readers: dict[int, Any],
        frames: Callable[[Any, list[Spec], dict[str, str]], Any],
        choices: Choices = (),
    ) -> None:
        self.plan = plan
        self.specs = dict(specs)
        self._readers = readers
        self._frames = frames
        self._choices = dict(choices)

    def may_wait(self, node: OpNode) -> bool:
        """Return True if `node`, which does not fit, may yet turn out to have no samples or
        branches to join: it is not known yet which samples take them, and its own arguments are
        valid.
        """
        if all(guard in self._choices for guard in self.plan.guards_of(node)):
            return False
        try:
            if not node.tensor_args:
                node.schema.cls.for_arguments(node.args)(node.args, {})
        except Exception:  # with the same words, wherever it comes from
            return False
        return True

    def is_left_out(self, node: OpNode) -> bool:
        """Return True if no sample takes `node`, so that it has no types."""
        guards = self.plan.guards_of(node)
        return bool(guards) and all(self._choices.get(guard) is False for guard in guards)

    def has_types(self, node: OpNode) -> bool:
        """Return True if the types of all inputs of `node` are known.

        Where only the data tells a type, it is unknown in a branch that no sample takes; then none
        takes the nodes after it either, up to where branches join.
        """
        known = [self.plan.register(edge) in self.specs for edge in node.sources]
        if node.schema.typed_by_last:
            known[len(node.inputs) - 1] = True
        if node.schema.merges:
            known[:2] = [bool(self._joined(node))]
        return all(known)

    def _joined(self, node: OpNode) -> list[int]:
        """The registers of the branches that count, of a node that joins some."""
        branches = zip(node.inputs, self.plan.guards_of(node), strict=False)
        found = [self.plan.register(e) for e, guard in branches if self._choices.get(guard, True)]
        return [r for r in found if r in self.specs]

    def make(self, node: OpNode) -> tuple[Any, tuple[Spec, ...]]:
        """The operator of a node, and the types of its outputs."""
        inputs, tensors = self._specs_of(node)
        for r, _ in self.plan.guard(node):
            check_predicate(self.specs[r])
        op: Any = node.schema.cls.for_arguments(node.args)(node.args, tensors)
        op.user_line = node.user_line
        op.check_known(len(inputs))
        if is_for_frames(node.schema, inputs, tensors):
            op = self._frames(op, inputs, {k: s.layout for k, s in tensors.items()})
        else:
            check_frame_arguments(node.schema, inputs, tensors)
        found = op, as_specs(op.infer(*inputs))
        suspect = op.suspect(*inputs)
        if suspect:
            self.plan.warn(node, suspect)
        return found

    def _specs_of(self, node: OpNode) -> tuple[list[Any], dict[str, Spec]]:
        register = self.plan.register
        registers = [register(edge) for edge in node.inputs]
        if node.schema.merges:
            registers[:2] = (self._joined(node) * 2)[:2]
        like = registers.pop() if node.schema.typed_by_last else None
        inputs: list[Any] = [
            checked(node.schema, position, self.specs[r]) for position, r in enumerate(registers)
        ]
        if like is not None:
            inputs.append(self.specs.get(like))
        tensors = {name: self.specs[register(e)] for name, e in node.tensor_args.items()}
        for name, spec in tensors.items():
            check_argument(node.schema.args[name], spec)
        return inputs, tensors

    def fed(self, node: OpNode) -> list[Spec]:
        """Types of the outputs of a source."""
        return [self.specs[self.plan.registers[id(node), k]] for k in range(len(node.outputs))]

    def reading(self, node: OpNode) -> list[Step]:
        """Return the steps of a reader: one that loads, and one that parses if there is a
        parser.
        """
        reader = self._readers[id(node)]
        loader = Loader(reader.index)
        _, reader.tensor_args = self._specs_of(node)
        specs = reader.output_specs()
        outputs = tuple(self.plan.register(e) for e in node.outputs)
        if len(specs) != len(outputs):
            raise ShapeError(
                f"The parser and the columns make {len(specs)} outputs where the declaration says "
                f"{len(outputs)}."
            )
        if not reader.parses:
            return [self.step(node, loader, specs, loader.fetch, (), outputs)]
        handed = self.plan.parsed[id(node)]
        cached = reader.index.cached
        known = 0 if cached is None else len(cached.specs)
        parsed = len(outputs) - len(reader.index.columns) - known
        loaded = (*handed, *outputs[parsed:])
        made = specs[:parsed]
        function = function_of(node, reader, made, chunked=False)
        parse = self.step(node, reader, made, function, handed, outputs[:parsed])
        if reader.chunks_light:
            parse.light_function = function_of(node, reader, made, chunked=True)
            parse.parses = True
        if outputs[0] in self.plan.guards:  # of entries that are read; the others are in caches
            parse.guard = self.plan.guards[outputs[0]]
        return [self.step(node, loader, loader.specs, loader.fetch, (), loaded), parse]

    def step(
        self,
        node: OpNode,
        op: Any,
        specs: tuple[Spec, ...],
        function: Any,
        inputs: tuple[int, ...] | None = None,
        outputs: tuple[int, ...] | None = None,
        *,
        chunked: bool = False,
    ) -> Step:
        """The step in which `function` of `op` makes outputs of these types.

        It reads and writes the registers of the node where no others are given. `chunked` says that
        `function` takes several samples.
        """
        register = self.plan.register
        if inputs is None:
            inputs = tuple(register(e) for e in node.inputs)
            if node.schema.typed_by_last:
                inputs = inputs[:-1]
        if outputs is None:
            outputs = tuple(register(e) for e in node.outputs)
        for r, spec in zip(outputs, specs, strict=True):
            self.specs[r] = spec
        frame_args = () if op is None else op.frame_args
        tensor_args = tuple(
            (
                name,
                register(edge),
                _as_is if name in frame_args else node.schema.args[name].type.sample or _as_is,
            )
            for name, edge in node.tensor_args.items()
        )
        planner = None
        planned_args: Any = ()
        sample_args = tensor_args
        if op is not None and op.plan is not None:
            arguments = SimpleNamespace(**vars(op.args))
            planned_args = tuple(a for a in tensor_args if a[0] not in op.unplanned)
            planner = Planner(op, arguments, specs, constant=not planned_args)
            if op.needs_plan:
                read_again = (*op.unplanned, RANDOM_STATE)
                sample_args = tuple(a for a in tensor_args if a[0] in read_again)
        guard = self.plan.guard(node)
        branches: tuple[tuple[int, Guard], ...] = ()
        if node.schema.merges:
            branches = tuple(zip(inputs, self.plan.guards_of(node), strict=False))
        return Step(
            node=node,
            op=op,
            function=function,
            inputs=inputs,
            outputs=outputs,
            tensor_args=tensor_args,
            args={} if op is None else vars(op.args),
            seed=self.plan.seeds.get(id(node), EXAMPLE_SEED),
            is_reader=isinstance(op, Loader),
            is_pass_through=isinstance(op, Loader),
            planner=planner,
            planned_args=planned_args,
            sample_args=sample_args,
            guard=guard,
            branches=branches,
            chunked=chunked,
            read=tuple(self.plan.consumers[r] > 0 for r in outputs),
        )


def function_of(
    node: OpNode, op: Any, specs: Sequence[Spec], *, chunked: bool
) -> Callable[..., Any]:
    """The function that makes samples, one or several: the program's own ones are checked."""
    function = op.cpu_chunk if chunked else op.cpu
    return function if node.schema.is_librarys else checking(function, specs, chunked=chunked)


def reads(step: Step) -> list[int]:
    """The registers that a step reads."""
    guards = (step.guard, *(guard for _, guard in step.branches))
    return [
        *step.inputs,
        *(r for _, r, _ in step.tensor_args),
        *dict.fromkeys(r for guard in guards for r, _ in guard),
    ]


def check_count(step: Step, results: tuple[Any, ...]) -> None:
    """Check that an operator has made as many outputs as it declares."""
    if len(results) != len(step.outputs):
        raise ShapeError(
            f"The operator made {len(results)} outputs where its declaration says "
            f"{len(step.outputs)}; a tuple has one element for each of them."
        )


def with_place(node: OpNode, function: Callable[..., Any], *args: Any) -> Any:
    """Call `function`, in a worker; an error from it says that it belongs to `node`."""
    try:
        return function(*args)
    except BaseException as error:
        raise located(error, node.where()) from error


def _as_is(value: np.ndarray) -> np.ndarray:
    return value
