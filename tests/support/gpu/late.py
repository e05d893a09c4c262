"""Batches as the engine hands them out: their values are still on their way."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace.tensors import TensorListGPU
from headrace.tensors.gpu.batch import DeviceBatch
from headrace.tensors.gpu.device import get_device
from headrace.tensors.gpu.runtime import Runtime
from headrace.types import DALIDataType, to_dali_type


def late_batch(
    runtime: Runtime,
    rows: Sequence[np.ndarray],
    layout: str = "",
    dtype: DALIDataType | None = None,
    sources: list[str] | None = None,
) -> TensorListGPU:
    """The batch of these samples, in one piece of memory, on a stream of its own."""
    device = get_device(runtime.device_id)
    first = rows[0]
    stream = runtime.acquire_stream()
    shapes = np.array([row.shape for row in rows], np.int64).reshape(len(rows), first.ndim)
    batch = device.queue(stream).empty(shapes, first.dtype)
    kept: list[Any] = []
    for pointer, row in zip(batch.pointers.tolist(), rows, strict=True):
        if row.nbytes:
            pinned = device.pinned.copy_of(row)
            runtime.copy(pointer, pinned.ctypes.data, row.nbytes, stream)
            kept.append(pinned)
    event = runtime.record(stream)
    runtime.release_stream(stream)
    owners = (*batch.owners, *kept)
    batch = DeviceBatch(runtime, owners, batch.pointers, batch.shapes, batch.dtype)
    found = to_dali_type(first.dtype) if dtype is None else dtype
    return TensorListGPU._from_batch(batch, layout, found, sources, event, stream)


def read_on(runtime: Runtime, address: int, like: np.ndarray, stream: int) -> np.ndarray:
    """What work of `stream` sees at `address`, which waits for nothing else."""
    out = get_device(runtime.device_id).pinned.empty(like.shape, like.dtype)
    runtime.copy(out.ctypes.data, address, like.nbytes, stream)
    runtime.synchronize(stream)
    return out.copy()
