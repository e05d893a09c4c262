"""Memory of a worker process: files it shares with its parent, and memory for its results."""

from __future__ import annotations

import bisect
import math
import mmap
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from headrace.executor.cpu.batch import BatchBuffer
from headrace.executor.cpu.shape_statistics import ShapeStatistics
from headrace.executor.processes.messages import ABSENT, EMPTY, IN_PLACE, Column
from headrace.tensors.buffer_sizes import ALIGNMENT_BYTES
from headrace.tensors.pool import HostPool, no_memory

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from headrace.executor.processes.messages import OutputColumn
    from headrace.executor.processes.shared_pool import Extent
    from headrace.operators.support.schema import Spec
    from headrace.tensors.rows import Rows


class MappedFiles:
    """The shared files that this process has mapped, by their numbers."""

    def __init__(self) -> None:
        self._files: dict[int, np.ndarray] = {}

    def add(self, number: int, file: int, size: int) -> None:
        """Map a file; closes its descriptor."""
        try:
            self._files[number] = np.frombuffer(mmap.mmap(file, size), np.uint8)
        finally:
            os.close(file)

    def drop(self, number: int) -> None:
        """Unmap a file."""
        self._files.pop(number, None)

    def memory(self, place: Extent | tuple[int, ...]) -> np.ndarray:
        """The bytes of a place."""
        file, offset, size = place
        return self._files[file][offset : offset + size]

    def array(
        self, file: int | None, offset: int, shape: tuple[int, ...], dtype: DTypeLike
    ) -> np.ndarray:
        """An array at a place; `file` is None where it has no elements."""
        if file is None:
            return np.empty(shape, dtype)
        return np.ndarray(shape, dtype, self._files[file], offset)


class TaskMemory(HostPool):
    """Memory for the samples of one task: pieces that the parent gives, used up one by one."""

    def __init__(
        self, count: int, first: np.ndarray | None, ask: Callable[[int], np.ndarray]
    ) -> None:
        self._count = count
        self._ask = ask
        self._pieces: list[np.ndarray] = []
        self._order: list[tuple[int, int, int]] = []
        """Address of each piece, its size and its number, by address."""
        self._used = 0
        if first is not None:
            self._add(first)

    def _add(self, piece: np.ndarray) -> None:
        bisect.insort(self._order, (piece.ctypes.data, len(piece), len(self._pieces)))
        self._pieces.append(piece)
        self._used = 0

    def empty(self, shape: int | tuple[int, ...], dtype: DTypeLike) -> np.ndarray:  # type: ignore[override]
        """An uninitialised C-contiguous array, aligned to 64 bytes."""
        dtype = np.dtype(dtype)
        shape = (shape,) if isinstance(shape, int) else tuple(shape)
        size = math.prod(shape) * dtype.itemsize
        if size <= 0:
            return np.empty(shape, dtype)
        if not self._pieces or self._used + size > len(self._pieces[-1]):
            self._add(self._more(shape, dtype, size))
        start = self._used
        self._used = -(-(start + size) // ALIGNMENT_BYTES) * ALIGNMENT_BYTES
        return np.ndarray(shape, dtype, self._pieces[-1], start)

    def _more(self, shape: tuple[int, ...], dtype: np.dtype, size: int) -> np.ndarray:
        """A further piece, which holds an array of this shape, type and number of bytes.

        The first one holds as many as there are samples, if there is memory for that.
        """
        if not self._pieces:  # other samples are likely to be as large
            try:
                return self._ask(size * self._count)
            except MemoryError:
                pass
        try:
            return self._ask(size)
        except MemoryError as error:
            raise no_memory(shape, dtype, size) from error

    def find(self, row: np.ndarray) -> tuple[int, int]:
        """Number of the piece that `row` is in, and where in it; a copy of it if it is in none."""
        if not row.size:
            return EMPTY, 0
        if row.flags.c_contiguous:
            address = row.ctypes.data
            k = bisect.bisect(self._order, (address, 1 << 62, 0)) - 1
            if k >= 0:
                begin, size, number = self._order[k]
                if address + row.nbytes <= begin + size:
                    return number, address - begin
        return self.find(self.copy_of(row))


class WorkerBuffer(BatchBuffer):
    """The batch of a register as far as a worker makes it, in memory of the parent."""

    __slots__ = ()

    @classmethod
    def placed(
        cls, size: int, spec: Spec, output: OutputColumn, memory: TaskMemory, files: MappedFiles
    ) -> WorkerBuffer:
        """Return a batch whose samples go to the memory that `output` names."""
        history = ShapeStatistics()
        history.ragged = output.file is None
        made = cls(size, spec, history, memory)
        made._ndim = output.ndim
        if output.file is not None:
            assert output.shape is not None
            shape = (size, *output.shape)
            made._dense = files.array(output.file, output.offset, shape, made._dtype)
            made._row_shape = output.shape
        return made

    def column(self, indices: list[int], memory: TaskMemory) -> Column:
        """Return the addresses of these samples."""
        sources = None if self.sources is None else [self.sources[index] for index in indices]
        inside = self.are_inside(indices)
        if all(inside):
            return Column(None, [], [], sources)
        places: list[tuple[int, int]] = []
        shapes: list[tuple[int, ...]] = []
        for index, is_inside in zip(indices, inside, strict=True):
            row = None if is_inside else self.rows[index]
            shapes.append(() if row is None else row.shape)
            if row is None:
                places.append((IN_PLACE if is_inside else ABSENT, 0))
            else:
                places.append(memory.find(row))
        blocks, offsets = zip(*places, strict=True) if places else ((), ())
        return Column(list(blocks), list(offsets), shapes, sources)

    def share(self, index: int, value: np.ndarray, origin: BatchBuffer) -> bool:
        """Nothing is shared: the other batch may be elsewhere in the parent."""
        return False

    def share_all(self, indices: Sequence[int], values: Rows, origin: BatchBuffer) -> bool:
        """The same of several samples."""
        return False
