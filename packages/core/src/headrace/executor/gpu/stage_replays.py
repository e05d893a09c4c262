"""Recordings of a stage on the GPU, and when they are replayed.

Nothing is believed of an operator. A recording is used when it foretells, word by word, what two
later iterations queue, in other memory and with other numbers; whatever cannot be repeated (a copy
from the host, a report of faults, the user's functions) spoils it. Where a number changes that did
not before, or an input is where it never was, operators queue the iteration and it is compared.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.array_utils import byte_bounds

from headrace.config import CHECK
from headrace.errors import HeadraceError
from headrace.executor.gpu.replay import (
    ALIGNMENT_BYTES,
    ANOTHER,
    UNSEEN,
    Leaving,
    PlannedValues,
    RecordedRun,
    Replay,
    Root,
    StepPlan,
)
from headrace.operators.support.planning import Samples, parts_of
from headrace.tensors.gpu.batch import DeviceBatch
from headrace.tensors.gpu.recording import PlanCall, Recording, RecordingQueue, template_of
from headrace.tensors.gpu.traced import UntrackedError, raw_of, tracing
from headrace.tensors.gpu.tracked import Tracked

if TYPE_CHECKING:
    from headrace.executor.gpu.replay import Found
    from headrace.executor.iteration import Iteration
    from headrace.executor.step import Step
    from headrace.tensors.gpu.queue import Queue

    Key = tuple[Any, ...]

_BEFORE = 3
"""Iterations of the same shapes before one is recorded."""
_RECORDED = 4
"""Iterations that are recorded: what the first uploads once, the others find there."""
_MOST_KEYS = 3
_MOST_MISSES = 16
"""Iterations in turn that a replay is not for: then those that come now are recorded."""
_MOST_FAILURES = 2


class ReplayError(HeadraceError, RuntimeError):
    """A recorded iteration is not what the operators queue: an error of Headrace."""


class _Capture:
    """Iterations of one kind while they are recorded."""

    def __init__(self) -> None:
        self.seen = 0
        self.queue: RecordingQueue | None = None
        self.runs: list[RecordedRun] = []


class StageReplays:
    """Recordings of one stage, and its replays."""

    def __init__(
        self,
        steps: Sequence[tuple[Step, SimpleNamespace]],
        fed: Sequence[int],
        outside: Sequence[int],
        carry_out: Callable[[Iteration, Queue], Found],
    ) -> None:
        self._steps = steps
        self._fed = fed
        self._outside = outside
        self._carry_out = carry_out
        self._known: dict[Key, _Capture | Replay | None] = {}
        self._failures = 0
        self._checks = CHECK.value() == "1"

    def run(self, iteration: Iteration, queue: Queue) -> Found | None:
        """Queue an iteration as those before; `None` where its operators have to."""
        buffers = self._buffers(iteration)
        if buffers is None:
            return None
        inputs = [buffer.batch for buffer in buffers]
        key = (queue.stream, iteration.size, *map(_kind, inputs))
        known = self._known.get(key)
        if isinstance(known, Replay):
            plan = known.plan(iteration, queue, inputs)
            if plan is ANOTHER:
                known.misses += 1
                if known.misses == _MOST_MISSES:
                    del self._known[key]
                return None
            known.misses = 0
            if plan is UNSEEN or self._checks or not known.covers(inputs):
                return self._unless_full(key, self._compared, known, iteration, queue, buffers)
            try:
                return known.run(queue, buffers, len(self._fed))
            except MemoryError:  # operators keep no memory from one iteration to the next
                self._known[key] = None
                return None
        if known is None:
            if key in self._known or self._failures >= _MOST_FAILURES:
                return None
            if len(self._known) >= _MOST_KEYS:
                del self._known[next(iter(self._known))]
            known = self._known[key] = _Capture()
        known.seen += 1
        if known.seen <= _BEFORE:
            return None
        return self._unless_full(key, self._record, known, iteration, queue, buffers)

    def _unless_full(
        self,
        key: Key,
        record: Callable[..., Found],
        known: _Capture | Replay,
        iteration: Iteration,
        queue: Queue,
        buffers: list[Any],
    ) -> Found:
        """Record an iteration; without that, where the device has no memory for several."""
        try:
            return record(key, known, iteration, queue, buffers)
        except MemoryError:
            self._known[key] = None
            self._failures += 1
            if isinstance(known, _Capture):
                known.queue, known.runs = None, []
        return self._carry_out(iteration, queue)

    def _buffers(self, iteration: Iteration) -> list[Any] | None:
        """The inputs of an iteration, where they are dense batches on the device."""
        if iteration.seeds is not None or not iteration.size:
            return None
        found: list[Any] = [iteration.fed[r] for r in self._fed]
        for r in self._outside:
            buffer = iteration.buffers[r]
            # Of a batch on the host, recordings note what is read of it.
            if buffer is None or buffer.batch is not None:
                found.append(buffer)
        for buffer in found:
            batch = getattr(buffer, "batch", None)
            if type(batch) is not DeviceBatch or len(batch) != iteration.size:
                return None
        if not found and self._outside:
            return None
        if len(found) > 1:
            begins = [int(b.batch.pointers[0]) for b in found if b.batch.is_dense]
            if len(set(begins)) < len(begins):  # which of them an address is in would not show
                return None
        return found

    def _record(
        self,
        key: Key,
        capture: _Capture,
        iteration: Iteration,
        queue: Queue,
        buffers: list[Any],
    ) -> Found:
        if capture.queue is None:
            capture.queue = RecordingQueue(queue)
        try:
            run = self._recorded(capture.queue, iteration, queue, buffers)
        except MemoryError:
            raise
        except Exception:
            if not capture.queue.is_tracking:
                raise
            # What tracks shapes does not stand for them everywhere. A fault comes up again.
            found = self._carry_out(iteration, queue)
            self._known[key] = None
            return found
        capture.runs.append(run)
        if len(capture.runs) == _RECORDED:
            replay: Replay | None = None
            try:
                replay = self._made(capture)
            except Exception as error:
                if self._checks:
                    raise
                warnings.warn(
                    f"Iterations on the GPU cannot be replayed ({type(error).__name__}: {error}); "
                    "operators go on queueing them. This is an error of Headrace, please report "
                    "it.",
                    RuntimeWarning,
                    stacklevel=1,
                )
            self._known[key] = replay
            self._failures += replay is None and not capture.queue.is_tracking
        return run.found

    def _recorded(
        self,
        recorder: RecordingQueue,
        iteration: Iteration,
        queue: Queue,
        buffers: list[Any],
    ) -> RecordedRun:
        recorder.begin([buffer.batch for buffer in buffers])
        try:
            with tracing(recorder.recording.calls):
                found = self._carry_out(iteration, recorder)
        finally:
            queue.keep(recorder.finish())
        leaving: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        for register, (value, _, _) in found.items():
            if type(value) is DeviceBatch:
                value.runtime = queue.runtime
                arrays = raw_of(value.pointers), raw_of(value.shapes)
                if isinstance(value.shapes, Tracked) or isinstance(value.pointers, Tracked):
                    leaving[register] = arrays
                    # Who takes the batch has arrays of its own.
                    value.pointers, value.shapes = map(np.array, arrays)
        recording = recorder.recording
        sources = [buffer.sources for buffer in buffers]
        return RecordedRun(recording, template_of(recording), found, sources, leaving)

    def _made(self, capture: _Capture) -> Replay | None:
        """A replay, if what was recorded foretells itself."""
        queue, runs = capture.queue, capture.runs[1:]
        assert queue is not None
        if any(run.recording.spoiled for run in runs):
            return None
        last = runs[-1]
        values, leaving = self._values(last.recording), _leaving(last)
        if values is None or leaving is None:
            return None
        replay = Replay(queue, last, values, self._steps, leaving)
        if not replay.is_complete:
            return None
        for run in runs[:-1]:
            given = self._values(run.recording)
            if given is None or not replay.takes(given):
                return None
            if not replay.foretells(run.template) or not _moved(run, last):
                return None
        for run in runs:
            replay.cover([block.address for block in run.recording.blocks])
        return replay

    def _values(self, recording: Recording) -> PlannedValues | None:
        """All that follows from arguments; `None` where an operator's do not show anywhere."""
        numbers = {id(step.node): k for k, (step, _) in enumerate(self._steps) if step.tensor_args}
        roots = [
            Root(numbers[id(node)], name, values)
            for node, name, values in recording.arguments
            if id(node) in numbers
        ]
        plans = {}
        for op, planned, inputs in recording.plans:
            for k in numbers.values():
                step, args = self._steps[k]
                if step.op is op and not op.plans_by_shape:
                    samples = tuple([Samples(shapes=np.array(each.shapes)) for each in inputs])
                    plans[k] = StepPlan(step, args, samples, planned.shapes, parts_of(planned))
        changed = _Memory()
        origins: dict[int, list[np.ndarray]] = {k: [] for k in numbers.values()}
        for k, plan in plans.items():
            origins[k] += plan.parts
        for root in roots:
            origins[root.step].append(root.values)
        for given in recording.on_host:
            origins[~given.register] = [given.values]
        for arrays in origins.values():
            for array in arrays:
                changed.add(array)
        for _, pointers, shapes in recording.tracked:
            changed.add(pointers)
            changed.add(shapes)
        calls: list[Any] = []
        planned_anew: list[int] = []
        for call in recording.calls:
            if isinstance(call, PlanCall):
                number = next((k for k, (s, _) in enumerate(self._steps) if s.op is call.op), None)
                if number is None:
                    return None
                planned_anew.append(number)
                origins.pop(number, None)
                calls.append(call)
                for array in (*call.shapes, *call.parts):
                    changed.add(array)
                continue
            arrays = [each for each in call.args if isinstance(each, np.ndarray)]
            if changed.has_any(arrays):
                calls.append(call)
                for array in arrays:
                    if array.flags.writeable:
                        changed.add(array)
        used = _Memory()
        for call in calls:
            for array in () if isinstance(call, PlanCall) else call.args:
                if isinstance(array, np.ndarray):
                    used.add(array)
        tables = [k for k, t in enumerate(recording.tables) if changed.has_any([t.values])]
        if not all(recording.tables[k].values.flags.c_contiguous for k in tables):
            return None
        for k in tables:
            used.add(recording.tables[k].values)
        if not all(used.has_any(arrays) for arrays in origins.values()):
            return None
        return PlannedValues(
            plans, roots, recording.tracked, recording.on_host, calls, tables, planned_anew
        )

    def _compared(
        self,
        key: Key,
        replay: Replay,
        iteration: Iteration,
        queue: Queue,
        buffers: list[Any],
    ) -> Found:
        """Let the operators queue an iteration, and compare it with what was foretold."""
        try:
            run = self._recorded(replay.queue, iteration, queue, buffers)
        except UntrackedError:  # where numbers that changed for the first time lead
            found = self._carry_out(iteration, queue)
            self._known[key] = None
            return found
        if replay.foretells(run.template):
            replay.cover_inputs([buffer.batch for buffer in buffers])
        elif self._checks and replay.is_sure:
            raise ReplayError(
                "What the operators of this stage queue is not what was foretold from iterations "
                "before; this is an error of Headrace, please report it."
            )
        else:
            self._known[key] = None
        return run.found


def _kind(batch: DeviceBatch) -> tuple[Any, ...]:
    """All of an input that operators may go by, but for its address, and for what is tracked."""
    if not batch.is_dense:
        return None, batch.ndim, batch.dtype
    return batch.uniform_shape, batch.dtype, int(batch.pointers[0]) % ALIGNMENT_BYTES


def _leaving(run: RecordedRun) -> list[Leaving] | None:
    """The batches that leave the stage, and their places in known memory."""
    blocks = run.recording.blocks
    found = []
    for register, (value, sources, places) in run.found.items():
        if type(value) is not DeviceBatch or places is not None or not len(value):
            return None
        first, last = int(value.pointers.min()), int(value.pointers.max())
        number = next(
            (
                k
                for k, block in enumerate(blocks)
                if block.address <= first and last < block.address + block.size_bytes
            ),
            None,
        )
        origin = next((k for k, known in enumerate(run.sources) if known is sources), None)
        if number is None or (sources is not None and origin is None):
            return None
        tracked = run.leaving.get(register)
        offsets = value.pointers - np.uint64(blocks[number].address)
        shape = value.uniform_shape if tracked is None and value.is_dense else None
        of_samples = offsets, value.shapes, shape, value.dtype, origin, tracked
        found.append(Leaving(register, number, *of_samples))
    return found


def _moved(run: RecordedRun, last: RecordedRun) -> bool:
    """Return True if memory of an iteration was elsewhere, so that addresses showed as such."""
    pairs = zip(run.recording.blocks, last.recording.blocks, strict=True)
    return all(a.memory is None or a.address != b.address for a, b in pairs)


class _Memory:
    """Host memory of arrays."""

    def __init__(self) -> None:
        self._bounds: list[tuple[int, int]] = []

    def add(self, array: np.ndarray) -> None:
        """Take in the memory of an array."""
        if array.size:
            self._bounds.append(byte_bounds(array))

    def has_any(self, arrays: Sequence[np.ndarray]) -> bool:
        """Return True if one of these arrays has some of the memory."""
        for array in arrays:
            if array.size:
                begin, end = byte_bounds(array)
                if any(low < end and begin < high for low, high in self._bounds):
                    return True
        return False
