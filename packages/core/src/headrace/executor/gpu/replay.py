"""Iterations of a stage on the GPU that are queued again as they were before.

A stage whose inputs have the shapes of iterations before queues what it queued then: the same
kernels, with the same tables and arguments but for addresses and for numbers that were planned. So
it is recorded (`headrace.tensors.gpu.recording`), and queued from then on by two compiled loops:
one writes the addresses, one makes the driver's calls. Of the operators' Python only `plan` is
left, of those whose arguments are tensors.
When that may be done is for `headrace.executor.gpu.stage_replays` to say.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from operator import is_
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headrace.kernels.gpu.replay_loop import COMMAND_WORDS, place, submit
from headrace.operators.support.batch_context import BatchContext
from headrace.operators.support.planning import (
    SAMPLE_ERRORS,
    Planned,
    Samples,
    constants_of,
    parts_of,
)
from headrace.tensors.gpu.batch import DeviceBatch, note_use
from headrace.tensors.gpu.driver import INVALID_CONTEXT, CudaError
from headrace.tensors.gpu.queue import scalars_of
from headrace.tensors.gpu.recording import (
    CopyRecord,
    HostNumbers,
    PlanCall,
    Recording,
    RecordingQueue,
    TrackedInput,
    without_padding,
)
from headrace.tensors.gpu.traced import TracedCall, TracedNumber, TracedResults
from headrace.tensors.gpu.uploads import AT_ONCE_BYTES

if TYPE_CHECKING:
    from headrace.executor.iteration import Iteration
    from headrace.executor.step import Step
    from headrace.tensors.gpu.queue import Queue
    from headrace.tensors.gpu.recording import Template

    Found = dict[int, tuple[Any, list[str] | None, None]]

ALIGNMENT_BYTES = 256
"""Kernels are chosen by whether addresses are multiples of less than that."""
_ALL_BITS = (1 << 64) - 1
ALIKE, UNSEEN, ANOTHER = "alike", "unseen", "another"
"""Kinds of an iteration's plan, beside those that were recorded."""


class Root(NamedTuple):
    """An argument whose values other iterations have others of."""

    step: int
    name: str
    values: np.ndarray


@dataclass(slots=True)
class StepPlan:
    """An operator that plans in each iteration."""

    step: Step
    args: SimpleNamespace
    inputs: tuple[Samples, ...]
    shapes: tuple[np.ndarray, ...]
    parts: tuple[np.ndarray, ...]
    """The arrays of its plan, which each iteration writes to anew."""

    def is_like(self, shapes: tuple[np.ndarray, ...]) -> bool:
        """Return True if these are the shapes of the outputs."""
        if all(map(is_, self.shapes, shapes)):
            return True
        if not _are_equal(self.shapes, shapes):
            return False
        self.shapes = shapes  # where they are an input's, they are the same object next time
        return True


class _Filled(NamedTuple):
    """A table that is filled anew."""

    table: int
    values: np.ndarray
    content: np.ndarray
    """Its bytes."""
    target: np.ndarray
    """Their place among the words."""


class PlannedValues(NamedTuple):
    """All that follows from the values of arguments, and from shapes that are tracked."""

    plans: dict[int, StepPlan]
    """By the number of the step."""
    roots: list[Root]
    tracked: list[TrackedInput]
    on_host: list[HostNumbers]
    calls: list[TracedCall | PlanCall]
    """In their order."""
    tables: list[int]
    numbers: list[int]
    """For each `PlanCall` the number of its step."""


class Leaving(NamedTuple):
    """A batch that leaves the stage: where it lies in a block."""

    register: int
    block: int
    offsets: np.ndarray
    shapes: np.ndarray
    shape: tuple[int, ...] | None
    """Of all samples, where they follow one another."""
    dtype: np.dtype
    sources: int | None
    """The input whose files are those of its samples."""
    tracked: tuple[np.ndarray, np.ndarray] | None
    """Addresses and shapes, where these are tracked."""


class RecordedRun(NamedTuple):
    """A recorded iteration."""

    recording: Recording
    template: Template
    found: Found
    sources: list[list[str] | None]
    """Of each input, the files that its samples were read from."""
    leaving: dict[int, tuple[np.ndarray, np.ndarray]]
    """Addresses and shapes of outputs that are tracked, by register."""


class Replay:
    """An iteration that is queued again."""

    def __init__(
        self,
        queue: RecordingQueue,
        run: RecordedRun,
        values: PlannedValues,
        steps: Sequence[tuple[Step, SimpleNamespace]],
        leaving: list[Leaving],
    ) -> None:
        self.queue = queue
        self._runtime: Any = queue.runtime.watched  # type: ignore[attr-defined]
        self._values, self._steps = values, steps
        self._template = template = run.template
        recording = run.recording
        self._leaving = leaving
        self._inputs = sum(block.memory is None for block in recording.blocks)
        tracked = {each.number for each in recording.tracked}
        self._dense = [k for k in range(len(run.sources)) if k not in tracked]
        """Numbers of the inputs whose memory is a block, in the order of these."""
        self._covered: list[set[int]] = [set() for _ in range(self._inputs)]
        self._is_covered = False
        self._steady = {id(root.values) for root in values.roots}
        self._steady |= {id(each.values) for each in values.on_host}
        self._steady |= {id(part) for plan in values.plans.values() for part in plan.parts}
        """Arrays of numbers that have not changed yet: it is not known what follows from them."""
        self.is_sure = True
        self.misses = 0
        """Iterations in turn that it was not for."""
        fresh = sorted({each.block for each in leaving if each.block >= self._inputs})
        sizes: dict[int, Any] = dict(recording.sizes)
        self._fresh = [(k, sizes.get(k, recording.blocks[k].size_bytes)) for k in fresh]
        self._growing = [(k, size) for k, size in sizes.items() if k not in fresh]
        """Blocks that stay in the stage, with their sizes, where these are not always the same."""
        self._table_bytes = template.table_offsets[-1]
        memory = queue._pool.take(max(self._table_bytes, 1), queue.stream)
        self._tables = memory.address
        self._kept: list[Any] = [memory]
        self._memory: list[Any] = [
            None if k in fresh else block.memory for k, block in enumerate(recording.blocks)
        ]
        """Memory that all iterations use, one after the other on the stream."""
        # Addresses are those of the recording, and what each block is away from there.
        self._words = template.words.copy()
        self._words[template.positions] += template.begins[template.blocks]
        self._sent = self._words.copy()
        self._away = np.zeros(len(template.begins), np.int64)
        self._begins: list[int] = template.begins.tolist()
        first = len(recording.blocks)
        places = np.array(template.table_offsets[:-1], np.int64) + memory.address
        self._away[first:] = places - template.begins[first:].view(np.int64)
        self._filled: list[_Filled] = []
        for number in values.tables:
            table = recording.tables[number]
            offset, size = template.table_offsets[number], table.values.nbytes
            content = np.ndarray(size, np.uint8, table.values)
            target = np.ndarray(size, np.uint8, self._words, offset)
            self._filled.append(_Filled(number, table.values, content, target))
        self._records = recording.commands
        self._places_of_arguments()
        spans = [
            (template.table_offsets[k] // 8, template.table_offsets[k + 1] // 8)
            for k in values.tables
        ]
        spans += [(place, place + 1) for place, _, _ in self._numbers]
        self._spans = np.array(spans, np.int64).reshape(-1, 2)
        driver = getattr(self._runtime, "driver", None)
        self._entries = None if driver is None else driver.queueing_entries()
        if self._entries is not None:
            self._compile()

    def _places_of_arguments(self) -> None:
        """Number the words of the arguments of each command."""
        place = self._table_bytes // 8
        self._arguments = []
        self._numbers: list[tuple[int, TracedNumber, tuple[int, int] | None]] = []
        """Words that follow from shapes; and for blocks of a launch, the command and the axis."""
        for row, command in enumerate(self._records):
            count = 2 if isinstance(command, CopyRecord) else len(command.args)
            self._arguments.append(range(place, place + count))
            if isinstance(command, CopyRecord):
                place += count
                continue
            for k, number in command.numbers:
                axis = (row, k - count) if k >= count else None
                self._numbers.append((place + k, number, axis))
            place += count + 3

    @property
    def is_complete(self) -> bool:
        """True if all addresses are known, and each operator's numbers arrive somewhere."""
        known = set(self._template.positions.tolist())
        for command, places in zip(self._records, self._arguments, strict=True):
            if isinstance(command, CopyRecord) and not known.issuperset(places):
                return False
        return True

    def cover(self, addresses: Sequence[int]) -> None:
        """Note where inputs were; they may be anywhere once they were in two places."""
        for known, address in zip(self._covered, addresses, strict=False):
            known.add(address)

    def covers(self, inputs: Sequence[DeviceBatch]) -> bool:
        """Return True if it is known that addresses in these inputs are told from other words."""
        if self._is_covered:
            return True
        self._is_covered = all(len(known) > 1 for known in self._covered)
        return self._is_covered or all(
            len(known) > 1 or int(inputs[k].pointers[0]) in known
            for known, k in zip(self._covered, self._dense, strict=True)
        )

    def cover_inputs(self, inputs: Sequence[DeviceBatch]) -> None:
        """Note where these inputs were."""
        self.cover([int(inputs[k].pointers[0]) for k in self._dense])

    def takes(self, given: PlannedValues) -> bool:
        """Write the values of another recording to the arrays of this one."""
        mine = self._values
        if mine.plans.keys() != given.plans.keys() or len(mine.roots) != len(given.roots):
            return False
        if len(mine.on_host) != len(given.on_host):
            return False
        pairs = [*zip(mine.roots, given.roots, strict=True)]
        arrays = [(a.values, b.values) for a, b in pairs if (a.step, a.name) == (b.step, b.name)]
        if len(arrays) != len(pairs):
            return False
        for numbers, others in zip(mine.on_host, given.on_host, strict=True):
            if numbers.register != others.register:
                return False
            arrays.append((numbers.values, others.values))
        for k, plan in mine.plans.items():
            other = given.plans[k]
            if not _are_equal(plan.shapes, other.shapes) or len(plan.parts) != len(other.parts):
                return False
            arrays += zip(plan.parts, other.parts, strict=True)
        for array, found in arrays:
            if not np.array_equal(array, found):
                self._steady.discard(id(array))
        for own, other_input in zip(mine.tracked, given.tracked, strict=True):
            arrays.append((own.pointers, other_input.pointers))
            arrays.append((own.shapes, other_input.shapes))
        planned = iter([call for call in given.calls if isinstance(call, PlanCall)])

        def next_plan(number: int, call: PlanCall) -> PlanCall | None:
            return next(planned, None)

        return all(map(_copied, arrays)) and self._fill(next_plan)

    def plan(self, iteration: Iteration, queue: Queue, inputs: Sequence[DeviceBatch]) -> str:
        """Plan an iteration, and fill its tables: as before, or `UNSEEN` where numbers changed
        that did not up to now, or `ANOTHER` where tables would not do, or a sample is bad.
        """
        values = self._values
        if not (values.plans or values.roots or values.tracked or values.on_host):
            return ALIKE
        try:
            pairs = self._planned(iteration, queue)
        except SAMPLE_ERRORS:
            return ANOTHER
        if pairs is None:
            return ANOTHER
        for number, pointers, shapes in values.tracked:
            batch = inputs[number]
            pointers[...] = batch.pointers
            shapes[...] = batch.shapes
        self.is_sure = True
        for array, found in pairs:
            if self._steady and id(array) in self._steady and not np.array_equal(array, found):
                self._steady.remove(id(array))
                self.is_sure = False
            if not _copied((array, found)):
                return ANOTHER

        def planned_anew(number: int, call: PlanCall) -> PlanCall | None:
            planned = _planned_anew(call, self._context(number, iteration, queue))
            constants = constants_of(planned)
            if constants is None:
                return None
            return PlanCall(call.op, call.inputs, planned.shapes, parts_of(planned), constants)

        try:
            is_filled = self._fill(planned_anew)
        except SAMPLE_ERRORS:
            return ANOTHER
        if not is_filled:
            return ANOTHER
        return ALIKE if self.is_sure else UNSEEN

    def _planned(
        self, iteration: Iteration, queue: Queue
    ) -> list[tuple[np.ndarray, np.ndarray]] | None:
        """Arrays of the recording, and what an iteration has in their places."""
        contexts: dict[int, BatchContext] = {}
        pairs: list[tuple[np.ndarray, np.ndarray]] = []
        for k, plan in self._values.plans.items():
            planned = plan.step.op.plan(self._context(k, iteration, queue), *plan.inputs)
            parts = parts_of(planned)
            if not plan.is_like(planned.shapes) or len(parts) != len(plan.parts):
                return None
            pairs += zip(plan.parts, parts, strict=True)
        for k, name, array in self._values.roots:
            context = contexts.get(k)
            if context is None:
                context = contexts[k] = self._context(k, iteration, queue)
            found = context.array(name, array.dtype)
            if found is None:
                return None
            pairs.append((array, found))
        for register, array in self._values.on_host:
            found = scalars_of(iteration.buffers[register])
            if found is None:
                return None
            pairs.append((array, found))
        return pairs

    def _context(self, number: int, iteration: Iteration, queue: Queue) -> BatchContext:
        step, args = self._steps[number]
        buffers = iteration.buffers
        tensors = {name: (buffers[r], convert) for name, r, convert in step.tensor_args}
        indices = range(iteration.size)
        return BatchContext(step.node, args, tensors, queue, indices, step.seed, iteration.number)

    def _fill(self, planned: Callable[[int, PlanCall], PlanCall | None]) -> bool:
        """Fill the tables, by the calls that did when they were recorded."""
        plans = iter(self._values.numbers)
        for call in self._values.calls:
            if isinstance(call, PlanCall):
                found = planned(next(plans), call)
                if found is None or not _taken_over(call, found):
                    return False
                continue
            function, args, result = call
            if type(result) is TracedResults:
                if not result.admit(function(*args)):
                    return False
            elif function(*args) != result:
                return False
        for filled in self._filled:
            filled.target[:] = filled.content
        for word, number, launch in self._numbers:
            value = self._words[word] = number.now
            if launch is not None and self._entries is not None:
                row, axis = launch
                self._commands[row, 1 + axis] = value
        return True

    def foretells(self, other: Template) -> bool:
        """Return True if what is filled in now is what `other` says."""
        mine = self._template
        words = self._words.copy()
        content = words.view(np.uint8)
        for number, values, *_ in self._filled:
            begin = mine.table_offsets[number]
            content[begin : begin + values.nbytes] = without_padding(values)
        return mine.foretells(words, other)

    def run(self, queue: Queue, buffers: list[Any], fed: int) -> Found | None:
        """Queue an iteration that was planned; `None` where its memory begins elsewhere."""
        stream, away, begins = queue.stream, self._away, self._begins
        fresh: dict[int, Any] = {}
        for number, size in self._fresh:
            wanted = max(size.now, 1) if isinstance(size, TracedNumber) else size
            memory = fresh[number] = queue._pool.take(wanted, stream)
            away[number] = moved = memory.address - begins[number]
            if moved % ALIGNMENT_BYTES:
                return None
        for number, size in self._growing:
            if size.now > self._memory[number].size_bytes:
                memory = queue._pool.take(size.now, stream)
                moved = memory.address - begins[number]
                if moved % ALIGNMENT_BYTES:
                    return None
                away[number], self._memory[number] = moved, memory
        waited: Any = None
        for number, buffer in enumerate(buffers):
            batch, event = buffer.batch, buffer.event
            if event is not None and event is not waited:
                queue.wait(event)
                waited = event
            if number < fed:
                queue.keep(batch)
            else:
                note_use(batch.owners, stream)
        for number, k in enumerate(self._dense):
            away[number] = int(buffers[k].batch.pointers[0]) - begins[number]
        template = self._template
        place(self._words, self._sent, self._spans, template.positions, template.blocks, away)
        self._submit(stream)
        return {
            each.register: (self._batch(each, buffers, fresh), None, None) for each in self._leaving
        }

    def _batch(self, leaving: Leaving, buffers: list[Any], fresh: dict[int, Any]) -> DeviceBatch:
        number = leaving.block
        owned_by = (fresh[number],) if number in fresh else None
        owners = owned_by or buffers[self._dense[number]].batch.owners
        runtime, dtype, count = self._runtime, leaving.dtype, len(leaving.offsets)
        begin = self._begins[number] + int(self._away[number])
        if leaving.shape is not None:
            address = begin + int(leaving.offsets[0])
            return DeviceBatch.dense(runtime, owners, address, leaving.shape, dtype, count)
        pointers, shapes = leaving.offsets + np.uint64(begin), leaving.shapes
        if leaving.tracked is not None:
            tracked, tracked_shapes = leaving.tracked
            pointers = tracked + np.uint64(int(self._away[number]) & _ALL_BITS)
            shapes = tracked_shapes.copy()
        return DeviceBatch(runtime, owners, pointers, shapes, dtype)

    @staticmethod
    def _sources(leaving: Leaving, buffers: list[Any]) -> list[str] | None:
        return None if leaving.sources is None else buffers[leaving.sources].sources

    def _compile(self) -> None:
        """Write the commands as the compiled loop takes them."""
        self._commands = np.zeros((len(self._records), COMMAND_WORDS), np.uint64)
        base = self._sent.ctypes.data
        for row, command, places in zip(
            self._commands, self._records, self._arguments, strict=True
        ):
            if isinstance(command, CopyRecord):
                row[1:3] = command.size_bytes, places.start
                continue
            addresses = np.array([base + 8 * k for k in places], np.uint64)
            self._kept.append(addresses)
            function: Any = command.function
            row[0] = function.handle
            row[1:4], row[4:7] = command.grid, command.block  # blocks may be other ones, `_fill`
            row[7], row[8] = command.shared_bytes, addresses.ctypes.data

    def _submit(self, stream: int) -> None:
        if self._entries is None:
            self._queue_one_by_one(stream)
            return
        copy, launch = self._entries
        arguments = (
            self._sent,
            self._table_bytes,
            self._tables,
            AT_ONCE_BYTES,
            self._commands,
            copy,
            launch,
            stream,
        )
        status = submit(*arguments)
        if status == INVALID_CONTEXT:  # refused at the first call
            self._runtime.activate()
            status = submit(*arguments)
        if status:
            raise CudaError(self._runtime.driver.described(status))

    def _queue_one_by_one(self, stream: int) -> None:
        """Make the calls of a runtime that has no driver's functions."""
        runtime, words = self._runtime, self._sent
        if self._table_bytes:
            runtime.copy(self._tables, words.ctypes.data, self._table_bytes, stream)
        known = set(self._template.positions.tolist())
        known |= {place for place, _, _ in self._numbers}
        for command, places in zip(self._records, self._arguments, strict=True):
            if isinstance(command, CopyRecord):
                target, source = (int(words[k]) for k in places)
                runtime.copy(target, source, command.size_bytes, stream)
                continue
            args = tuple(
                [
                    type(value)(words[k]) if k in known else value
                    for k, value in zip(places, command.args, strict=True)
                ]
            )
            grid: Any = tuple(words[places.stop : places.stop + 3].tolist())
            command.function(grid, command.block, args, command.shared_bytes, stream)


def _planned_anew(call: PlanCall, context: BatchContext) -> Planned:
    """The plan of an operator for the shapes that its inputs have now, maybe not for the first
    time.
    """
    op, inputs = call.op, call.inputs
    if not op.plans_by_shape or len(inputs) > 1:
        return op.plan(context, *inputs)  # type: ignore[no-any-return]
    shapes = inputs[0].shapes

    def made() -> Planned:
        return op.plan(context, Samples(shapes=shapes.copy()))  # type: ignore[no-any-return]

    return op.batch_plans.of_shapes(shapes, made)  # type: ignore[no-any-return]


def _taken_over(mine: PlanCall, found: PlanCall) -> bool:
    """Write what was planned anew to the arrays of a plan; return whether it is of their kind."""
    if len(mine.parts) != len(found.parts) or len(mine.shapes) != len(found.shapes):
        return False
    if mine.constants != found.constants:
        return False
    pairs = zip(mine.shapes + mine.parts, found.shapes + found.parts, strict=True)
    return all(
        target is source
        or (_copied((target, source)) if target.flags.writeable else np.array_equal(target, source))
        for target, source in pairs
    )


def _copied(pair: tuple[np.ndarray, np.ndarray]) -> bool:
    """Copy the second array to the first, if it is alike; return whether it is."""
    target, source = pair
    if target.shape != source.shape or target.dtype != source.dtype:
        return False
    target[...] = source
    return True


def _are_equal(mine: Sequence[np.ndarray], other: Sequence[np.ndarray]) -> bool:
    return all(a is b or np.array_equal(a, b) for a, b in zip(mine, other, strict=True))
