"""A stage on the CPU made ready for data of known types: the steps each sample goes through."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.errors import NotYetSupportedError
from headrace.executor.cpu.batch import BatchBuffer
from headrace.executor.cpu.compiled_chunk import CompiledChunks
from headrace.executor.cpu.concurrency import Concurrency
from headrace.executor.cpu.frames import FrameLoop
from headrace.executor.step import Step, StepMaker, function_of, with_place
from headrace.executor.step import reads as reads_of
from headrace.graph.nodes import OpNode
from headrace.operators.support.lazy_value import LazyValue
from headrace.operators.support.operator import SampleOperator
from headrace.operators.support.planning import SAMPLE_ERRORS, Samples
from headrace.operators.support.schema import Spec
from headrace.tensors.pool import HostPool

if TYPE_CHECKING:
    from headrace.executor.guards import Choices, Guard
    from headrace.executor.plan import Plan, Stage


_MOST_ELEMENTS = 1024
"""Of a sample that is worked out for the whole batch: to work on no more of them takes less than to
come to each sample does."""


_LONG_SECONDS = 5e-3
"""Processor time of a sample above which all threads work: interpreter time is small beside it."""
_CHUNK_SECONDS, _STEP_SECONDS = 1e-4, 4e-5
"""Interpreter time of a chunk, however many samples it has, and of each of its steps in a branch;
other steps cost much less, ..."""
_COLUMNS_SECONDS = 2.5e-5
"""... but those that take light samples as columns."""


class Program:
    """The steps of a stage, and the types of everything they produce."""

    def __init__(
        self,
        plan: Plan,
        stage: Stage,
        specs: dict[int, Spec],
        readers: dict[int, Any],
        fuse: bool,
        maker: StepMaker | None = None,
        threads: int = 1,
        whole: bool = True,
        choices: Choices = (),
    ) -> None:
        self.plan = plan
        self.stage = stage
        self.choices = choices
        """Branches that samples of the batch take in the rest of a stage."""
        self.given = tuple(specs)
        """Registers whose types were known before."""
        self.is_whole = whole
        """True if batches that follow from draws and constants are made before samples run."""
        self._compiled: CompiledChunks | None = None
        self._has_compiled = False
        self._maker = maker or StepMaker(plan, specs, readers, FrameLoop, choices)
        self.specs = self._maker.specs
        self.steps: list[Step] = []
        self.whole_steps: list[Step] = []
        """Steps that are planned for the whole batch, before its first sample runs: draws, and what
        follows from draws and constants."""
        self.rows: dict[int, int] = {}
        """For each register that a merge reads, the output register whose rows its samples are
        written to."""
        self.constants: dict[int, np.ndarray] = {}
        """Registers that hold the same array for every sample."""
        self.examples: dict[int, np.ndarray] = {}
        """One sample, ``(1, ...)``, of each register whose batch is there before the first sample
        runs."""
        self.sample_seconds = 1.0
        """About how long one sample takes, on one thread."""
        self.processor_seconds = 1.0
        """The same without waiting for files, or for the interpreter."""
        self.own_seconds = 1.0
        """The same without loops in which other threads may help; see `SharedLoops`."""
        self.chunk_seconds = 0.0
        """Approximate interpreter time of a chunk, however many samples it has."""
        self.is_sent = False
        """True if worker processes carried the last samples."""
        self.is_timed = False
        """True if the times above were measured."""
        self._fuse = fuse
        self._late: dict[int, OpNode] = {}
        self._late_registers: set[int] = set()
        for node in stage.sample_nodes:
            if self._can_make(node):
                self._try_to_add(node, self._add)
        self.chunk_seconds = (
            _CHUNK_SECONDS
            + _STEP_SECONDS * sum(bool(s.guard) for s in self.steps)
            + _COLUMNS_SECONDS * sum(s.light_function is not None for s in self.steps)
        )
        self.batch_steps: list[Step] = []
        for node in stage.batch_nodes:
            if self._can_make(node):
                self._try_to_add(node, self._add_batch)
        self.late = tuple([k for k, n in enumerate(plan.nodes) if id(n) in self._late])
        """Positions in the plan of nodes that are left for the next part of the stage: whether they
        fit, and what types they make, follows from the branches that samples of the batch take."""
        self._leaves = plan.leaves_stage
        if self.late:
            self._leaves = list(plan.leaves_stage)
            for r in (plan.register(e) for n in self._late.values() for e in n.sources):
                self._leaves[r] = True
        self._pass_on()
        self._flatten_merges()
        self._write_to_merged()
        self.is_pass_through = all(step.is_pass_through for step in self.steps)
        """True if samples pass through without any work on their data."""
        used = {r for step in self.steps for r in reads_of(step)}
        ahead = [r for step in self.whole_steps for r in step.outputs] + list(self.constants)
        self.ahead = [r for r in ahead if r in used or self._leaves[r]]
        """Registers of what follows from draws and constants, as far as others than `whole_steps`
        read it."""
        self.reads = [*(r for r in stage.reads if r in self.specs), *self.ahead]
        """Registers that hold batches before the first sample runs."""
        self._repeated: tuple[int, dict[int, Samples]] = 0, {}
        self._drop_useless_plans()
        self.reads_only = (
            len(self.steps) == 1
            and self.steps[0].is_reader
            and not (self.batch_steps or self.late)
            and self.steps[0].op.index.cached is None
        )
        """True if the program only reads samples."""
        self.reads_apart = any(s.is_reader and s.op.index.reads_apart for s in self.steps)
        """True if it reads what threads of this process are to bring in."""
        self.has_work = bool(self.steps or self.batch_steps or self.late)
        """True if there is more than draws and constants for whole batches."""
        self.concurrency = Concurrency(
            threads, tries=bool(self.steps) and not (self.is_pass_through or self.batch_steps)
        )
        """Limit on the number of threads at work on it."""
        self.written = self._trace_sources()
        """Registers of the steps that become batches, and the register that each has the sources
        of its samples from; -1 for none."""

    @property
    def compiled(self) -> CompiledChunks | None:
        """The steps as instructions of a compiled loop, where all of them can be written so."""
        if not self._has_compiled:
            self._compiled = CompiledChunks.of(self) if self._fuse else None
            self._has_compiled = True
        return self._compiled

    def _can_make(self, node: OpNode) -> bool:
        """Return True if the types of all inputs of `node` are known; postpone it if they may be
        later.
        """
        register = self.plan.register
        if self._late_registers and any(register(e) in self._late_registers for e in node.sources):
            self._put_off(node)
            return False
        return not self._maker.is_left_out(node) and self._maker.has_types(node)

    def _put_off(self, node: OpNode) -> None:
        self._late[id(node)] = node
        self._late_registers.update(self.plan.register(e) for e in node.outputs)

    def _try_to_add(self, node: OpNode, add: Callable[[OpNode], None]) -> None:
        """Make the steps of a node; a node that does not fit in a branch waits until its samples
        are known.
        """
        try:
            with_place(node, add, node)
        except Exception:
            waited = self.stage.part[:1]  # whatever the first one has waited for is there
            if node in [self.plan.nodes[k] for k in waited] or not self._maker.may_wait(node):
                raise
            self._put_off(node)

    def _add(self, node: OpNode) -> None:
        if node.schema.reader:
            self.steps += self._maker.reading(node)
            return
        op, specs = self._maker.make(node)
        chunked = isinstance(op, SampleOperator) and op.chunked
        function = function_of(node, op, specs, chunked=chunked)
        step = self._maker.step(node, op, specs, function, chunked=chunked)
        if isinstance(op, SampleOperator) and op.chunks_light and not chunked:
            step.light_function = function_of(node, op, specs, chunked=True)
        reduced = self.plan.reduced.get(id(node))
        if reduced is not None:
            step.function, step.inputs = op.apply, (*step.inputs, *reduced)
            step.chunked = op.chunked
        values = self._values_ahead(step)
        is_constant = values is not None and self._is_constant(step, values)
        if values is None or not (is_constant or node.schema.random or self.is_whole):
            self.steps.append(step)
            return
        self.examples.update(zip(step.outputs, values, strict=True))
        if not is_constant:
            self.whole_steps.append(step)
            return
        for r, each in zip(step.outputs, values, strict=True):
            self.constants[r] = each[0, ...]
            self.constants[r].flags.writeable = False

    def _values_ahead(self, step: Step) -> tuple[np.ndarray, ...] | None:
        """The outputs of a step for one sample, if its plan gives them, and all that it reads is
        small and there for the whole batch.

        All samples are like this one: draws and constants have one shape. Where this one is bad,
        the step is done sample by sample in all batches.
        """
        reads = reads_of(step)
        if step.planner is None or not step.op.plans_values or step.node.schema.reads_metadata:
            return None
        if reads and not (self.is_whole and self.examples.keys() >= set(reads)):
            return None
        try:
            values = self._example(step, 0)
        except SAMPLE_ERRORS:
            return None
        small = [*(self.examples[r] for r in reads), *(values or ())] if reads else ()
        return values if all(each.size <= _MOST_ELEMENTS for each in small) else None

    def _example(self, step: Step, number: int) -> tuple[np.ndarray, ...] | None:
        """The outputs of a step for sample `number` of iteration `number`, as its plan gives them.

        What it reads are the `examples` of sample 0.
        """
        assert step.planner is not None
        return step.planner.plan(
            [Samples(values=self.examples[r]) for r in step.inputs],
            {n: (Samples(values=self.examples[r]), f) for n, r, f in step.tensor_args},
            (number,),
            seed=step.seed,
            iteration=number,
        ).values

    def _is_constant(self, step: Step, values: tuple[np.ndarray, ...]) -> bool:
        """Return True if outputs are the same for all samples of all iterations.

        `values` are those of sample 0. A plan may use the index of the sample or of the iteration,
        so the values of another one are compared with them.
        """
        # Not its guard's: what is the same for all may be so in a branch, too.
        reads = {*step.inputs, *(r for _, r, _ in step.tensor_args)}
        schema = step.node.schema
        if schema.random or schema.merges or not reads <= self.constants.keys():
            return False
        try:
            other = self._example(step, 1)
        except SAMPLE_ERRORS:
            return False
        return other is not None and all(
            a.dtype == b.dtype and a.tobytes() == b.tobytes()
            for a, b in zip(values, other, strict=True)
        )

    def _drop_useless_plans(self) -> None:
        """Drop plans of steps whose `cpu` needs none and whose shapes are not needed ahead."""
        asked: set[int] = set()
        for step in reversed(self.steps):
            if step.planner is None:
                continue
            small = all(self.specs[r].ndim in (0, None) for r in step.outputs)
            if not (step.planner.is_needed or small or asked.intersection(step.outputs)):
                step.planner = None
                continue
            asked.update(step.inputs, (r for _, r, _ in step.planned_args))
            for guard in (step.guard, *(guard for _, guard in step.branches)):
                asked.update(r for r, _ in guard)

    def _trace_sources(self) -> list[tuple[int, int]]:
        """Find the file of each register's samples: that of the first input of its maker with a
        known file.
        """
        origins = {r: r for r in self.reads if r not in self.constants}
        for step in self.steps:
            if step.is_reader:
                step.origin = step.outputs[0]
            elif step.inputs:
                found = [origins.get(r, -1) for r in step.inputs]
                step.origin = next((r for r in found if r != -1), -1)
                if step.branches:
                    step.branch_origins = tuple([origins.get(r, -1) for r, _ in step.branches])
                    same = len(set(step.branch_origins)) == 1
                    step.origin = step.branch_origins[0] if same else step.outputs[0]
            origins.update(dict.fromkeys(step.outputs, step.origin))
            if step.is_reader and step.op.index.own_sources:
                origins.update((r, r) for r in step.outputs[: step.op.pieces])
            elif step.node.schema.reader and step.inputs:  # a parser makes each of its own piece
                origins.update(zip(step.outputs, found, strict=False))
        return [(r, origins[r]) for step in self.steps for r in step.outputs if self._leaves[r]]

    def _add_batch(self, node: OpNode) -> None:
        self.batch_steps.append(self._batch_step(node))

    def _batch_step(self, node: OpNode) -> Step:
        op, specs = self._maker.make(node)
        if isinstance(op, FrameLoop):
            raise NotYetSupportedError("Whole-batch operators do not take sequences yet.")
        phases = self.plan.reduced.get(id(node))
        if phases is None:
            return self._maker.step(node, op, specs, op.cpu)
        step = self._maker.step(node, op, specs, op.reduce)
        step.outputs, step.reduces = phases, True
        return step

    def repeated_constants(self, size: int) -> dict[int, Samples]:
        """Return the `constants` that `whole_steps` read, repeated for `size` samples."""
        if self._repeated[0] != size:
            read = {r for step in self.whole_steps for r in reads_of(step)}
            arrays = {r: a for r, a in self.constants.items() if r in read}
            self._repeated = (
                size,
                {
                    r: Samples(values=np.broadcast_to(array, (size, *array.shape)))
                    for r, array in arrays.items()
                },
            )
        return self._repeated[1]

    def buffer(self, r: int, size: int, pool: HostPool) -> BatchBuffer:
        """Make the batch that receives `size` samples on register `r`."""
        made = BatchBuffer(size, self.specs[r], self.plan.history[r], pool)
        if self.plan.uploaded[r] and r not in self.plan.outputs:
            made.expect_upload()
        return made

    def note_time(
        self, seconds: float, processor_seconds: float, count: int, shared_seconds: float = 0.0
    ) -> None:
        """Take into account what a chunk of so many samples took, by the clock and of processors,
        and what of the latter in loops in which other threads help.

        What the chunk itself takes of a processor is left out: how many samples make one follows
        from what is left, and must not follow from how many there were.
        """
        seconds /= count
        processor_seconds = max(processor_seconds - self.chunk_seconds, 0) / count
        own_seconds = max(processor_seconds - shared_seconds / count, 0)
        if not self.is_timed:
            self.is_timed = True
            self.sample_seconds, self.processor_seconds = seconds, processor_seconds
            self.own_seconds = own_seconds
            return
        self.sample_seconds += (seconds - self.sample_seconds) / 4
        self.processor_seconds += (processor_seconds - self.processor_seconds) / 4
        self.own_seconds += (own_seconds - self.own_seconds) / 4

    @property
    def needs_all_threads(self) -> bool:
        """True if the interpreter time of samples is small beside the rest, with all threads at
        work.
        """
        seconds = self.processor_seconds
        return seconds > _LONG_SECONDS or self.own_seconds * self.concurrency.threads < seconds

    def leaving(self, r: int) -> int | None:
        """The register of the batch whose rows samples on register `r` are written to."""
        r = self.rows.get(r, r)
        return r if self._leaves[r] else None

    def _flatten_merges(self) -> None:
        """Let one step join the branches of merges whose result only another merge reads, such as
        those of `elif`: each sample is then joined once.
        """
        merges = {step.outputs[0]: step for step in self.steps if step.branches}
        inner = set()
        for step in merges.values():  # those that it reads came before
            branches: list[tuple[int, Guard]] = []
            for r, guard in step.branches:
                read = merges.get(r)
                if (
                    read is None
                    or read.guard != guard
                    or self.plan.consumers[r] > 1
                    or self._leaves[r]
                ):
                    branches.append((r, guard))
                else:
                    inner.add(r)
                    branches += read.branches
            step.branches = tuple(branches)
            step.inputs = tuple([r for r, _ in branches])
        self.steps = [s for s in self.steps if not inner.intersection(s.outputs)]

    def _write_to_merged(self) -> None:
        """Let the last step of a branch write to the rows of the merged batch, where no other
        step reads its results: then nothing need be copied.
        """
        maker_of = {r: step for step in self.steps for r in step.outputs}
        for merge in reversed(self.steps):
            for r, guard in merge.branches:
                maker = maker_of.get(r)
                if (
                    maker is not None
                    and set(maker.guard).issuperset(guard[len(merge.guard) :])
                    and self.plan.consumers[r] == 1
                    and not self._leaves[r]
                ):
                    self.rows[r] = self.rows.get(merge.outputs[0], merge.outputs[0])

    def _pass_on(self) -> None:
        """Let lazy values go to their only reader where it takes them; others are computed."""
        reader_of = {s.inputs[0]: s for s in self.steps if s.inputs}
        for step in self.steps:
            kinds = [kind for kind in step.op.returns_lazy if issubclass(kind, LazyValue)]
            if not kinds:
                continue
            r = step.outputs[0]
            kinds = [kind for kind in kinds if kind.layout in ("", self.specs[r].layout)]
            reader = reader_of.get(r)
            step.is_lazy = step.is_pass_through = (
                self._fuse
                and reader is not None
                and self.plan.consumers[r] == 1
                and not self._leaves[r]
                and reader.guard == step.guard
                and bool(kinds)
                and all(issubclass(kind, reader.op.takes) for kind in kinds)
            )
            step.materialises = not step.is_lazy
        maker_of = {r: step for step in self.steps for r in step.outputs}
        for step in self.steps:
            maker = maker_of.get(step.inputs[0]) if step.inputs else None
            if maker is not None and maker.is_lazy and step.op.chunks_lazy and not step.is_lazy:
                step.function, step.chunked, step.takes_lazy = step.op.cpu_chunk, True, True
