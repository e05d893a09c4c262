"""A stream of a GPU for one test, with memory of its own: up, down, and everything checked."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

import numpy as np

import headrace.kernels.gpu.strided_copy  # noqa: F401 - installs the copy that `Queue` offers
from headrace.tensors.gpu.batch import DeviceBatch, LazyBatch, as_shapes
from headrace.tensors.gpu.pinned import PinnedHostPool
from headrace.tensors.gpu.pool import DeviceMemory, DevicePool, StagingPool
from headrace.tensors.gpu.queue import Queue
from headrace.tensors.gpu.runtime import Runtime, get_runtime
from tests.support.gpu.cpu_functions import sanitizing
from tests.support.gpu.runtime import EmulatedRuntime


class ExactPool(DevicePool):
    """Memory of exactly the size that is asked for, each piece used once: overruns show."""

    def __init__(self, runtime: Runtime) -> None:
        super().__init__(runtime)
        self._addresses: list[int] = []

    def take(self, size_bytes: int, stream: int, *, quiesced: bool = False) -> DeviceMemory:
        """New memory."""
        address = self._runtime.allocate(size_bytes)
        self._addresses.append(address)
        return DeviceMemory(self, address, size_bytes, stream, quiesced)

    def release(self) -> None:
        """Free everything; on the emulator, with a look at the guards."""
        while self._addresses:
            self._runtime.free(self._addresses.pop())


class GpuSession:
    """What tests of kernels and operators work with.

    `queue`: where work goes. `scattered`: whether `upload` puts each sample into memory of its own,
    at an address that is aligned to its elements and no better; else they lie in one piece, as the
    engine has them.
    """

    def __init__(self, runtime: Runtime | None = None, *, scattered: bool | None = None) -> None:
        self.runtime = get_runtime(0) if runtime is None else runtime
        self.runtime.activate()
        self.scattered = sanitizing() if scattered is None else scattered
        self.pool = ExactPool(self.runtime)
        self._staging = StagingPool(self.runtime)
        self.stream = self.runtime.acquire_stream()
        self.queue = Queue(
            self.runtime,
            self.stream,
            self.pool,
            self._staging,
            PinnedHostPool(self.runtime),
            uploads_together=False,
        )

    def upload(self, rows: Sequence[np.ndarray]) -> DeviceBatch:
        """A batch in device memory."""
        dtype = rows[0].dtype
        shapes = as_shapes([row.shape for row in rows], len(rows)).reshape(len(rows), rows[0].ndim)
        if self.scattered:
            batch = self._scattered(shapes, dtype)
        else:
            batch = self.queue.empty(shapes, dtype)
        for row, pointer in zip(rows, batch.pointers.tolist(), strict=True):
            if row.nbytes:
                pinned = self.queue.pinned.copy_of(row)
                self.queue.keep(pinned)
                self.runtime.copy(pointer, pinned.ctypes.data, row.nbytes, self.stream)
        return batch

    def _scattered(self, shapes: np.ndarray, dtype: np.dtype) -> DeviceBatch:
        sizes = np.prod(shapes, axis=1, dtype=np.int64) * dtype.itemsize
        # Elements behind the begin of the piece, which ends where the sample does.
        offsets = [(1 + 2 * i) % 16 * dtype.itemsize for i in range(len(sizes))]
        pieces = [
            self.pool.take(size + offset, self.stream)
            for size, offset in zip(sizes.tolist(), offsets, strict=True)
        ]
        pointers = [piece.address + o for piece, o in zip(pieces, offsets, strict=True)]
        return DeviceBatch(
            self.runtime, tuple(pieces), np.array(pointers, np.uint64), shapes, dtype
        )

    def download(self, batch: LazyBatch) -> list[np.ndarray]:
        """The samples of a batch, in memory of their own; waits for the stream."""
        made = batch.materialise(self.queue)
        pinned = []
        for shape, pointer in zip(made.shapes.tolist(), made.pointers.tolist(), strict=True):
            row = self.queue.pinned.empty(shape, made.dtype)
            pinned.append(row)
            if row.nbytes:
                self.runtime.copy(row.ctypes.data, pointer, row.nbytes, self.stream)
        self.runtime.synchronize(self.stream)
        return [row.copy() for row in pinned]

    def synchronize(self) -> None:
        """Wait for the stream."""
        self.runtime.synchronize(self.stream)

    def close(self) -> None:
        """Wait for all work, check and free all memory."""
        self.synchronize()
        self.queue.finish()
        self.runtime.release_stream(self.stream)
        if isinstance(self.runtime, EmulatedRuntime):
            self.runtime.check()
        self.pool.release()


@contextlib.contextmanager
def gpu_session(
    runtime: Runtime | None = None, *, scattered: bool | None = None
) -> Iterator[GpuSession]:
    """A `GpuSession` that ends with the block."""
    session = GpuSession(runtime, scattered=scattered)
    try:
        yield session
    except BaseException:
        with contextlib.suppress(Exception):  # the first error is the one to be seen
            session.close()
        raise
    session.close()
