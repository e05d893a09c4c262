"""Memory that outputs on the host are handed over in, where it is not that of the engine."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headrace.executor.cpu.batch import BatchBuffer
from headrace.executor.cpu.shape_statistics import ShapeStatistics
from headrace.kernels.gpu.staging import copy_by_threads

if TYPE_CHECKING:
    from headrace.tensors.pool import HostPool


def in_pool(buffer: BatchBuffer, pool: HostPool, threads: int) -> BatchBuffer:
    """A finished batch in memory of `pool`: itself, where it lies there, or a copy that so many
    threads make.
    """
    if buffer.event is not None:  # it is copied when it is taken, which waits for the GPU
        buffer.pool = pool
        return buffer
    memory = buffer.tensor_list()._memory
    if all(map(pool.has, memory.rows if memory.dense is None else (memory.dense,))):
        return buffer
    made = BatchBuffer(len(buffer), buffer.spec, ShapeStatistics(), pool)
    made.sources = buffer.sources
    if memory.dense is None:
        made.put_rows(range(len(buffer)), memory.rows)
    else:
        dense = pool.empty(memory.dense.shape, memory.dense.dtype)
        copy_by_threads(dense, memory.dense, threads)
        made.adopt(dense)
    return made
