"""`Runtime` for NVIDIA GPUs, by way of CuPy: the one place that imports it."""

from __future__ import annotations

import contextlib
import os
import threading
import weakref
from collections.abc import Iterator
from pathlib import Path
from sys import is_finalizing
from typing import Any

import numpy as np

from headrace._optional import import_optional
from headrace.config import chosen_cache_folder
from headrace.errors import ArgumentValueError, GpuNotAvailableError, MissingDependencyError
from headrace.kernel_cache import writable_folder
from headrace.tensors.gpu.driver import CudaError, Driver, Launch
from headrace.tensors.gpu.nvrtc import architecture, compiled
from headrace.tensors.gpu.runtime import WITHOUT_GPU, forked_error, get_runtime

_INSTALL = "headrace[cuda13]"
_SMALL_BYTES = 1 << 16
_HOST_MEMORY = 1  # cudaMemoryTypeHost; of ordinary memory it is 0
"""Copies of so little return at once, even from memory that is not page-locked. To such memory no
copy does.
"""
_DEFAULT_COPY = 4  # cudaMemcpyDefault: the addresses tell what they are
_PORTABLE = 1  # cudaHostAllocPortable, cudaHostRegisterPortable
_MAPPED = 2  # cudaHostRegisterMapped
_OUT_OF_MEMORY = 2  # cudaErrorMemoryAllocation
_NOT_INITIALISED = 3  # cudaErrorInitializationError
_NOTHING = contextlib.nullcontext()


def check_cuda() -> Any:
    """CuPy, if it finds a driver and a device."""
    try:
        cupy = import_optional("cupy", purpose="Running on a GPU", install=_INSTALL)
    except MissingDependencyError as error:
        raise GpuNotAvailableError(
            f"{error} (Drivers for CUDA 12 want `headrace[cuda12]`.) {WITHOUT_GPU}"
        ) from error
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        if error.status == _NOT_INITIALISED:
            raise forked_error() from error
        raise GpuNotAvailableError(
            f"CuPy is installed but CUDA does not answer: {error}. Running on a GPU needs an "
            "NVIDIA driver (580 or later for CUDA 13; `nvidia-smi` shows it) and, in a "
            f"container, the NVIDIA container toolkit (`--gpus all`). {WITHOUT_GPU}"
        ) from error
    if not count:
        raise GpuNotAvailableError(
            f"The NVIDIA driver finds no GPU (is CUDA_VISIBLE_DEVICES empty?). {WITHOUT_GPU}"
        )
    _place_compiled_code()
    return cupy


def _place_compiled_code() -> None:
    """Have CuPy keep the code it compiles, for operators written with it, where we keep ours.

    CuPy asks the environment each time. A folder that the user gave to it stays; its own, below
    the home, stays as long as files can be written there: CuPy fails without one.
    """
    if "CUPY_CACHE_DIR" in os.environ:
        return
    own = Path(os.path.expanduser("~"), ".cupy", "kernel_cache")
    chosen = chosen_cache_folder("cupy")
    folder = writable_folder(chosen or own, "cupy")
    if folder is not None and folder != own:
        os.environ["CUPY_CACHE_DIR"] = str(folder)


class CudaEvent:
    """An event without timing."""

    __slots__ = ("_runtime", "address")

    def __init__(self, runtime: CudaRuntime, address: int) -> None:
        self._runtime = runtime
        self.address = address

    def done(self) -> bool:
        """True if the device has reached it."""
        return self._runtime.driver.passed(self.address)

    def synchronize(self) -> None:
        """Wait until the device has reached it."""
        if not self.done():
            self._runtime.api.eventSynchronize(self.address)

    def __del__(self) -> None:
        # No call of CUDA and no name of a module: the interpreter may be ending, or be a fork.
        self._runtime.driver.give_back_event(self.address)


class CudaRuntime:
    """One NVIDIA GPU."""

    def __init__(self, device_id: int) -> None:
        cupy = self.xp = check_cuda()
        self.api = cupy.cuda.runtime
        count = self.api.getDeviceCount()
        if not 0 <= device_id < count:
            raise ArgumentValueError(
                f"`device_id` is {device_id}, but this process sees {count} GPU"
                f"{'s: numbers 0 to ' + str(count - 1) if count > 1 else ': number 0'}. "
                "CUDA_VISIBLE_DEVICES says which these are."
            )
        self.device_id = device_id
        properties = self.api.getDeviceProperties(device_id)
        self.name = properties["name"].decode()
        self.compute_capability = (properties["major"], properties["minor"])
        self.multiprocessors: int = properties["multiProcessorCount"]
        self._lock = threading.Lock()
        self._idle_streams: list[Any] = []
        self._streams: dict[int, Any] = {}
        self._functions: dict[tuple[str, str], Launch] = {}
        self._modules: list[Any] = []
        """Modules that the kernels are part of."""
        self.driver = Driver(self.activate)
        self._context = 0
        """Driver's handle of the device's context, once it has been used."""
        self._is_ending = is_finalizing  # the names of modules are gone before the last objects
        _every.add(self)

    def close(self) -> None:
        """Have every further call raise, but for those that give something back."""
        self._lock = threading.Lock()  # a thread that is not in this process may have it
        self.driver.close(forked_error)
        self.api = self.xp = _Closed()

    def activate(self) -> None:
        """Make this the current device of the calling thread."""
        self.api.setDevice(self.device_id)
        self._context = self.driver.current_context()

    def active(self) -> Any:
        """The same for the length of a ``with``."""
        if self._context and self.driver.current_context() == self._context:
            return _NOTHING  # it is current already, as nearly always
        if not self._context:
            self._context = self.driver.context_of(self.device_id)
        return self.driver.active(self._context)

    def acquire_stream(self) -> int:
        """A non-blocking stream for the caller alone."""
        with self._lock:
            if self._idle_streams:
                stream = self._idle_streams.pop()
            else:
                with self.active():
                    stream = self.xp.cuda.Stream(non_blocking=True)
                self._streams[stream.ptr] = stream
        return stream.ptr  # type: ignore[no-any-return]

    def release_stream(self, stream: int) -> None:
        """Take back a stream."""
        with self._lock:
            self._idle_streams.append(self._streams[stream])

    def record(self, stream: int) -> CudaEvent:
        """Record an event after all work queued on `stream` so far."""
        address = self.driver.idle_event()
        if address is None:
            with self.active():  # it belongs to the device that is current
                address = self.driver.new_event()
        event = CudaEvent(self, address)
        try:
            self.driver.record(address, stream)
        except CudaError:
            other = self._owner_of(stream)
            if other is None:
                raise
            return other.record(stream)
        return event

    def _owner_of(self, stream: int) -> CudaRuntime | None:
        """The runtime of another device that a stream of the user's belongs to, if it does."""
        context = self.driver.context_of_stream(stream)
        for number in range(self.api.getDeviceCount()):
            if number != self.device_id and self.driver.context_of(number) == context:
                return get_runtime(number)  # type: ignore[return-value]
        return None

    def wait(self, stream: int, event: Any) -> None:
        """Make later work on `stream` wait for `event`."""
        self.driver.wait(stream, event.address)

    def synchronize(self, stream: int) -> None:
        """Wait for all work of `stream`."""
        self.api.streamSynchronize(stream)

    def allocate(self, size_bytes: int) -> int:
        """Address of new device memory."""
        try:
            with self.active():
                return self.api.malloc(size_bytes)  # type: ignore[no-any-return]
        except self.api.CUDARuntimeError as error:
            if error.status == _OUT_OF_MEMORY:
                raise MemoryError(str(error)) from error
            raise

    def free(self, address: int) -> None:
        """Give device memory back to the driver."""
        if not (self.driver.is_closed or self._is_ending()):
            with self.active():
                self.api.free(address)

    def allocate_pinned(self, size_bytes: int) -> int:
        """Address of new page-locked host memory."""
        with self.active():
            return self.api.hostAlloc(size_bytes, _PORTABLE)  # type: ignore[no-any-return]

    def free_pinned(self, address: int) -> None:
        """Give page-locked memory back."""
        if not (self.driver.is_closed or self._is_ending()):
            self.api.freeHost(address)

    def is_page_locked(self, address: int) -> bool:
        """Return True if host memory is page-locked."""
        return int(self.api.pointerGetAttributes(address).type) == _HOST_MEMORY

    def register_pinned(self, address: int, size_bytes: int) -> None:
        """Page-lock memory of another owner."""
        with self.active():
            self.api.hostRegister(address, size_bytes, _PORTABLE | _MAPPED)

    def unregister_pinned(self, address: int) -> None:
        """Let go of such memory."""
        if not (self.driver.is_closed or self._is_ending()):
            self.api.hostUnregister(address)

    def copy(
        self, target: int, source: int, size_bytes: int, stream: int, *, may_wait: bool = False
    ) -> None:
        """Queue a copy; with `may_wait`, other threads have the interpreter meanwhile."""
        if size_bytes <= _SMALL_BYTES and not may_wait:
            self.driver.copy(target, source, size_bytes, stream)
        else:
            self.api.memcpyAsync(target, source, size_bytes, _DEFAULT_COPY, stream)

    def fill(self, target: int, value: int, size_bytes: int, stream: int) -> None:
        """Queue setting each byte of device memory to `value`."""
        self.api.memsetAsync(target, value, size_bytes, stream)

    def function(self, source: str, name: str) -> Launch:
        """The kernel `name` of a program; compiled at first use, and kept on disk."""
        key = source, name
        found = self._functions.get(key)
        if found is None:
            with self._lock, self.active():
                found = self._functions.get(key)
                if found is None:
                    code, symbol = compiled(source, name, architecture(self.compute_capability))
                    module = self.xp.cuda.function.Module()
                    module.load(code)
                    self._modules.append(module)
                    number = module.get_function(symbol).ptr
                    found = self._functions[key] = Launch(self.driver, number)
        return found

    def array(
        self,
        address: int,
        shape: tuple[int, ...],
        dtype: np.dtype,
        strides: tuple[int, ...] | None,
        owner: Any,
        size_bytes: int,
    ) -> Any:
        """A CuPy array over device memory that `owner` keeps alive."""
        cuda = self.xp.cuda
        memory = cuda.UnownedMemory(address, max(size_bytes, 1), owner, self.device_id)
        return self.xp.ndarray(shape, dtype, cuda.MemoryPointer(memory, 0), strides)

    @contextlib.contextmanager
    def using(self, stream: int) -> Iterator[None]:
        """Let CuPy's operations go to `stream`."""
        with self.active(), self._streams[stream]:
            yield


class _Closed:
    """In place of a library that must not be used any more."""

    def __getattr__(self, name: str) -> Any:
        raise forked_error()


_every: weakref.WeakSet[CudaRuntime] = weakref.WeakSet()


def _close_all() -> None:
    for runtime in list(_every):
        runtime.close()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_all)
