"""Memory of a pipeline in the pools, by iteration and by holder."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

from headrace.executor.cpu.batch import BatchBuffer
from headrace.executor.gpu.batch import GpuBatch
from headrace.executor.iteration import DONE
from headrace.tensors.gpu.pool import DeviceMemory, DevicePoolShare
from headrace.tensors.pool import HOST_POOL, HostPool, PoolShare, memory_of

if TYPE_CHECKING:
    import numpy as np

    from headrace.executor.iteration import Iteration
    from headrace.tensors.gpu.device import GpuDevice


class Sizes(NamedTuple):
    """Bytes of host memory (ordinary, shared and page-locked), and of a GPU's."""

    host: int = 0
    device: int = 0

    def plus(self, other: Sizes) -> Sizes:
        """The sum of both."""
        return Sizes(self.host + other.host, self.device + other.device)

    def minus(self, other: Sizes) -> Sizes:
        """The difference of both, not less than nothing."""
        return Sizes(max(self.host - other.host, 0), max(self.device - other.device, 0))

    def most(self, other: Sizes) -> Sizes:
        """The larger one of each."""
        return Sizes(max(self.host, other.host), max(self.device, other.device))


class Pieces:
    """Sizes of pieces of memory, each counted once, for its first holder."""

    def __init__(self) -> None:
        self._seen: set[int] = set()

    def add(self, batch: Any) -> Sizes:
        """Return the size of new memory in a batch: a `BatchBuffer` or a `GpuBatch`."""
        host = device = 0
        if isinstance(batch, GpuBatch):
            for owner in batch.batch.owners:
                if isinstance(owner, DeviceMemory) and self._is_new(owner):
                    device += owner.size_bytes
        elif isinstance(batch, BatchBuffer):
            host = self.add_arrays(batch.own_arrays())
        return Sizes(host, device)

    def add_arrays(self, arrays: Iterable[np.ndarray]) -> int:
        """Return the bytes of new memory of arrays, if it is of a pool."""
        total = 0
        for array in arrays:
            memory = memory_of(array)
            if memory is not None and self._is_new(memory):
                total += memory.nbytes
        return total

    def _is_new(self, piece: object) -> bool:
        key = id(piece)
        is_new = key not in self._seen
        self._seen.add(key)
        return is_new

    def add_all(self, batches: Iterable[Any]) -> Sizes:
        """Return the size of new memory in several batches."""
        total = Sizes()
        for batch in batches:
            total = total.plus(self.add(batch))
        return total


class PipelineMemory:
    """The shares of pools that one pipeline takes its memory from. `host`: ordinary memory."""

    def __init__(self, device: GpuDevice | None) -> None:
        self.host = PoolShare(HOST_POOL) if device is None else device.host
        self._device = device
        self._shares: dict[str, HostPool] = {"host": self.host}
        if device is not None:
            self._shares["pinned"] = device.pinned

    def add_shares(self, **shares: HostPool | None) -> None:
        """Count memory taken through these shares, too."""
        self._shares.update({k: share for k, share in shares.items() if share is not None})

    def in_use(self) -> Sizes:
        """Memory that the pipeline has taken and that is still in use."""
        host = sum(s.bytes_in_use for s in self._shares.values() if isinstance(s, PoolShare))
        memory = None if self._device is None else self._device.memory
        device = memory.bytes_in_use if isinstance(memory, DevicePoolShare) else 0
        return Sizes(host, device)

    def pools(self) -> Iterator[tuple[str, int, int]]:
        """Yield for each pool its name, bytes in use, and idle bytes."""
        for name, share in self._shares.items():
            stats = share.stats()
            yield name, stats.bytes_in_use, stats.bytes_idle + stats.bytes_reserved
        if self._device is not None:
            pool = self._device.memory
            idle = pool.bytes_idle()
            yield "device", max(pool.bytes_held - idle, 0), idle

    def held(self) -> tuple[int, int, int]:
        """Return bytes lent by the host's pools, bytes they keep, and bytes of the GPU's pool; does
        not call the GPU.
        """
        used = idle = 0
        for share in self._shares.values():
            lent, left = share.held()
            used += lent
            idle += left
        device = 0 if self._device is None else self._device.memory.bytes_held
        return used, idle, device


class MemoryLimit:
    """Decides whether a further iteration fits in `host` and `device` bytes (`None`: no limit),
    given the `estimate` of one iteration before the first.
    """

    def __init__(
        self, memory: PipelineMemory, *, host: int | None, device: int | None, estimate: Sizes
    ) -> None:
        self.limit = host, device
        self.estimate = estimate
        """Memory of the largest iteration so far."""
        self._memory = memory
        self._is_known = any(estimate)

    def has_room(self, queue: Iterable[Iteration]) -> bool:
        """Return True if one more iteration than those in `queue` fits the limit, by estimate."""
        if not self._is_known:
            return False
        needed = self._memory.in_use().plus(self.estimate)
        for iteration in list(queue):
            if iteration.state is not DONE:
                made = Pieces().add_all(list(iteration.buffers) or iteration.fed.values())
                needed = needed.plus(self.estimate.minus(made))
        return all(most is None or n <= most for n, most in zip(needed, self.limit, strict=True))

    def note(self, iteration: Iteration) -> None:
        """Take the memory of a finished iteration into account."""
        self._is_known = True
        self.estimate = self.estimate.most(Pieces().add_all(iteration.buffers))


def real_size(batch: BatchBuffer | GpuBatch) -> int:
    """Bytes of the elements of all samples of a batch."""
    if isinstance(batch, GpuBatch):
        return int(batch.batch.sizes().sum()) * batch.batch.dtype.itemsize
    dense = batch.dense
    if dense is not None:
        return int(dense.nbytes)
    return sum(row.nbytes for row in batch.rows if row is not None)


def reserved_size(batch: BatchBuffer | GpuBatch) -> int:
    """Bytes of the memory that a batch lies in."""
    return max(sum(Pieces().add(batch)), real_size(batch))
