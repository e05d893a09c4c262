"""Recordings of what an iteration queues, to be queued again for other memory and other numbers.

Where shapes and constants are those of iterations before, all that changes of what operators queue
are addresses, and numbers that were planned. A recording tells them from the rest: a word that lies
in known memory is an address; what a table is filled with is said by who uploads it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from headrace.tensors.gpu.batch import DeviceBatch, lay_samples, uniform_shape
from headrace.tensors.gpu.queue import SAMPLE_ALIGNMENT_BYTES, Queue
from headrace.tensors.gpu.traced import TracedCall, TracedNumber, TracedWord
from headrace.tensors.gpu.tracked import Tracked

if TYPE_CHECKING:
    from headrace.tensors.gpu.queue import KernelSource
    from headrace.tensors.gpu.runtime import Event, Function

TABLE_ALIGNMENT_BYTES = 64
_HARMLESS = frozenset(
    {"compute_capability", "device_id", "function", "multiprocessors", "name", "xp"}
)
"""Members of a runtime that may be used without queueing anything."""


class KnownMemory(NamedTuple):
    """A piece of device memory that a recording knows."""

    address: int
    size_bytes: int
    memory: Any
    """Its owner; `None` for an input."""


class Table(NamedTuple):
    """An upload: what it was, and the array that had it."""

    address: int
    content: np.ndarray
    values: np.ndarray


class LaunchRecord(NamedTuple):
    """A launch of a kernel."""

    function: Function
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    args: tuple[Any, ...]
    shared_bytes: int
    numbers: tuple[tuple[int, TracedNumber], ...]
    """Those of the arguments, and then of the grid, that follow from shapes, with their places."""


class CopyRecord(NamedTuple):
    """A copy in device memory."""

    target: int
    source: int
    size_bytes: int


class TrackedInput(NamedTuple):
    """Shapes and addresses of an input whose samples differ in shape, or lie anywhere."""

    number: int
    pointers: np.ndarray
    shapes: np.ndarray


class HostNumbers(NamedTuple):
    """An input on the host, one number a sample."""

    register: int
    values: np.ndarray


class PlanCall(NamedTuple):
    """Planning of an operator whose inputs are tracked, among the calls that are made anew."""

    op: Any
    inputs: tuple[Any, ...]
    """As `plan` takes them; their shapes are those arrays that are written to anew."""
    shapes: tuple[np.ndarray, ...]
    parts: tuple[np.ndarray, ...]
    constants: tuple[Any, ...]
    """All else in the plan, which is the same in all iterations."""


@dataclass(slots=True)
class Recording:
    """All that was queued for one iteration of a stage."""

    tracked: list[TrackedInput] = field(default_factory=list)
    on_host: list[HostNumbers] = field(default_factory=list)

    blocks: list[KnownMemory] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    commands: list[LaunchRecord | CopyRecord] = field(default_factory=list)
    plans: list[tuple[Any, Any, tuple[Any, ...]]] = field(default_factory=list)
    """Operators with their plans, and the inputs that were planned for."""
    arguments: list[tuple[Any, str, np.ndarray]] = field(default_factory=list)
    """Operators' nodes with the names and values of arguments that are tensors."""
    calls: list[TracedCall | PlanCall] = field(default_factory=list)
    sizes: list[tuple[int, TracedNumber]] = field(default_factory=list)
    """Bytes of the blocks of these numbers, where they follow from shapes."""
    spoiled: str = ""
    """Reason why it cannot be repeated; none if it can."""


class RecordingQueue(Queue):
    """A queue that notes what is queued, beside queueing it."""

    def __init__(self, queue: Queue) -> None:
        runtime, staging = queue.runtime, queue._uploads.staging
        super().__init__(runtime, queue.stream, queue._pool, staging, queue.pinned)
        self.recording = Recording()
        self.runtime = _WatchedRuntime(runtime, self)

    def begin(self, inputs: Sequence[DeviceBatch]) -> None:
        """Begin a recording with these inputs; those that are not dense are tracked."""
        recording = self.recording = Recording()
        self._ragged = None, 0, np.empty(0), 0  # replays write to the arrays of a recording
        self._seen: dict[int, DeviceBatch] = {}
        for number, batch in enumerate(inputs):
            if batch.is_dense:
                size = int(batch.sizes().sum()) * batch.dtype.itemsize
                recording.blocks.append(KnownMemory(int(batch.pointers[0]), size, None))
                continue
            own = TrackedInput(number, np.array(batch.pointers), np.array(batch.shapes, order="C"))
            recording.tracked.append(own)
            pointers: Any = Tracked(own.pointers)
            shapes: Any = Tracked(own.shapes)
            self._seen[id(batch)] = DeviceBatch(
                batch.runtime, batch.owners, pointers, shapes, batch.dtype
            )
        self.is_tracking = bool(self._seen)

    def seen(self, batch: DeviceBatch) -> DeviceBatch:
        """An input as operators are to see it."""
        return self._seen.get(id(batch), batch)

    def empty(
        self, shapes: Any, dtype: Any, count: int | None = None, *, quiesced: bool = False
    ) -> DeviceBatch:
        """Memory for a batch, as of `Queue.empty`."""
        if isinstance(shapes, Tracked):
            uniform = uniform_shape(shapes)  # type: ignore[arg-type]
            if uniform is None:
                return self._empty_ragged(shapes, np.dtype(dtype))
            shapes, count = uniform, len(shapes)
        made = super().empty(shapes, dtype, count, quiesced=quiesced)
        self._note_memory(made.owners[0])
        return made

    def _empty_ragged(self, shapes: Any, dtype: np.dtype) -> DeviceBatch:
        """Memory for samples whose shapes are others in each iteration."""
        offsets: Any = Tracked(np.empty(len(shapes), np.int64))
        total: Any = lay_samples(offsets, shapes, dtype.itemsize, SAMPLE_ALIGNMENT_BYTES)
        memory = self._pool.take(max(total.now, 1), self.stream)
        self.recording.sizes.append((len(self.recording.blocks), total))
        self._note_memory(memory)
        pointers = (offsets + memory.address).view(np.uint64)
        batch = DeviceBatch(self.runtime, (memory,), pointers, shapes, dtype)
        batch.note_layout(None)
        return batch

    def word(self, kind: type[Any], number: Any) -> Any:
        """An argument of a kernel."""
        return TracedWord(kind, number) if isinstance(number, TracedNumber) else kind(number)

    def scratch(self, size_bytes: Any) -> int:
        """Memory, as of `Queue.scratch`."""
        if isinstance(size_bytes, TracedNumber):
            self.recording.sizes.append((len(self.recording.blocks), size_bytes))
            size_bytes = size_bytes.now
        address = super().scratch(size_bytes)
        self._note_memory(self._scratch[-1])
        return address

    def _note_memory(self, memory: Any) -> None:
        self.recording.blocks.append(KnownMemory(memory.address, memory.size_bytes, memory))

    def seen_on_host(self, register: int, batch: Any) -> Any:
        """A batch on the host as operators are to see it."""
        return _WatchedHostBatch(register, batch, self)

    def scalars_of(self, batch: Any) -> np.ndarray | None:
        """Note the numbers; the recording has a copy of its own."""
        if not isinstance(batch, _WatchedHostBatch):
            return super().scalars_of(batch)
        values = super().scalars_of(batch.watched)
        if values is not None:
            values = np.array(values)
            self.recording.on_host.append(HostNumbers(batch.register, values))
        return values

    def records(self, dtype: np.dtype, count: int) -> np.ndarray:
        """An array for the recording alone."""
        return np.zeros(count, dtype)

    def upload(self, values: np.ndarray) -> np.uint64:
        """Address of a table, as of `Queue.upload`."""
        address = super().upload(values)
        self.recording.tables.append(Table(int(address), np.array(values), values))
        return address

    def launch(
        self,
        kernel: KernelSource,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        *args: Any,
        shared_bytes: int = 0,
    ) -> None:
        """Queue a kernel."""
        if 0 in grid:
            return
        words: Any = [each.number if isinstance(each, TracedWord) else each for each in args]
        words += grid
        numbers = tuple(
            [(k, each) for k, each in enumerate(words) if isinstance(each, TracedNumber)]
        )
        if numbers:
            grid = tuple([g.now if isinstance(g, TracedNumber) else g for g in grid])  # type: ignore[assignment]
            args = tuple([a.kind(a.number.now) if isinstance(a, TracedWord) else a for a in args])
        super().launch(kernel, grid, block, *args, shared_bytes=shared_bytes)
        function = self._functions[kernel]
        record = LaunchRecord(function, grid, block, args, shared_bytes, numbers)
        self.recording.commands.append(record)

    @property
    def arguments_noted(self) -> int:  # type: ignore[override]
        """Number of arguments that were noted."""
        return len(self.recording.arguments)

    def note_plan(self, op: Any, planned: Any, inputs: tuple[Any, ...], noted: int) -> None:
        """Note what an operator has planned; to plan anew is to ask for its arguments anew."""
        self.recording.plans.append((op, planned, inputs))
        if not op.plans_by_shape:
            del self.recording.arguments[noted:]

    def note_tracked_plan(
        self,
        op: Any,
        inputs: tuple[Any, ...],
        shapes: tuple[np.ndarray, ...],
        parts: tuple[np.ndarray, ...],
        constants: tuple[Any, ...],
        noted: int,
    ) -> None:
        """Note what an operator has planned for tracked inputs, to be planned anew."""
        self.recording.calls.append(PlanCall(op, inputs, shapes, parts, constants))
        del self.recording.arguments[noted:]

    def argument(self, context: Any, name: str, values: np.ndarray) -> np.ndarray:
        """Note the values of an argument; the recording has a copy of its own."""
        own = np.array(values)
        self.recording.arguments.append((context.node, name, own))
        return own

    def wait(self, event: Event) -> None:
        """Have the stream wait, which each iteration does for its inputs."""
        self.runtime.watched.wait(self.stream, event)  # type: ignore[attr-defined]

    def keep(self, owner: Any) -> None:
        """Keep an object until the work is done. A report of faults is one of this iteration."""
        if hasattr(owner, "check"):
            self.spoil("a report of faults")
        super().keep(owner)

    def defer(self, work: Callable[[Queue], None]) -> None:
        """Defer work; it is not recorded."""
        self.spoil("deferred work")
        super().defer(work)

    def spoil(self, by: str) -> None:
        """Note that something is done that cannot be repeated."""
        self.recording.spoiled = self.recording.spoiled or by


class _WatchedHostBatch:
    """A batch on the host as operators see it while they are recorded."""

    def __init__(self, register: int, batch: Any, queue: RecordingQueue) -> None:
        self.register = register
        self.watched = batch
        self._queue = queue

    def __len__(self) -> int:
        return len(self.watched)

    def __getattr__(self, name: str) -> Any:
        self._queue.spoil(f"`{name}` of a batch on the host")
        return getattr(self.watched, name)


class _WatchedRuntime:
    """The device as operators see it while they are recorded."""

    def __init__(self, runtime: Any, queue: RecordingQueue) -> None:
        self.watched = runtime
        self._queue = queue

    def __getattr__(self, name: str) -> Any:
        if name not in _HARMLESS:
            self._queue.spoil(name)
        return getattr(self.watched, name)

    def copy(
        self, target: int, source: int, size_bytes: int, stream: int, *, may_wait: bool = False
    ) -> None:
        """Queue a copy."""
        self._queue._uploads.send()
        self.watched.copy(target, source, size_bytes, stream, may_wait=may_wait)
        self._queue.recording.commands.append(CopyRecord(target, source, size_bytes))


class Template(NamedTuple):
    """A recording without its addresses: equal for iterations that queue the same.

    `words`: the tables, one after the other, and the arguments of kernels, a word each, with the
    blocks of launches; of addresses what lies between them and the begin of their block. `begins`:
    addresses of the blocks. `positions`, `blocks`: which words are addresses, and in which block
    each lies: of the recording; then tables. `table_offsets`: bytes in front of each table; and of
    all. `commands`: what is launched and copied, without arguments.
    """

    words: np.ndarray
    begins: np.ndarray
    positions: np.ndarray
    blocks: np.ndarray
    table_offsets: tuple[int, ...]
    commands: tuple[Any, ...]

    def foretells(self, words: np.ndarray, other: Template) -> bool:
        """Return True if `words`, with the addresses of this, are what `other` has in its
        memory.
        """
        if self.commands != other.commands or self.table_offsets != other.table_offsets:
            return False
        if len(self.begins) != len(other.begins):
            return False
        mine, theirs = words.copy(), other.words.copy()
        mine[self.positions] += (other.begins - self.begins)[self.blocks]
        theirs[other.positions] += other.begins[other.blocks]
        return np.array_equal(mine, theirs)


def template_of(recording: Recording) -> Template:
    """Tell what a recording's iteration has in common with others."""
    offsets, end = [], 0
    for table in recording.tables:
        offsets.append(end)
        end += -(-table.content.nbytes // TABLE_ALIGNMENT_BYTES) * TABLE_ALIGNMENT_BYTES
    offsets.append(end)
    arguments: list[int] = []
    commands: list[Any] = []
    for command in recording.commands:
        if isinstance(command, CopyRecord):
            arguments += [command.target, command.source]
            commands.append(("copy", command.size_bytes))
        else:
            arguments += map(_word, command.args)
            arguments += command.grid
            types = tuple(map(type, command.args))
            commands.append((command.function, command.block, types, command.shared_bytes))
    content = np.zeros(end, np.uint8)
    for offset, table in zip(offsets, recording.tables, strict=False):
        content[offset : offset + table.content.nbytes] = without_padding(table.content)
    words = np.concatenate([content.view(np.uint64), np.array(arguments, np.uint64)])
    begins = [block.address for block in recording.blocks]
    ends = [block.address + block.size_bytes for block in recording.blocks]
    begins += [table.address for table in recording.tables]
    ends += [table.address + table.content.nbytes for table in recording.tables]
    known = np.array(begins, np.uint64)
    positions, blocks = _addresses(words, known, np.array(ends, np.uint64))
    if recording.tracked:  # a sample may begin where other memory ends
        pointers = np.concatenate([each.pointers for each in recording.tracked])
        at_end = words[positions] == np.array(ends, np.uint64)[blocks]
        own = ~(at_end & np.isin(words[positions], pointers))
        positions, blocks = positions[own], blocks[own]
    words[positions] -= known[blocks]
    return Template(words, known, positions, blocks, tuple(offsets), tuple(commands))


def _addresses(
    words: np.ndarray, begins: np.ndarray, ends: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Find the words that are addresses in some memory, or of its end, and in which it is.

    Where one piece ends and the next begins, it is the latter.
    """
    if not len(begins):
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    order = np.argsort(begins, kind="stable")
    found = np.searchsorted(begins[order], words, "right") - 1
    known = found >= 0
    block = order[np.maximum(found, 0)]
    positions = np.flatnonzero(known & (words <= ends[block]))
    return positions, block[positions]


def without_padding(values: np.ndarray) -> np.ndarray:
    """The bytes of an array, uint8; of records those between their fields are 0."""
    content = np.frombuffer(values.tobytes(), np.uint8)
    if values.dtype.names:
        content = (content.reshape(-1, values.dtype.itemsize) * _field_bytes(values.dtype)).ravel()
    return content


@lru_cache
def _field_bytes(dtype: np.dtype) -> np.ndarray:
    """For each byte of a record 1 if it is part of a field, and 0 of what lies between them."""
    found = np.zeros(dtype.itemsize, np.uint8)
    for kind, offset, *_ in (dtype.fields or {}).values():
        base = kind.base
        if not base.itemsize:
            continue
        own = np.ones(base.itemsize, np.uint8) if base.names is None else _field_bytes(base)
        count = kind.itemsize // base.itemsize
        found[offset : offset + kind.itemsize] = np.tile(own, count)
    return found


def _word(value: Any) -> int:
    """The 64-bit word whose first bytes are a number's."""
    return int.from_bytes(value.tobytes().ljust(8, b"\0"), "little")
