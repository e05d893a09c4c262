"""State that all pipelines of one GPU share: its runtime and its memory."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

from headrace.tensors.gpu.pinned import PinnedHostPool
from headrace.tensors.gpu.pool import DevicePool, DevicePoolShare, StagingPool
from headrace.tensors.gpu.queue import Queue
from headrace.tensors.gpu.runtime import get_runtime
from headrace.tensors.pool import HOST_POOL, HostPool, PoolShare

if TYPE_CHECKING:
    from headrace.tensors.gpu.runtime import Runtime


class GpuDevice:
    """One GPU of this process.

    `runtime`: the interface to it. `memory`: its memory. `pinned`: host memory that it copies from
    and to: batches on their way. `host`: ordinary host memory, for batches that have come from it.
    """

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.memory = DevicePool(runtime)
        self.pinned = PinnedHostPool(runtime)
        self.host: HostPool = HOST_POOL
        self._staging = StagingPool(runtime)

    def share(self) -> GpuDevice:
        """The same device as one pipeline sees it, whose memory is counted."""
        made = GpuDevice.__new__(GpuDevice)
        made.runtime, made._staging = self.runtime, self._staging
        made.memory = DevicePoolShare(self.memory)  # type: ignore[assignment]
        made.pinned = PoolShare(self.pinned)  # type: ignore[assignment]
        made.host = PoolShare(self.host)
        return made

    def queue(self, stream: int) -> Queue:
        """A queue for work on `stream`."""
        return Queue(self.runtime, stream, self.memory, self._staging, self.pinned)


_lock = threading.Lock()
_devices: dict[int, GpuDevice] = {}


def get_device(device_id: int) -> GpuDevice:
    """Return GPU number `device_id`. Raises `GpuNotAvailableError` or `ArgumentValueError` if it
    cannot be used.
    """
    runtime = get_runtime(device_id)
    with _lock:
        device = _devices.get(device_id)
        if device is None or device.runtime is not runtime:
            device = _devices[device_id] = GpuDevice(runtime)
    return device


def trim_devices() -> int:
    """Give idle memory of all GPUs in use, and page-locked memory, back to their drivers; return
    the bytes freed.
    """
    with _lock:
        devices = list(_devices.values())
    freed = 0
    for device in devices:
        with device.runtime.active():
            freed += device.memory.trim() + device.pinned.trim()
    return freed
