"""Calls that are done together: one graph of several operators, and the programs that run it."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from headrace.executor.cpu.frames import FrameLoop
from headrace.executor.cpu.program import Program
from headrace.executor.cpu.runner import SampleRunner
from headrace.executor.plan import Plan, make_plan
from headrace.executor.step import StepMaker
from headrace.experimental.dynamic.operations import BoundOperator, ConfiguredOperator, Recent
from headrace.experimental.dynamic.single_sample import SCRATCH
from headrace.graph.data_node import DataNode
from headrace.graph.fuse import merge_expressions
from headrace.operators.support.registry import find
from headrace.operators.support.schema import Spec

if TYPE_CHECKING:
    from headrace.executor.gpu.program import GpuProgram
    from headrace.experimental.dynamic.invocations import Invocation
    from headrace.experimental.dynamic.values import ValueReference
    from headrace.graph.nodes import OpNode

_MOST_CHAINS = 1024

Origin = tuple[int, int]
"""Output of a call of the chain, as (call, output); the call is -1 for data that exists already."""


class ReadyStepMaker(StepMaker):
    """Makes steps of operators that have been made when they were called."""

    def __init__(
        self,
        plan: Plan,
        specs: dict[int, Spec],
        operators: dict[int, BoundOperator],
        frames: type[FrameLoop],
    ) -> None:
        super().__init__(plan, specs, {}, frames)
        self._operators = operators

    def make(self, node: OpNode) -> tuple[Any, tuple[Spec, ...]]:
        """The operator of a node, and the types of its outputs."""
        bound = self._operators.get(node.serial)
        if bound is None or bound.operation.args is not node.args:
            return super().make(node)  # several expressions have become one
        return bound.op, bound.specs


class CallGraph:
    """The graph of some calls, in which each sample can go through all of them."""

    def __init__(
        self,
        operators: Sequence[BoundOperator],
        reads: Sequence[Sequence[Origin]],
        names: Sequence[Sequence[str]],
        given: Sequence[tuple[Spec, bool]],
        wanted: Sequence[Origin],
    ) -> None:
        self._operators = dict(enumerate(operators))
        nodes: list[OpNode] = []
        edges: dict[Origin, DataNode] = {}
        for number, (_, on_gpu) in enumerate(given):
            source = ConfiguredOperator(find("external_source"), "gpu" if on_gpu else "cpu", {})
            node = source.node(-1 - number)
            node.input_queue = self
            node.outputs = [DataNode.of(node, 0, 1)]
            nodes.append(node)
            edges[-1, number] = node.outputs[0]
        for number, bound in enumerate(operators):
            node = bound.operation.node(number)
            count = len(names[number])
            sources = [edges[origin] for origin in reads[number]]
            cut = len(sources) - count
            node.inputs = sources[:cut]
            node.tensor_args = dict(zip(names[number], sources[cut:], strict=True))
            node.outputs = [DataNode.of(node, k, len(bound.specs)) for k in range(len(bound.specs))]
            for k, edge in enumerate(node.outputs):
                edges[number, k] = edge
            nodes.append(node)
        outputs = [edges[origin] for origin in wanted]
        nodes, outputs = merge_expressions(nodes, outputs)
        self.plan = make_plan(nodes, outputs, {})
        self.given = [self.plan.registers[id(n), 0] for n in nodes if n.input_queue is not None]
        self.specs = {r: spec for r, (spec, _) in zip(self.given, given, strict=True)}
        self._programs: dict[tuple[int, bool], Any] = {}
        self._lock = threading.Lock()
        self._runners: dict[tuple[Program, int], SampleRunner] = {}
        """Runners of samples, by program and thread."""

    def program(
        self, number: int, buffers: Sequence[Any], threads: int, *, whole: bool = True
    ) -> Program | GpuProgram:
        """Program of stage `number` of the plan.

        Without `whole`, all that may fail for a sample is done sample by sample.
        """
        found = self._programs.get((number, whole))
        if found is not None:
            return found  # type: ignore[no-any-return]
        with self._lock:
            found = self._programs.get((number, whole))
            if found is None:
                specs = {r: b.spec for r, b in enumerate(buffers) if b is not None}
                specs.update(self.specs)
                found = self._made(number, specs, threads, whole)
                self._programs[number, whole] = found
        return found

    def runner(self, program: Program) -> SampleRunner:
        """Runner of samples for the calling thread."""
        key = program, threading.get_ident()
        found, arena = self._runners.get(key), SCRATCH.arena
        if found is None or found._arena is not arena:  # another thread had that number
            found = self._runners[key] = SampleRunner(program, arena, materialise_views=False)
        return found

    def _made(
        self, number: int, specs: dict[int, Spec], threads: int, whole: bool
    ) -> Program | GpuProgram:
        stage = self.plan.stages[number]
        if stage.device == "cpu":
            maker = ReadyStepMaker(self.plan, specs, self._operators, FrameLoop)
            return Program(self.plan, stage, specs, {}, True, maker, whole=whole)
        from headrace.executor.gpu.frames import GpuFrames
        from headrace.executor.gpu.program import GpuProgram

        maker = ReadyStepMaker(self.plan, specs, self._operators, GpuFrames)
        return GpuProgram(self.plan, stage, specs, fuse=True, threads=threads, maker=maker)


_chains = Recent(_MOST_CHAINS)


def chain_of(
    invocations: Sequence[Invocation], wanted: Sequence[Origin]
) -> tuple[CallGraph, list[ValueReference]]:
    """The chain for some calls, each after those it reads, and the references it reads itself."""
    inner: dict[int, Origin] = {}
    outer: dict[int, int] = {}
    given: list[ValueReference] = []
    parts: list[Any] = []
    for number, invocation in enumerate(invocations):
        origins = []
        for reference in invocation.sources() if invocation.tensors else invocation.inputs:
            key = id(reference)
            found = inner.get(key)
            if found is None:
                position = outer.get(key)
                if position is None:
                    position = outer[key] = len(given)
                    given.append(reference)
                found = (-1, position)
            origins.append(found)
        for k, reference in enumerate(invocation.references):
            inner[id(reference)] = (number, k)
        names = tuple([name for name, _ in invocation.tensors]) if invocation.tensors else ()
        parts.append((invocation.bound, tuple(origins), names))
    types = tuple([(reference.spec, reference.device != "cpu") for reference in given])
    structure = (tuple(parts), types, tuple(wanted))
    chain = _chains.get(structure)
    if chain is None:
        operators, reads, names = zip(*parts, strict=True)
        chain = _chains.add(structure, CallGraph(operators, reads, names, types, wanted))
    return chain, given
