"""Small things that kernels need, on their way to the device: descriptors of samples, arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.tensors.gpu.pool import STAGING_BYTES

if TYPE_CHECKING:
    from headrace.tensors.gpu.pool import (
        DeviceMemory,
        DevicePool,
        PinnedBuffer,
        PlainMemory,
        StagingPool,
    )
    from headrace.tensors.gpu.runtime import Runtime

_ALIGNMENT = 64
AT_ONCE_BYTES = 1 << 16
"""Bytes copied at a time. The driver takes a copy of so little plain memory at once and sends it
with its commands: a kernel after it begins 6 microseconds earlier, on an H200, than after a copy
from page-locked memory."""


class Uploads:
    """Collects uploads in host memory, and copies them in one go."""

    __slots__ = (
        "_address",
        "_device",
        "_host",
        "_kept",
        "_pool",
        "_runtime",
        "_sent",
        "_stream",
        "_together",
        "_used",
        "staging",
    )

    def __init__(
        self,
        runtime: Runtime,
        stream: int,
        pool: DevicePool,
        staging: StagingPool,
        *,
        together: bool,
    ) -> None:
        self._runtime = runtime
        self._stream = stream
        self._pool = pool
        self.staging = staging
        self._together = together
        self._host: PinnedBuffer | PlainMemory | None = None
        self._device: DeviceMemory | None = None
        self._address = 0
        self._used = 0
        self._sent = 0
        self._kept: list[Any] = []

    def add(self, content: bytes) -> int:
        """Address on the device that these bytes will have, once they are sent."""
        size = len(content)
        start = (self._used + _ALIGNMENT - 1) & -_ALIGNMENT
        host = self._host
        if host is None or start + size > host.size_bytes or not self._together:
            host, start = self._renewed(size), 0
        host.view[start : start + size] = content
        self._used = start + size
        return self._address + start

    def _renewed(self, size: int) -> PinnedBuffer | PlainMemory:
        """Other memory, with room for so much."""
        self.send()
        host = self._host = self.staging.take(size)
        taken = max(size, STAGING_BYTES) if self._together else max(size, 1)
        device = self._device = self._pool.take(taken, self._stream)
        self._address = device.address
        self._used = self._sent = 0
        self._kept += [_Returning(self.staging, host), device]
        return host

    def send(self) -> None:
        """Queue the copy of uploads added since the last call."""
        host, device = self._host, self._device
        if host is None or device is None or self._used == self._sent:
            return
        begin, size = self._sent, self._used - self._sent
        if size <= AT_ONCE_BYTES or host.size_bytes != STAGING_BYTES:
            self._runtime.copy(device.address + begin, host.address + begin, size, self._stream)
        else:
            for part in range(begin, self._used, AT_ONCE_BYTES):
                size = min(self._used - part, AT_ONCE_BYTES)
                self._runtime.copy(device.address + part, host.address + part, size, self._stream)
        # The next thing begins where a copy may begin, too.
        self._sent = self._used = -(-self._used // _ALIGNMENT) * _ALIGNMENT

    def finish(self) -> list[Any]:
        """Send everything; return the objects to keep until the copies are done.

        What is uploaded next goes after it, as long as there is room: nothing is overwritten.
        """
        self.send()
        kept, host = self._kept, self._host
        if host is not None and self._together and host.size_bytes == STAGING_BYTES:
            self._kept = kept[-2:]
        else:
            self._kept = []
            self._host = self._device = None
            self._used = self._sent = 0
        return kept


class _Returning:
    """Gives a piece of staging memory back when it is dropped."""

    __slots__ = ("_memory", "_pool")

    def __init__(self, pool: StagingPool, memory: PinnedBuffer | PlainMemory) -> None:
        self._pool = pool
        self._memory = memory

    def __del__(self) -> None:
        self._pool.give_back(self._memory)
