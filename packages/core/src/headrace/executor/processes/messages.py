"""Messages between the parent and a worker process: columns, not objects for each sample.

A task and its result travel as plain tuples of numbers, text and bytes. Pickle looks up the class
of everything else, arrays and their types included, which takes ten times as long.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from headrace.executor.packed_error import PackedError
    from headrace.executor.processes.shared_pool import Extent


class InputColumn(NamedTuple):
    """The samples of a register that a stage reads, all of the batch."""

    values: np.ndarray | None
    """Small ones themselves, ``(samples, ...)``."""
    file: int | None
    """File of the other samples, if they have elements, ..."""
    offsets: np.ndarray | None
    """... and int64 ``(samples,)``, where in it, or their addresses in a process."""
    shapes: np.ndarray | None
    """Int64 ``(samples, ndim)``."""
    dtype: np.dtype
    sources: Sequence[str] | None
    process: int = 0
    """The process in whose memory they are, where they are in no file."""

    def packed(self) -> tuple[Any, ...]:
        """Plain values for a message."""
        arrays = map(_packed_array, (self.values, self.offsets, self.shapes))
        return (*arrays, self.file, self.dtype.str, self.sources, self.process)

    @classmethod
    def unpacked(cls, fields: tuple[Any, ...]) -> InputColumn:
        """Restore what `packed` made."""
        values, offsets, shapes = map(_unpacked_array, fields[:3])
        file, dtype, sources, process = fields[3:]
        return cls(values, file, offsets, shapes, np.dtype(dtype), sources, process)


def _packed_array(array: np.ndarray | None) -> tuple[Any, ...] | None:
    # Of a bytearray, unlike of bytes, an array is made that may be written to.
    return None if array is None else (array.shape, array.dtype.str, bytearray(array.tobytes()))


def _unpacked_array(fields: tuple[Any, ...] | None) -> np.ndarray | None:
    return None if fields is None else np.ndarray(*fields)


class OutputColumn(NamedTuple):
    """Destination of the samples of a register that a stage writes."""

    file: int | None
    """File of the memory for the whole batch; none where shapes are not expected to be the same."""
    offset: int
    """Offset of that memory in the file."""
    shape: tuple[int, ...] | None
    """Shape of each sample."""
    ndim: int | None
    """Number of axes, where it is known."""


class TaskBatch(NamedTuple):
    """Common part of the tasks of one batch and stage; packed once for all of them."""

    program: tuple[int, int]
    """Number of the graph, and of the program in it."""
    iteration: int
    size: int
    inputs: list[InputColumn]
    outputs: list[OutputColumn]

    def packed(self) -> bytes:
        """Return the bytes to send."""
        inputs, outputs = [i.packed() for i in self.inputs], list(map(tuple, self.outputs))
        fields = (self.program, self.iteration, self.size, inputs, outputs)
        return pickle.dumps(fields, pickle.HIGHEST_PROTOCOL)

    @classmethod
    def unpacked(cls, data: bytes) -> TaskBatch:
        """Restore what `packed` made."""
        program, iteration, size, inputs, outputs = pickle.loads(data)
        read, written = (
            [InputColumn.unpacked(i) for i in inputs],
            [OutputColumn(*o) for o in outputs],
        )
        return cls(program, iteration, size, read, written)


class Task(NamedTuple):
    """Samples to be carried through a stage."""

    batch: bytes
    """The `TaskBatch` that they belong to, packed."""
    indices: list[int]
    entries: list[list[int]]
    """Entries that each reader has drawn for these samples."""
    memory: tuple[int, ...] | None
    """The fields of a `Extent`, memory for samples of other shapes. A worker asks for more where it
    does not suffice."""


IN_PLACE, EMPTY, ABSENT = -1, -2, -3
"""A sample that is in its place in the memory of the whole batch; that has no elements; that no
branch has made."""


class Column(NamedTuple):
    """The samples of one register that a worker has made."""

    blocks: list[int] | None
    """For each sample the number of its piece of memory, or `IN_PLACE`, `EMPTY` or `ABSENT`; `None`
    if all are in their places."""
    offsets: list[int]
    shapes: list[tuple[int, ...]]
    sources: Sequence[str] | None


class TaskResult(NamedTuple):
    """Result of a task."""

    good: list[int] | None
    """Samples that were made, where these are not all."""
    columns: list[tuple[Any, ...]]
    """A `Column` for each register."""
    failures: list[tuple[int, PackedError]]
    """Number of each sample that failed, and why."""
    processor_seconds: float
    spans: tuple[int, bytes] | None = None
    """Process number and spans as rows of `headrace.profiling.rows.SPAN`, if the pipeline is
    profiled."""


class MemoryRequest(NamedTuple):
    """A request for so many further bytes of memory."""

    size: int


class CopyRequest(NamedTuple):
    """A request for the batch of a task with inputs in shared memory: the worker cannot read those
    of the program.
    """


class Rejection(NamedTuple):
    """The worker cannot work on this pipeline, and why."""

    reason: str
    of_function: bool = False
    """True if the refusal holds for one function only."""


class CallTask(NamedTuple):
    """Samples that a function of the user's is to be called with."""

    function: tuple[int, int]
    """Number of the graph, and of the function in it."""
    indices: list[int]
    inputs: list[InputColumn]
    memory: Extent | None
    """Memory for its results."""


class FunctionResults(NamedTuple):
    """Result of a function."""

    calls: list[tuple[int | None, list[Returned], PackedError | None, str]]
    """The fields of `Call`."""


class Returned(NamedTuple):
    """An array that a function has returned."""

    block: int
    """Number of the piece of memory it is in, or `EMPTY`."""
    offset: int
    shape: tuple[int, ...]
    dtype: np.dtype
