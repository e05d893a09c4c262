"""Carries samples through the steps of a stage, on one worker."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from headrace.executor.cpu.bound_step import BoundStep, converted, lazy_producers
from headrace.executor.cpu.chunk import Chunk, Group, are_arrays, known, rows_of, samples_of
from headrace.executor.cpu.chunk_plans import keep_values, make_plans, plans_of
from headrace.executor.cpu.compiled_chunk import CompiledChunks
from headrace.executor.cpu.compiled_program import light_function
from headrace.executor.cpu.loading import load
from headrace.executor.cpu.merging import join_ahead, merged
from headrace.executor.guards import chosen, spread
from headrace.executor.source_names import SourceNames, some_of
from headrace.executor.step import check_count
from headrace.executor.step import reads as reads_of
from headrace.kernels.cpu import array_facts as _arrays
from headrace.kernels.cpu import strided as _strided
from headrace.operators.support.contexts import ChunkContext, SampleContext
from headrace.operators.support.lazy_value import LazyValue
from headrace.operators.support.planning import Samples
from headrace.tensors.rows import Rows
from headrace.tensors.strided_rows import StridedRows

if TYPE_CHECKING:
    from headrace.executor.cpu.arena import Arena
    from headrace.executor.cpu.batch import BatchBuffer
    from headrace.executor.cpu.program import Program
    from headrace.executor.cpu.shared_loops import ChunkLoops
    from headrace.executor.cpu.step_marks import StepMarks
    from headrace.executor.guards import Guard
    from headrace.executor.iteration import Iteration
    from headrace.executor.step import Step

_GROUP_BYTES, _SMALL_GROUP_BYTES = 16 << 20, 4 << 20
"""Scratch memory that samples which go through the steps together may take: small ones, and others.
A core's own cache holds less, but what a step on a chunk costs the interpreter is shared by more of
them."""
_SMALL_SAMPLE_BYTES = 512 << 10
"""Scratch memory of a small sample. What the caches lose by several larger ones is more."""

_FEW_SAMPLES = 12
"""Samples of a chunk below which to describe them as columns costs more than it saves."""

BoundSteps = list[tuple[BoundStep, list[list[Any]]]]
"""Steps, and for each of its outputs where samples of the chunk go."""


class SampleRunner:
    """Carries samples through a program, on one worker.

    A chunk of samples is taken at a time. They are read, and all that can be worked out ahead of
    their pixels is, for all of them at once: geometry, and whatever follows from shapes and small
    values (see `Operator.plan`). Then groups of them, single samples where they are large, go
    through the steps on pixels, while these are hot in the cache.
    """

    processor_seconds = 0.0
    """Processor time of samples outside the calling thread: none."""

    loops: ChunkLoops | None = None
    """Loops of the chunk in which other threads help, where there are any."""

    def __init__(
        self,
        program: Program,
        arena: Arena,
        *,
        materialise_views: bool,
        marks: StepMarks | None = None,
        is_strict: bool = False,
    ) -> None:
        self._is_strict = is_strict
        """True if errors of several samples end it: nothing is tried again, sample by sample."""
        self._marks = marks
        """Record of its steps in a profiled pipeline."""
        self._program = program
        self._arena = arena
        self._materialise = materialise_views
        steps = [
            (s, SampleContext(s.node, SimpleNamespace(**s.args), arena, s.seed))
            for s in program.steps
        ]
        self._readers = [(s, c) for s, c in steps if s.is_reader]
        self._operators = [(s, c) for s, c in steps if not s.is_reader]
        self._steps = steps
        self._contexts = {id(s): c for s, c in steps}
        made = {r: (s, c) for s, c in steps for r in s.outputs}
        self._producers = {id(s): lazy_producers(s, made) for s, _ in self._operators}
        """For each step the contexts that its lazy input refers to."""
        self._in_groups = any(s.chunked for s, _ in self._operators)
        self._has_light = any(s.light_function is not None for s, _ in self._operators)
        self._is_light = False
        """True if the samples of the chunk go through the steps together: they have few bytes, or
        there is one step only, so that none is to be hot in the cache for the next."""
        self._is_plain = not any(s.chunked or s.guard or s.branches for s, _ in self._operators)
        """True if all samples go through the same steps, one by one."""
        self._scratch_bytes = _GROUP_BYTES
        """Scratch memory that the last samples took, each."""
        self._iteration: Any = None

    def bind(self, iteration: Iteration) -> None:
        """Turn to another iteration's buffers."""
        self._iteration = iteration
        buffers: list[BatchBuffer | None] = iteration.buffers
        leaving = self._program.leaving
        for step, context in self._steps:
            context.iteration = iteration.number
            if iteration.seeds is not None:
                context.seed = iteration.seed_of(step)
            context.buffers = [
                None if (row_of := leaving(r)) is None else buffers[row_of] for r in step.outputs
            ]

    def share_loops(self, loops: ChunkLoops) -> None:
        """Have other threads help in the loops of chunks."""
        self.loops = loops
        for _, context in self._operators:
            context.loops = loops

    def release(self) -> None:
        """Let go of the iteration's buffers, which may belong to the user by now."""
        self._iteration = None
        for _, context in self._steps:
            context.buffers = []

    def spans(self) -> tuple[int, bytes] | None:
        """Return the spans recorded since the last call in a worker process of a profiled
        pipeline.
        """
        return None if self._marks is None else (os.getpid(), self._marks.rows.taken())

    def run(self, indices: list[int]) -> list[tuple[int, BaseException]]:
        """Carry these samples through all steps; return the failed ones with their errors."""
        if self._marks is None:
            return self._run(indices)
        self._marks.begin(self._iteration.number)
        try:
            return self._run(indices)
        finally:
            self._marks.end(indices)

    def _run(self, indices: list[int]) -> list[tuple[int, BaseException]]:
        arena = self._arena
        arena.reset()
        chunk = Chunk(indices, len(self._program.plan.consumers))
        for r in self._program.reads:
            batch = self._iteration.buffers[r]
            chunk.columns[r] = samples_of(batch, indices)
            if batch.sources is not None:
                chunk.sources[r] = some_of(batch.sources, indices)
        for step, context in self._readers:
            load(
                *(step, context, chunk, self._iteration, self._arena),
                outputs=self._program.plan.outputs,
                materialise_views=self._materialise,
            )
            if self._marks is not None:
                self._marks.whole(step, len(indices), indices[0])
        if chunk.indices:
            compiled = self._program.compiled
            if compiled is None or not self._carry_compiled(compiled, chunk):
                self._carry(chunk)
            self._note_sources(chunk)
        return chunk.failures

    def _carry_compiled(self, compiled: CompiledChunks, chunk: Chunk) -> bool:
        """Carry samples through all steps by one compiled loop; return False if they are left."""
        heads = compiled.heads
        if compiled.leaves(len(chunk.indices)):
            return False
        for step, context in self._operators if heads else ():
            if step not in heads:
                continue
            context.indices = chunk.indices
            context.sources = chunk.sources.get(step.origin)
            context.plans = None
            if step.planner is not None:
                try:
                    context.plans = plans_of(step, context, chunk, None, is_strict=False)
                except Exception:  # the other way meets it again
                    context.plans = None
                if context.plans is None:
                    return compiled.leave()
                if context.plans.values is not None:
                    keep_values(step, context, context.plans.values, chunk, None)
                    continue
                if self._marks is not None:
                    self._marks.whole(step, 0, chunk.indices[0])
            function = light_function(step)
            is_large = step.chunked and not chunk.has_few_bytes()
            if (
                function is None
                or is_large
                or not self._done_at_once(step, function, context, chunk)
            ):
                return compiled.leave()
        buffers, contexts = self._iteration.buffers, self._contexts
        return compiled.carry(chunk, buffers, self._arena, self._marks, contexts)

    def _note_sources(self, chunk: Chunk) -> None:
        """Record the files that samples of batches were read from."""
        buffers = self._iteration.buffers
        for r, origin in self._program.written:
            sources = chunk.sources.get(origin)
            if sources is not None and (isinstance(sources, SourceNames) or any(sources)):
                buffers[r].set_sources(chunk.indices, sources)

    def _carry(self, chunk: Chunk) -> None:
        """Take samples that have been read through all operators.

        What can be worked out for all of them at once comes first, step by step.
        """
        self._is_light = (
            self._has_light
            and len(chunk.indices) >= _FEW_SAMPLES
            and (len(self._operators) == 1 or chunk.has_few_bytes())
        )
        marks = self._marks
        left: list[tuple[Step, SampleContext]] = []
        selected: dict[Guard, Sequence[int] | None] = {(): range(len(chunk.indices))}
        for step, context in self._operators:
            context.indices = chunk.indices
            context.sources = chunk.sources.get(step.origin)
            context.plans = None
            if (
                step.parses
                and not step.guard
                and len(chunk.indices) >= _FEW_SAMPLES
                and self._done_at_once(step, step.light_function, context, chunk)
            ):
                continue
            places = chosen(step.guard, chunk.columns, selected) if step.guard else None
            if places is not None and not places:
                for r in step.outputs:
                    chunk.leave_out(r, self._program.specs[r].ndim)
                continue
            if step.origin in step.outputs:
                chunk.sources[step.origin] = [""] * len(chunk.indices)
            if step.branches and step.planner is not None:
                values = join_ahead(step, chunk, selected)
                if values is not None:
                    keep_values(step, context, values, chunk, places)
                    continue
            elif step.planner is not None and (places is not None or not step.guard):
                plans = plans_of(step, context, chunk, places, is_strict=self._is_strict)
                if marks is not None:
                    # Samples are counted where their pixels are worked on, if they have any.
                    done = 0 if plans is None or plans.values is None else len(chunk.indices)
                    marks.whole(step, done, chunk.indices[0])
                if plans is not None and plans.values is not None:
                    keep_values(step, context, plans.values, chunk, places)
                    continue
                context.plans = plans
                if plans is not None:
                    if places is not None:
                        plans = context.plans = plans.of(places)
                    for r, shapes in zip(step.outputs, plans.shape_arrays, strict=True):
                        if places is not None:
                            shapes = spread(shapes, places, len(chunk.indices))
                        chunk.columns[r] = Samples(shapes=shapes)
            left.append((step, context))
        if not left:
            return
        left, positions = self._hand_on(left, chunk)
        if marks is not None:
            marks.pixel_steps = left
        one_by_one = self._is_plain and not self._is_light
        if one_by_one and not any(c.plans is None and s.needs_plan for s, c in left):
            self._take_each(left, positions, chunk)
            return
        arena = self._arena
        mark = arena.mark()
        count, begin = len(positions), 0
        while begin < count:
            end = min(begin + self._group_size(), count)
            group = Group(chunk.columns, positions[begin:end], selected)
            self._through(left, group, chunk)
            group.close()
            self._scratch_bytes = (arena.mark() - mark) // (end - begin)
            arena.release(mark)
            begin = end

    def _done_at_once(
        self, step: Step, function: Any, context: SampleContext, chunk: Chunk
    ) -> bool:
        """Take all samples of a chunk through a step in one call, however long they are; False
        where each is to be done alone, which says what is wrong.
        """
        known = [chunk.columns[r] for r in step.inputs]
        inputs: list[Any] = [rows_of(c) for c in known]
        if not all(isinstance(i, Rows) for i in inputs):
            return False
        group = Group(chunk.columns, range(len(chunk.indices)), {})
        if step.origin in step.outputs:
            chunk.sources[step.origin] = [""] * len(chunk.indices)
        try:
            done = self._at_once(step, function, context, inputs, group, chunk, group.positions)
        except Exception:  # whatever it is, the next try meets it again and knows the sample
            return False
        if done is None:
            return False
        for r, rows in zip(step.outputs, done[0], strict=True):
            chunk.columns[r] = Samples(rows)
        if self._marks is not None:
            self._marks.whole(step, len(chunk.indices), chunk.indices[0])
        return True

    def _hand_on(
        self, steps: list[tuple[Step, SampleContext]], chunk: Chunk
    ) -> tuple[list[tuple[Step, SampleContext]], Sequence[int]]:
        """Take all samples through the steps that hand on lazy values, which touch no pixels.

        Between pixels, which drive the interpreter out of the caches, the same takes much longer.
        """
        count = len(chunk.indices)
        group = Group(chunk.columns, range(count), {})
        rest: list[tuple[Step, SampleContext]] = []
        after: set[int] = set()
        for step, context in steps:
            if (
                not step.is_lazy
                or step.chunked
                or step.guard
                or any(r in after for r in reads_of(step))
            ):
                rest.append((step, context))
                after.update(step.outputs)
                continue
            self._do(step, context, group, chunk)
            if not group.positions:
                return [], ()  # all have failed
            for r in step.outputs:
                values = group.values[r]
                if not (isinstance(values, Rows) and len(values) == count):
                    found = dict(zip(group.positions, values, strict=True))
                    values = [found.get(k) for k in range(count)]
                chunk.columns[r] = Samples(values)
        return rest, group.positions

    def _take_each(
        self, steps: list[tuple[Step, SampleContext]], positions: Sequence[int], chunk: Chunk
    ) -> None:
        """Take samples through steps on pixels, one after the other.

        All that is the same for them is looked up ahead of their pixels.
        """
        made: dict[int, Sequence[Any]] = {}

        def samples(register: int) -> Sequence[Any]:
            if register in made:
                return made[register]
            column = chunk.columns[register]
            assert column is not None
            return column.row_list

        bound = []
        for step, context in steps:
            inputs = [samples(r) for r in step.inputs]
            values = [samples(r) for _, r, _ in step.sample_args]
            outputs: list[list[Any]] = [[None] * len(chunk.indices) for _ in step.outputs]
            made.update(zip(step.outputs, outputs, strict=True))
            bound.append((self._bound(step, context, inputs, values), outputs))
        arena = self._arena
        mark = arena.mark()
        for position in positions:
            self._alone(bound, position, chunk)
            for _, outputs in bound:  # nothing is to refer to memory that is taken back
                for column in outputs:
                    column[position] = None
            arena.release(mark)

    def _alone(self, steps: BoundSteps, position: int, chunk: Chunk) -> None:
        """Take a sample through steps on pixels, as long as it does not fail."""
        marks = self._marks
        if marks is not None:
            marks.group(chunk.indices)
        for step, outputs in steps:
            try:
                results = step.results(position, position, position)
            except BaseException as error:  # of any kind: a thread waits for the batch
                chunk.fail(error, step.step, step.context, position)
                break
            finally:
                if marks is not None:
                    marks.step((position,))
            for column, value in zip(outputs, results, strict=True):
                column[position] = value

    def _through(self, steps: list[tuple[Step, SampleContext]], group: Group, chunk: Chunk) -> None:
        """Take a group through steps on pixels, as long as it has samples."""
        marks = self._marks
        if marks is not None:
            marks.group(chunk.indices)
        for step, context in steps:
            branch = group.branch(step.guard)
            positions = branch.positions
            self._do(step, context, branch, chunk)
            if marks is not None:
                marks.step(positions)
            if not group.positions:
                break

    def _group_size(self) -> int:
        """Number of samples that go through the steps together."""
        if not (self._in_groups or self._is_light):
            return 1
        scratch = max(self._scratch_bytes, 1)
        most = _GROUP_BYTES if scratch <= _SMALL_SAMPLE_BYTES else _SMALL_GROUP_BYTES
        return max(most // scratch, 1)

    def _do(self, step: Step, context: SampleContext, group: Group, chunk: Chunk) -> None:
        """Take a group through one step; samples that fail leave the group."""
        if not group.positions:
            return
        if step.branches:
            results, failed = merged(step, context, group, chunk, self._program, self._iteration)
        else:
            inputs = [group.of(r) for r in step.inputs]
            results, failed = self._results(step, context, inputs, group, chunk)
        for r, values in zip(step.outputs, results, strict=True):
            group.put(r, values)
        if failed:
            group.drop(failed)

    def _results(
        self,
        step: Step,
        context: SampleContext,
        inputs: list[Any],
        group: Group,
        chunk: Chunk,
        *,
        computes: bool = False,
    ) -> tuple[Sequence[Any], list[int]]:
        """Run a step on a group; return the results by output and the positions that failed.

        If it `computes`, no lazy value is handed on that stands for all samples.
        """
        positions = group.positions
        places = positions if context.plans is None else context.plans.places(positions)
        own = False
        try:
            if step.needs_plan and context.plans is None:
                own = True
                indices = chunk.indices_at(positions)
                sources = context.sources
                plans = make_plans(
                    step,
                    context,
                    [known(rows) for rows in inputs],
                    {n: (Samples(group.of(r)), convert) for n, r, convert in step.planned_args},
                    indices,
                    None if sources is None else some_of(sources, positions),
                )
                if plans.values is not None:
                    for buffer, values in zip(context.buffers, plans.values, strict=True):
                        if buffer is not None:
                            buffer.put_rows(indices, values)
                    return [Samples(values=each).rows for each in plans.values], []
                context.plans = plans
                places = range(len(positions))
            light = step.light_function
            are_light = self._is_light and all(map(are_arrays, inputs))
            together = step.function if step.chunked else light if are_light else None
            if together is not None:
                done = self._at_once(
                    *(step, together, context, [*inputs], group, chunk, places), computes=computes
                )
                if done is not None:
                    return done
            return self._each(step, context, inputs, group, chunk, places)
        except BaseException as error:  # of any kind: a thread waits for the batch
            if len(positions) == 1:
                chunk.fail(error, step, context, positions[0])
                return [[None]] * len(step.outputs), [0]
            if self._is_strict:
                raise
        finally:
            if own:
                context.plans = None
        return self._one_by_one(step, context, inputs, group, chunk)

    def _one_by_one(
        self, step: Step, context: SampleContext, inputs: list[Any], group: Group, chunk: Chunk
    ) -> tuple[Sequence[Any], list[int]]:
        """The same, sample by sample, so that an error is told of the sample that caused it."""
        failed: list[int] = []
        outputs: list[list[Any]] = [[] for _ in step.outputs]
        for k, position in enumerate(group.positions):
            alone = Group(chunk.columns, (position,), {})
            for _, r, _ in step.tensor_args:
                alone.values[r] = [group.of(r)[k]]
            own = [
                rows[k : k + 1] if isinstance(rows, list) else rows.subset((k,)) for rows in inputs
            ]
            results, bad = self._results(step, context, own, alone, chunk, computes=True)
            if bad:
                failed.append(k)
            for output, values in zip(outputs, results, strict=True):
                # An output that is `None` is not read.
                output.append(None if values is None else values[0])
        return outputs, failed

    def _at_once(
        self,
        step: Step,
        function: Callable[..., Any],
        context: SampleContext,
        inputs: list[Any],
        group: Group,
        chunk: Chunk,
        places: Sequence[int],
        *,
        computes: bool = False,
    ) -> tuple[Sequence[Any], list[int]] | None:
        """Run a step on a group in one call; `None` if it is to be done sample by sample."""
        indices = chunk.indices_at(group.positions)
        values = {
            name: (group.of(r), partial(converted, name, convert))
            for name, r, convert in step.sample_args
        }
        producers = self._producers[id(step)]
        several = ChunkContext(
            context, group.positions, indices, places, values, step.read, producers
        )
        for k, rows in enumerate(inputs):
            if isinstance(rows, list) and not step.takes_lazy:
                inputs[k] = _arrays.rows_of(rows)
            elif type(rows) is StridedRows and StridedRows not in step.op.takes:
                inputs[k] = _strided.contiguous(rows, self._arena.empty)
        found = function(several, *inputs)
        if found is None and not step.chunked:
            return None
        if (step.materialises or computes) and isinstance(found, LazyValue):
            found = found.materialise(several)
        results = found if isinstance(found, tuple) else (found,)
        check_count(step, results)
        for buffer, rows in zip(context.buffers, results, strict=True):
            if buffer is None or any(rows is own for own in several.handed):
                continue
            origin = self._iteration.buffers[step.inputs[0]] if step.inputs else None
            are_views = isinstance(rows, StridedRows)
            if origin is None or are_views or not buffer.share_all(indices, rows, origin):
                if are_views or rows.flat is not None:  # alike in type and rank
                    buffer.check(tuple(rows.shapes[0].tolist()), rows.dtype)
                else:
                    for value in rows:
                        buffer.check(value.shape, value.dtype)
                buffer.put_rows(indices, rows)
        for k, error in several.failures.items():
            chunk.fail(error, step, context, group.positions[k])
        return results, list(several.failures)

    def _each(
        self,
        step: Step,
        context: SampleContext,
        inputs: list[Any],
        group: Group,
        chunk: Chunk,
        places: Sequence[int],
    ) -> tuple[Sequence[Any], list[int]]:
        """Run a step on a group, sample by sample."""
        values = [group.of(r) for _, r, _ in step.sample_args]
        bound = self._bound(step, context, inputs, values)
        outputs: list[list[Any]] = [[] for _ in step.outputs]
        failed: list[int] = []
        for k, position in enumerate(group.positions):
            results: Sequence[Any]
            try:
                results = bound.results(k, position, places[k])
            except BaseException as error:  # of any kind: a thread waits for the batch
                chunk.fail(error, step, context, position)
                failed.append(k)
                results = [None] * len(outputs)
            for output, value in zip(outputs, results, strict=True):
                output.append(value)
        return outputs, failed

    def _bound(
        self,
        step: Step,
        context: SampleContext,
        inputs: Sequence[Sequence[Any]],
        values: Sequence[Sequence[Any]],
    ) -> BoundStep:
        """A step that takes the samples of these inputs and arguments one by one."""
        origin = self._iteration.buffers[step.inputs[0]] if inputs else None
        producers, materialise = self._producers[id(step)], self._materialise
        return BoundStep(
            step, context, producers, inputs, values, origin, materialise_views=materialise
        )
