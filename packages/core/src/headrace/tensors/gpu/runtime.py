"""Interface of a GPU for the engine: streams, events, memory, copies, kernels.

`Runtime` is the whole of it, small on purpose: `headrace.tensors.gpu.cuda` implements it with CuPy,
and the tests implement it on the CPU, with streams that run late, to find what CUDA would only show
by chance. Addresses and streams are plain integers, so that NumPy can compute with the former and
any framework's handle can serve as the latter.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol

import numpy as np

from headrace.config import GPU
from headrace.errors import GpuNotAvailableError


class Event(Protocol):
    """A point in the work of a stream."""

    def done(self) -> bool:
        """True if the device has reached it."""

    def synchronize(self) -> None:
        """Wait, on the host and without the interpreter's lock, until the device has reached it."""


class Function(Protocol):
    """A compiled kernel."""

    def __call__(
        self,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        args: tuple[Any, ...],
        shared_bytes: int,
        stream: int,
    ) -> None:
        """Queue a launch; `args` are NumPy scalars, addresses as `numpy.uint64`."""


class Runtime(Protocol):
    """One GPU, as the engine sees it.

    Safe to use from any thread where it is the current device (`activate`, `active`); only events
    may be asked and waited for, and memory be given back, from everywhere. In a fork of the process
    every call raises `GpuNotAvailableError`, but for `free_pinned`, `unregister_pinned` and
    `release_stream`.
    """

    device_id: int
    name: str
    """Name of the device: ``"NVIDIA H200"``."""
    compute_capability: tuple[int, int]
    multiprocessors: int
    xp: Any
    """The module of arrays on the device: CuPy."""

    def activate(self) -> None:
        """Make this the current device of the calling thread."""

    def active(self) -> AbstractContextManager[Any]:
        """The same for the length of a ``with``, for threads that are not the engine's own."""

    def acquire_stream(self) -> int:
        """A stream for the caller alone, to be given back; it does not wait for the default one."""

    def release_stream(self, stream: int) -> None:
        """Take back a stream. Streams are kept and lent again, so their numbers stay valid."""

    def record(self, stream: int) -> Event:
        """Record an event after all work queued on `stream` so far."""

    def wait(self, stream: int, event: Event) -> None:
        """Make later work on `stream` wait for `event`. The host does not wait."""

    def synchronize(self, stream: int) -> None:
        """Wait, on the host, for all work of `stream`."""

    def allocate(self, size_bytes: int) -> int:
        """Address of new device memory."""

    def free(self, address: int) -> None:
        """Give device memory back to the driver; waits for the device.

        Does nothing where `free_pinned` does not.
        """

    def allocate_pinned(self, size_bytes: int) -> int:
        """Address of new page-locked host memory, which kernels can read, too."""

    def free_pinned(self, address: int) -> None:
        """Give page-locked memory back.

        Does nothing in a fork of the process, whose parent has the memory, and while the
        interpreter ends, when the driver may have gone.
        """

    def is_page_locked(self, address: int) -> bool:
        """Return True if host memory is page-locked, whoever has done it."""

    def register_pinned(self, address: int, size_bytes: int) -> None:
        """Page-lock memory of another owner; it begins and ends with a page."""

    def unregister_pinned(self, address: int) -> None:
        """Let go of such memory, before it is freed; does nothing where `free_pinned` does not."""

    def copy(
        self, target: int, source: int, size_bytes: int, stream: int, *, may_wait: bool = False
    ) -> None:
        """Queue a copy between addresses of any kind. Host memory should be page-locked.

        A copy to host memory that is not returns only when the device has done it. It needs
        `may_wait`, with which other threads have the interpreter during the call.
        """

    def fill(self, target: int, value: int, size_bytes: int, stream: int) -> None:
        """Queue setting each byte of device memory to `value`."""

    def function(self, source: str, name: str) -> Function:
        """The kernel `name`, maybe a template with its arguments, of this program text.

        Compiled at first use and kept, on disk as well.
        """

    def array(
        self,
        address: int,
        shape: tuple[int, ...],
        dtype: np.dtype,
        strides: tuple[int, ...] | None,
        owner: Any,
        size_bytes: int,
    ) -> Any:
        """An array of `xp` over device memory that `owner` keeps alive."""

    def using(self, stream: int) -> AbstractContextManager[Any]:
        """Let operations of `xp` go to `stream`, in the calling thread."""


WITHOUT_GPU = (
    "Without a GPU, build the pipeline with device_id=None and leave out `.gpu()` and "
    'device="gpu"; or have the program run on the CPU as it is, with device_id="auto" or '
    "HEADRACE_GPU=never."
)
"""The way out, with which errors end."""

_lock = threading.Lock()
_runtimes: dict[int, Runtime] = {}
_make: Callable[[int], Runtime] | None = None
_current: Callable[[], int] | None = None
_is_available: bool | None = None
_is_fork = False
"""True if this process was forked from one that used a GPU."""


def forked_error() -> GpuNotAvailableError:
    """Return the error for using CUDA in a fork of a process that used it."""
    return GpuNotAvailableError(
        f"This process ({os.getpid()}) was forked from one that had used CUDA, which then does not "
        "work in it. Fork before the first use of the GPU, or start the process another way: "
        '`multiprocessing.get_context("spawn")`, or `"forkserver"`; for '
        'PyTorch\'s loader `multiprocessing_context="spawn"`.'
    )


def is_off() -> bool:
    """Return True if the user turned GPUs off: GPU work then runs on the CPU."""
    return GPU.value() == "never"


def _check_process() -> None:
    if is_off():
        raise GpuNotAvailableError(
            f"The environment variable {GPU.name} is 'never': no GPU may be used."
        )
    if _is_fork:
        raise forked_error()


def _note_fork() -> None:
    global _is_fork
    _is_fork = _is_fork or bool(_runtimes)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_note_fork)


def get_runtime(device_id: int) -> Runtime:
    """The runtime of GPU number `device_id`, made at first use."""
    runtime = None if _is_fork else _runtimes.get(device_id)
    if runtime is None:
        _check_process()
        with _lock:
            runtime = _runtimes.get(device_id)
            if runtime is None:
                make = _make
                if make is None:
                    from headrace.tensors.gpu.cuda import CudaRuntime

                    make = CudaRuntime
                runtime = _runtimes[device_id] = make(device_id)
    return runtime


def check_available() -> None:
    """Check that pipelines can run on a GPU here."""
    _check_process()
    if not _runtimes and _make is None:
        from headrace.tensors.gpu.cuda import check_cuda

        check_cuda()


def is_available() -> bool:
    """Return True if pipelines can run on a GPU here; checked once."""
    global _is_available
    if _is_available is None:
        try:
            check_available()
            _is_available = True
        except GpuNotAvailableError:
            _is_available = False
    return _is_available


def install_runtime(
    make: Callable[[int], Runtime] | None, current: Callable[[], int] | None = None
) -> None:
    """Have runtimes made by `make`, in place of CUDA's; `None` for CUDA again. For tests.

    `current` tells which device is the calling thread's current one, where there are several.
    What was made by another before must not be in use any more.
    """
    global _make, _current, _is_available, _is_fork
    with _lock:
        _is_available = None
        _is_fork = False
        _make = make
        _current = current
        _runtimes.clear()


def device_count() -> int:
    """Number of GPUs; 0 where CUDA does not answer."""
    if not is_available():
        return 0
    if _make is not None:
        return max(1, len(_runtimes))
    from headrace.tensors.gpu.cuda import check_cuda

    return int(check_cuda().cuda.runtime.getDeviceCount())


def current_device() -> int:
    """Number of the calling thread's current GPU."""
    _check_process()
    if _make is not None:
        return min(_runtimes, default=0) if _current is None else _current()
    from headrace.tensors.gpu.cuda import check_cuda

    return int(check_cuda().cuda.runtime.getDevice())


def device_of(address: int) -> int:
    """Number of the GPU whose memory is at `address`."""
    if _make is not None:
        return min(_runtimes, default=0)
    from headrace.tensors.gpu.cuda import check_cuda

    return int(check_cuda().cuda.runtime.pointerGetAttributes(address).device)
