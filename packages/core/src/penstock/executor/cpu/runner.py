"""Carries samples through the steps of a stage, on one worker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.errors import PenstockError, ShapeError, located
from penstock.executor.cpu.together import Together
from penstock.operators.support.planning import Samples

if TYPE_CHECKING:
    from collections.abc import Callable

    from penstock.executor.cpu.arena import Arena
    from penstock.executor.cpu.batch import BatchBuffer
    from penstock.executor.cpu.context import Context
    from penstock.executor.cpu.program import Program
    from penstock.executor.iteration import Iteration
    from penstock.executor.planning import Planner, SamplePlans
    from penstock.executor.step import Step


_Sample = tuple[int, list[Any], list[str]]
"""Number of a sample, the content of its registers, and where each of these was read from."""


class SampleRunner:
    """Carries samples through a program, on one worker.

    A few samples are taken at a time. They are read, and all that can be worked out ahead of their
    pixels is, for all of them at once: geometry, and whatever follows from shapes and small values
    (see `Operator.plan`). Then each sample goes through the steps on pixels alone, while these are
    hot in the cache.
    """

    def __init__(self, program: Program, arena: Arena, *, materialise_views: bool) -> None:
        self._program = program
        self._arena = arena
        self._materialise = materialise_views
        steps = [(step, step.context(arena)) for step in program.steps]
        self._readers = [(s, c) for s, c in steps if s.is_reader]
        self._operators = [(s, c) for s, c in steps if not s.is_reader]
        self._steps = steps
        self._sample_bytes = 0
        """How long samples that are read together are about."""
        self._count = len(program.plan.consumers)
        self._iteration: Any = None

    def bind(self, iteration: Iteration) -> None:
        """Turn to another iteration's buffers."""
        self._iteration = iteration
        buffers: list[BatchBuffer | None] = iteration.buffers
        leaves = self._program.plan.leaves_stage
        for step, context in self._steps:
            context.iteration = iteration.number
            if iteration.seeds is not None:
                context.seed = iteration.seed_of(step)
            context.buffers = [buffers[r] if leaves[r] else None for r in step.outputs]

    def release(self) -> None:
        """Let go of the iteration's buffers, which may belong to the user by now."""
        self._iteration = None
        for _, context in self._steps:
            context.buffers = []

    def run(self, indices: list[int]) -> list[tuple[int, BaseException]]:
        """Carry the samples of these numbers through all steps; return what failed, and how."""
        failures: list[tuple[int, BaseException]] = []
        arena = self._arena
        arena.reset()
        if self._program.reads_only:
            indices = self._read(*self._steps[0], indices)
            if not indices:
                return failures
        samples = [self._begun(index) for index in indices]
        for step, context in self._readers:
            ahead = self._load_ahead(step, context, samples)
            todo = samples
            if ahead is not None:
                todo, ahead = self._hand_on(step, context, samples, ahead)
            failed = []
            for number, sample in enumerate(todo):
                context.ahead = None if ahead is None else ahead[number]
                try:
                    self._do(step, context, sample)
                except BaseException as error:  # whatever it is, somebody waits for the batch
                    failures.append((sample[0], error))
                    failed.append(sample[0])
            if failed:
                samples = [s for s in samples if s[0] not in failed]
            context.ahead = None
        if samples:
            self._carry(samples, failures)
        return failures

    def _carry(self, samples: list[_Sample], failures: list[tuple[int, BaseException]]) -> None:
        """Take samples that have been read through all operators.

        What can be worked out for all of them at once comes first, step by step; then what hardly
        touches data; then each sample goes through the rest alone.
        """
        known = {
            r: Samples([registers[r] for _, registers, _ in samples])
            for r in self._program.known_ahead
        }
        left: list[tuple[Step, Context]] = []
        for step, context in self._operators:
            context.plans = None
            if step.together is not None and _are_there(step, known):
                count = len(samples)
                samples = self._do_together(step, context, samples, failures)
                if not samples:
                    return
                if len(samples) == count:
                    for r in step.outputs:
                        known[r] = Samples([registers[r] for _, registers, _ in samples])
                else:  # what is known has a row too many: the others are planned one by one
                    known.clear()
                    for _, before in left:
                        before.plans = None
                continue
            if step.planner is not None:
                plans = self._planned(step, context, samples, known)
                if plans is not None and plans.values is not None:
                    self._keep_values(step, context, plans.values, samples, known)
                    continue
                context.plans = plans
                if plans is not None:
                    for r, shapes in zip(step.outputs, plans.shapes, strict=True):
                        known[r] = Samples(shapes=shapes)
            left.append((step, context))
        light = next((k for k, (s, _) in enumerate(left) if not s.is_light), len(left))
        numbered = list(enumerate(samples))
        for step, context in left[:light]:
            good = []
            for position, sample in numbered:
                try:
                    self._do(step, context, sample, position)
                except BaseException as error:  # whatever it is, somebody waits for the batch
                    failures.append((sample[0], error))
                else:
                    good.append((position, sample))
            numbered = good
        heavy = left[light:]
        if not heavy:
            return
        arena = self._arena
        mark = arena.mark()
        for position, sample in numbered:
            index, _, sources = sample
            for step, context in left[:light]:  # their lazy values may still ask for it
                context.index = index
                context.source = sources[step.outputs[0]] if step.outputs else ""
            try:
                for step, context in heavy:
                    self._do(step, context, sample, position)
            except BaseException as error:
                failures.append((index, error))
            arena.release(mark)

    def _planned(
        self, step: Step, context: Context, samples: list[_Sample], known: dict[int, Samples]
    ) -> SamplePlans | None:
        """The plans of samples for a step; `None` where they have to be planned one by one."""
        try:
            inputs = [known[r] for r in step.inputs]
            tensors = {name: (known[r], convert) for name, r, convert in step.planned_args}
        except KeyError:
            return None
        if not all(s.are_there for s, _ in tensors.values()):
            return None
        planner = step.planner
        assert planner is not None
        sources = None
        if step.node.schema.reads_metadata and step.inputs:
            sources = [found[step.inputs[0]] for _, _, found in samples]
        try:
            return planner.plan(
                inputs,
                tensors,
                [index for index, _, _ in samples],
                seed=context.seed,
                iteration=context.iteration,
                sources=sources,
            )
        except Exception:  # one of them is bad: each is planned alone, and that one says so
            return None

    def _keep_values(
        self,
        step: Step,
        context: Context,
        values: tuple[np.ndarray, ...],
        samples: list[_Sample],
        known: dict[int, Samples],
    ) -> None:
        """Make what was worked out for all samples the outputs of a step."""
        for r, buffer, each in zip(step.outputs, context.buffers, values, strict=True):
            if buffer is not None:
                buffer.put_rows([index for index, _, _ in samples], each)
            known[r] = Samples(values=each)
            for k, (_, registers, _) in enumerate(samples):
                registers[r] = each[k, ...]
        if not step.inputs:
            return
        for index, _, sources in samples:
            source = sources[step.inputs[0]]
            if source:
                self._note_source(step, index, source, sources)

    def _note_source(self, step: Step, index: int, source: str, sources: list[str]) -> None:
        for r in step.outputs:
            sources[r] = source
        for k in step.leaving:
            self._iteration.set_source(step.outputs[k], index, source)

    def _read(self, step: Step, context: Context, indices: list[int]) -> list[int]:
        """Read samples at once; return those that `load` has to see, each by itself."""
        drawn = self._iteration.entries[id(step.node)]
        entries = [drawn[index] for index in indices]
        if None in context.buffers:
            return indices
        buffers: list[BatchBuffer] = context.buffers  # type: ignore[assignment]
        try:
            others = step.op.load_others(entries)
            if others is None:
                return indices
            found = step.op.load_ahead(entries, *self._room(buffers[0], len(entries)))
        except Exception:  # whatever it is, `load` meets it again and knows the sample
            return indices
        if found is None:
            return indices
        for buffer, values in zip(buffers[1:], others, strict=True):
            buffer.put_rows(indices, values)
        sources = step.op.source_infos(entries)
        for buffer in buffers:
            buffer.set_sources(indices, sources)
        return buffers[0].adopt_rows(indices, found)

    def _room(
        self, buffer: BatchBuffer, count: int
    ) -> tuple[Callable[..., np.ndarray], np.ndarray | None]:
        """Where to read so many samples to: what gives memory, and its first piece, at a guess.

        With a right guess, files need not be opened first to find out how long they are.
        """
        guess = self._sample_bytes * count
        free = buffer.empty((guess,), np.uint8) if guess else None

        def empty(shape: tuple[int], dtype: Any) -> np.ndarray:
            size = shape[0]
            self._sample_bytes = max(size * 9 // (8 * count), self._sample_bytes * 15 // 16)
            if free is not None and size <= free.size:
                return free[:size]
            return buffer.empty(shape, dtype)

        return empty, free

    def _do_together(
        self,
        step: Step,
        context: Context,
        samples: list[_Sample],
        failures: list[tuple[int, BaseException]],
    ) -> list[_Sample]:
        """Take samples through a step at once; return those that did not fail."""
        if not samples:
            return samples
        indices = [index for index, _, _ in samples]
        inputs = [[registers[r] for _, registers, _ in samples] for r in step.inputs]
        consumers = self._program.plan.consumers
        read = [consumers[r] > 0 for r in step.outputs]
        several = Together(context.args, self._arena, context.buffers, indices, read)
        assert step.together is not None
        try:
            found = step.together(several, *inputs)
        except Exception:  # whatever it is, `cpu` meets it again and knows the sample
            found = None
        good = []
        origin = step.inputs[0] if step.inputs else None
        for k, sample in enumerate(samples):
            index, registers, sources = sample
            if found is None or found[0][k] is None:
                try:
                    self._do(step, context, sample)
                except BaseException as error:
                    failures.append((index, error))
                    continue
            else:
                for r, values in zip(step.outputs, found, strict=True):
                    registers[r] = values[k]
                source = "" if origin is None else sources[origin]
                if source:
                    self._note_source(step, index, source, sources)
            good.append(sample)
        return good

    def _load_ahead(self, step: Step, context: Context, samples: list[_Sample]) -> list[Any] | None:
        """What a reader reads for these samples at once; it says later what is wrong with any."""
        drawn = self._iteration.entries[id(step.node)]
        entries = [drawn[index] for index, _, _ in samples]
        buffer, arena = context.buffers[0], self._arena
        try:
            if buffer is not None:
                return step.op.load_ahead(entries, buffer.empty)  # type: ignore[no-any-return]
            return step.op.load_ahead(  # type: ignore[no-any-return]
                entries, arena.empty, arena.rest()
            )
        except Exception:  # whatever it is, `load` meets it again and knows the sample
            return None

    def _hand_on(
        self, step: Step, context: Context, samples: list[_Sample], ahead: list[Any]
    ) -> tuple[list[_Sample], list[Any]]:
        """Make what was read together the outputs of a reader.

        Returns
        -------
        The samples that `load` has to see, and what was read for these.
        """
        drawn = self._iteration.entries[id(step.node)]
        read = [k for k, value in enumerate(ahead) if value is not None]
        entries = [drawn[samples[k][0]] for k in read]
        try:
            others = step.op.load_others(entries) if read else None
            infos = step.op.source_infos(entries)
        except Exception:  # whatever it is, `load` meets it again and knows the sample
            others = None
        if others is None:
            return samples, ahead
        indices = [samples[k][0] for k in read]
        values = [[ahead[k] for k in read], *others]
        for r, buffer, column in zip(step.outputs, context.buffers, values, strict=True):
            for k, value, info in zip(read, column, infos, strict=True):
                _, registers, sources = samples[k]
                registers[r], sources[r] = value, info
            if buffer is None:
                continue
            if r == step.outputs[0]:
                buffer.adopt_rows(indices, column)
            else:
                buffer.put_rows(indices, column)
            buffer.set_sources(indices, infos)
        if len(read) == len(samples):
            return [], []
        left = [sample for sample, value in zip(samples, ahead, strict=True) if value is None]
        return left, [None] * len(left)

    def _begun(self, index: int) -> _Sample:
        """Sample `index` with what the stage reads from earlier ones."""
        buffers = self._iteration.buffers
        registers: list[Any] = [None] * self._count
        sources = [""] * self._count
        for r in self._program.reads:
            batch = buffers[r]
            registers[r] = batch.rows[index]
            if batch.sources is not None:
                sources[r] = batch.sources[index]
        return index, registers, sources

    def _do(self, step: Step, context: Context, sample: _Sample, position: int = 0) -> None:
        """Take one sample, at a position among those that were planned together, through one step.

        Raises
        ------
        OperatorError
            What the operator raised, with the place where it happened.
        """
        index, registers, sources = sample
        inputs = step.inputs
        context.index = index
        context.source = sources[inputs[0]] if inputs else ""
        alone = False
        try:
            if step.planner is not None and step.planner.is_needed:
                alone = context.plans is None
                if alone:
                    position = 0
                    context.plans = self._planned_alone(step, step.planner, context, sample)
                context.position = position
                if context.plans.values is None:  # type: ignore[union-attr]
                    context.row = context.plans.rows[position]  # type: ignore[union-attr]
            if step.sample_args:
                _set_arguments(step, context.args, registers)
            if alone and context.plans.values is not None:  # type: ignore[union-attr]
                result: Any = tuple(
                    [each[0, ...] for each in context.plans.values]  # type: ignore[union-attr]
                )
            elif step.is_reader:
                entry = self._iteration.entries[id(step.node)][index]
                context.source = step.op.source_info(entry)
                result = step.function(context, entry)
            elif len(inputs) == 1:
                result = step.function(context, registers[inputs[0]])
            else:
                result = step.function(context, *[registers[r] for r in inputs])
            if len(step.outputs) == 1 and not isinstance(result, tuple):
                buffer = context.buffers[0]
                if buffer is not None and inputs:
                    origin = self._iteration.buffers[inputs[0]]
                    if origin is not None and buffer.share(index, result, origin):
                        buffer = None
                self._store(result, step.outputs[0], buffer, index, registers)
            else:
                self._store_several(step, context, result, registers)
        except BaseException as error:
            raise located(error, step.node.where(index, context.source)) from error
        finally:
            if alone:
                context.plans = None
        source = context.source
        if source:
            self._note_source(step, index, source, sources)

    def _planned_alone(
        self, step: Step, planner: Planner, context: Context, sample: _Sample
    ) -> SamplePlans:
        index, registers, _ = sample
        return planner.plan(
            [Samples([registers[r]]) for r in step.inputs],
            {name: (Samples([registers[r]]), convert) for name, r, convert in step.planned_args},
            [index],
            seed=context.seed,
            iteration=context.iteration,
            sources=[context.source],
        )

    def _store(
        self,
        value: Any,
        register: int,
        buffer: BatchBuffer | None,
        index: int,
        registers: list[Any],
    ) -> None:
        if buffer is not None:
            buffer.put(index, value)
        elif self._materialise and isinstance(value, np.ndarray) and value.ndim:
            value = np.ascontiguousarray(value)
        registers[register] = value

    def _store_several(
        self, step: Step, context: Context, result: Any, registers: list[Any]
    ) -> None:
        outputs = step.outputs
        results = result if isinstance(result, tuple) else (result,)
        if len(results) != len(outputs):
            raise ShapeError(
                f"The operator made {len(results)} outputs where its declaration says "
                f"{len(outputs)}; a tuple has one element for each of them."
            )
        for value, r, buffer in zip(results, outputs, context.buffers, strict=True):
            self._store(value, r, buffer, context.index, registers)


def _are_there(step: Step, known: dict[int, Samples]) -> bool:
    """Whether all samples that a step reads are there."""
    found = [known.get(r) for r in step.inputs]
    return all(samples is not None and samples.are_there for samples in found)


def _set_arguments(step: Step, args: Any, registers: list[Any]) -> None:
    for name, r, convert in step.sample_args:
        try:
            setattr(args, name, convert(registers[r]))
        except (TypeError, ValueError) as error:
            kind = type(error) if isinstance(error, PenstockError) else ValueError
            raise kind(f"Argument `{name}`: {error}") from error
