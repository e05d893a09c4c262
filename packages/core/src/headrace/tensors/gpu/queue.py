"""Queue of work for the GPU: one stream, with its memory and its uploads."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from headrace.tensors.gpu.batch import (
    DeviceBatch,
    StridedBatch,
    as_shapes,
    dense_layout,
    lay_samples,
    uniform_shape,
)
from headrace.tensors.gpu.pinned import PinnedHostPool
from headrace.tensors.gpu.uploads import Uploads

if TYPE_CHECKING:
    from headrace.tensors.gpu.pool import DevicePool, StagingPool
    from headrace.tensors.gpu.runtime import Event, Function, Runtime

SAMPLE_ALIGNMENT_BYTES = 64
"""Samples of differing shapes begin at multiples of it; those of one shape lie without gaps."""
_MOST_RECORDS = 64


class KernelSource(Protocol):
    """A kernel that is not compiled yet: hashable, with the text of its program."""

    @property
    def name(self) -> str:
        """Name expression: ``"fill<float>"``."""
        ...

    def source(self) -> str:
        """CUDA C++ that defines it."""
        ...


class Queue:
    """Memory, uploads and launches on one stream of one device; of one thread at a time.

    Everything that is uploaded for a kernel goes over in one copy, just before its launch; without
    `uploads_together`, each by itself, to memory that is exactly as long as it is.

    What `scratch` and `upload` hand out is valid for work queued here, until the queue's owner says
    `finish`: nothing has to be kept or freed by who asks.
    """

    def __init__(
        self,
        runtime: Runtime,
        stream: int,
        pool: DevicePool,
        staging: StagingPool,
        pinned: PinnedHostPool | None = None,
        *,
        uploads_together: bool = True,
    ) -> None:
        self.runtime = runtime
        self.pinned = PinnedHostPool(runtime) if pinned is None else pinned
        self.stream = stream
        self._pool = pool
        self._uploads = Uploads(runtime, stream, pool, staging, together=uploads_together)
        self._scratch: list[Any] = []
        self._records: dict[tuple[int, int], np.ndarray] = {}
        self._functions: dict[Any, Function] = {}
        self._ragged: tuple[np.ndarray | None, int, np.ndarray, int] = None, 0, np.empty(0), 0
        self._deferred: list[Callable[[Queue], None]] | None = None

    def empty(
        self, shapes: Any, dtype: Any, count: int | None = None, *, quiesced: bool = False
    ) -> DeviceBatch:
        """Uninitialised memory for a batch, in one piece; `shapes` is ``(samples, ndim)`` or, with
        `count`, one shape. With `quiesced` no queued work may use it still.
        """
        dtype = np.dtype(dtype)
        if count and type(shapes) is tuple:
            uniform: tuple[int, ...] | None = shapes
        else:
            shapes = np.asarray(shapes, np.int64)
            if shapes.ndim == 1:
                assert count is not None
                shapes = as_shapes(shapes, count)
            count = len(shapes)
            uniform = None if shapes is self._ragged[0] else uniform_shape(shapes)
        if uniform is not None:
            total = dense_layout(uniform, dtype.itemsize, count)[2]
            memory = self._pool.take(max(total, 1), self.stream, quiesced=quiesced)
            return DeviceBatch.dense(self.runtime, (memory,), memory.address, uniform, dtype, count)
        offsets, total = self._ragged_layout(shapes, dtype.itemsize)
        memory = self._pool.take(max(total, 1), self.stream, quiesced=quiesced)
        pointers = (memory.address + offsets).view(np.uint64)
        batch = DeviceBatch(self.runtime, (memory,), pointers, shapes, dtype)
        batch.note_layout(None)
        return batch

    def _ragged_layout(self, shapes: np.ndarray, itemsize: int) -> tuple[np.ndarray, int]:
        """Return the offsets of samples of differing shapes, and the bytes of all.

        Batches that become one another, step by step, share one array of shapes.
        """
        known, of_size, offsets, total = self._ragged
        if known is shapes and of_size == itemsize:
            return offsets, total
        offsets = np.empty(len(shapes), np.int64)
        total = lay_samples(offsets, shapes, itemsize, SAMPLE_ALIGNMENT_BYTES)
        self._ragged = shapes, itemsize, offsets, total
        return offsets, total

    def records(self, dtype: np.dtype, count: int) -> np.ndarray:
        """An array of so many elements, to be filled and uploaded before it is asked for again.

        NumPy takes longer to make one of many fields than the loop that fills it.
        """
        key = id(dtype), count  # an array's type lives as long as the array
        found = self._records.get(key)
        if found is None:
            if len(self._records) >= _MOST_RECORDS:
                self._records.clear()
            found = self._records[key] = np.empty(count, dtype)
        return found

    def word(self, kind: type[Any], number: int) -> Any:
        """An argument of a kernel, of a NumPy type; recordings know which follow from shapes."""
        return kind(number)

    def scratch(self, size_bytes: int) -> int:
        """Address of uninitialised device memory for work that is queued here now."""
        memory = self._pool.take(max(size_bytes, 1), self.stream)
        self._scratch.append(memory)
        return memory.address

    def upload(self, values: np.ndarray) -> np.uint64:
        """Address on the device that `values` have when the kernel that is launched next runs."""
        return np.uint64(self._uploads.add(values.tobytes()))

    def launch(
        self,
        kernel: KernelSource,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        *args: Any,
        shared_bytes: int = 0,
    ) -> None:
        """Queue a kernel; does nothing where the grid is empty.

        `args` are NumPy scalars of exactly the types of the kernel's parameters; addresses are
        ``numpy.uint64``.
        """
        if 0 in grid:
            return
        self._uploads.send()
        function = self._functions.get(kernel)
        if function is None:
            function = self.runtime.function(kernel.source(), kernel.name)
            self._functions[kernel] = function
        function(grid, block, args, shared_bytes, self.stream)

    @property
    def has_kernels(self) -> bool:
        """True if `copy_strided` is implemented: it is where operators may run."""
        return _copy_strided is not None

    def copy_strided(self, source: StridedBatch, target: DeviceBatch) -> None:
        """Queue a copy of samples seen through strides."""
        assert _copy_strided is not None
        _copy_strided(self, source, target)

    def wait(self, event: Event) -> None:
        """Have work that is queued from now on wait for an event."""
        self.runtime.wait(self.stream, event)

    def keep(self, owner: Any) -> None:
        """Keep `owner`, and with it its memory, until the work queued so far is done."""
        self._scratch.append(owner)

    def collect(self, deferred: list[Callable[[Queue], None]] | None) -> None:
        """Collect deferred work in `deferred` from now on; `None`: do it at once."""
        self._deferred = deferred

    is_tracking = False
    """True while a recording tracks shapes."""

    def seen(self, batch: DeviceBatch) -> DeviceBatch:
        """An input as operators are to see it: recordings track shapes and addresses."""
        return batch

    def seen_on_host(self, register: int, batch: Any) -> Any:
        """A batch on the host as operators are to see it: recordings note what is read of it."""
        return batch

    def scalars_of(self, batch: Any) -> np.ndarray | None:
        """The samples of a batch on the host as one array, if they are numbers."""
        return scalars_of(batch)

    arguments_noted = 0
    """Number of arguments that a recording has noted."""

    def note_plan(self, op: Any, planned: Any, inputs: tuple[Any, ...], noted: int) -> None:
        """Do nothing: recordings note what operators plan, and with it what they have planned with:
        the arguments after the first `noted`.
        """

    def argument(self, context: Any, name: str, values: np.ndarray) -> np.ndarray:
        """Return the values of an argument that is a tensor: recordings note them."""
        return values

    def defer(self, work: Callable[[Queue], None]) -> None:
        """Run `work` before the results queued here are handed over, and maybe not at once.

        It may wait, while the next batch is begun. It is called with a queue for the same stream,
        maybe in another thread; so an operator that has deferred work must not be followed by one
        that reads its output on the same stream.
        """
        if self._deferred is None:
            work(self)
        else:
            self._deferred.append(work)

    def finish(self) -> list[Any]:
        """Return the objects to keep until the work queued so far is done; the queue starts
        anew.
        """
        kept, self._scratch = self._scratch, []
        kept.extend(self._uploads.finish())
        return kept


def scalars_of(batch: Any) -> np.ndarray | None:
    """The samples of a batch on the host as one array ``(samples,)``, if they are numbers."""
    rows = batch.rows
    if not len(rows) or rows[0].ndim:
        return None
    values: np.ndarray | None = batch.dense
    if values is None:
        values = np.fromiter((row.item() for row in rows), rows[0].dtype, len(rows))
    return values


_copy_strided: Callable[[Queue, StridedBatch, DeviceBatch], None] | None = None


def install_strided_copy(copy: Callable[[Queue, StridedBatch, DeviceBatch], None]) -> None:
    """Tell how strided samples are copied; the kernels do, which are above this floor."""
    global _copy_strided
    _copy_strided = copy
