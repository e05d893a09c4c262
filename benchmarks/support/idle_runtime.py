"""A GPU that does nothing, at once: what is left is the time that the host takes."""

from __future__ import annotations

import contextlib
import ctypes
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np

from headrace.tensors.gpu.driver import Driver, Launch

OTHER_STREAM = 0x77
_NOTHING = contextlib.nullcontext()
"""Where producers and consumers work."""


class IdleDriver(Driver):
    """The driver's entry points, all of them a function of C's library that returns 0.

    Calls so take what it takes to make them, with all their arguments.
    """

    def __init__(self) -> None:
        super().__init__(lambda: None, _EveryEntry())
        self.launches = 0


class _EveryEntry:
    def __getattr__(self, name: str) -> Any:
        # A library object of its own: types of arguments are those of a function of a library.
        return ctypes.PyDLL(None).pthread_mutexattr_destroy


class IdleEvent:
    """An event that has always passed."""

    __slots__ = ("_driver",)

    def __init__(self, driver: Driver, stream: int) -> None:
        self._driver = driver
        driver.record(0, stream)

    def done(self) -> bool:
        """Whether the device has reached it."""
        return self._driver.passed(0)

    def synchronize(self) -> None:
        """Wait for nothing."""


class IdleArray:
    """An array in the memory of the idle GPU, which says of itself what one of CuPy says."""

    _c_contiguous = True

    def __init__(self, address: int, shape: tuple[int, ...], dtype: np.dtype) -> None:
        self.data = SimpleNamespace(ptr=address, device_id=0)
        self.shape = shape
        self.dtype = dtype

    def __dlpack_device__(self) -> tuple[int, int]:
        """On GPU 0."""
        return 2, 0


IdleArray.__module__, IdleArray.__qualname__ = "cupy", "ndarray"


class _OtherStream:
    ptr = OTHER_STREAM


def install_idle_cupy() -> None:
    """Let a module pass for CuPy whose arrays are `IdleArray`, in this process."""
    stream = _OtherStream()
    cuda = SimpleNamespace(
        get_current_stream=lambda device_id=-1: stream,
        runtime=SimpleNamespace(CUDARuntimeError=RuntimeError),
    )
    sys.modules["cupy"] = SimpleNamespace(  # type: ignore[assignment]
        __name__="cupy", ndarray=IdleArray, cuda=cuda
    )


class _Exported:
    """An array that a consumer can take over, and keeps."""

    __slots__ = ("owner",)

    def __init__(self, owner: Any) -> None:
        self.owner = owner

    def __dlpack__(self, **_: Any) -> Any:
        return self


class _CountedLaunch(Launch):
    """A kernel that is counted."""

    __slots__ = ()

    def __call__(self, *args: Any) -> None:
        self._driver.launches += 1  # type: ignore[attr-defined]
        super().__call__(*args)


class IdleRuntime:
    """One GPU. Its memory is memory of the host that nobody touches."""

    name = "idle GPU"
    compute_capability = (9, 0)
    multiprocessors = 132
    xp = SimpleNamespace()

    def __init__(self, device_id: int = 0) -> None:
        self.device_id = device_id
        self.driver = IdleDriver()
        self._memory: dict[int, np.ndarray] = {}
        self._streams = iter(range(0x1000, 1 << 31))
        self._idle: list[int] = []
        self._functions: dict[tuple[str, str], Launch] = {}

    def activate(self) -> None:
        """Nothing to do."""

    def active(self) -> contextlib.nullcontext[None]:
        """Call what tells which device is current."""
        self.driver.current_context()
        return _NOTHING

    using = active

    def acquire_stream(self) -> int:
        """A stream."""
        return self._idle.pop() if self._idle else next(self._streams)

    def release_stream(self, stream: int) -> None:
        """Take back a stream."""
        self._idle.append(stream)

    def record(self, stream: int) -> IdleEvent:
        """An event that has passed."""
        return IdleEvent(self.driver, stream)

    def wait(self, stream: int, event: Any) -> None:
        """Call what lets a stream wait."""
        self.driver.wait(stream, 0)

    def synchronize(self, stream: int) -> None:
        """Wait for nothing."""

    def allocate(self, size_bytes: int) -> int:
        """Memory."""
        memory = np.empty(size_bytes + 256, np.uint8)
        address = -(-memory.ctypes.data // 256) * 256
        self._memory[address] = memory
        return address

    def free(self, address: int) -> None:
        """Take back memory."""
        del self._memory[address]

    def is_page_locked(self, address: int) -> bool:
        """All memory is."""
        return True

    allocate_pinned = allocate
    free_pinned = free

    def register_pinned(self, address: int, size_bytes: int) -> None:
        """Nothing to do: all memory is page-locked."""

    def unregister_pinned(self, address: int) -> None:
        """Nothing to do."""

    def copy(
        self, target: int, source: int, size_bytes: int, stream: int, *, may_wait: bool = False
    ) -> None:
        """Call what copies."""
        self.driver.copy(target, source, size_bytes, stream)

    def fill(self, target: int, value: int, size_bytes: int, stream: int) -> None:
        """Call what copies."""
        self.driver.copy(target, value, size_bytes, stream)

    def function(self, source: str, name: str) -> Launch:
        """Something that takes all arguments of a kernel."""
        found = self._functions.get((source, name))
        if found is None:
            found = self._functions[source, name] = _CountedLaunch(self.driver, 1)
        return found

    def array(
        self,
        address: int,
        shape: tuple[int, ...],
        dtype: np.dtype,
        strides: tuple[int, ...] | None,
        owner: Any,
        size_bytes: int,
    ) -> _Exported:
        """An array that keeps `owner`."""
        return _Exported(owner)
