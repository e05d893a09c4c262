"""CuPy and the CUDA driver, as far as `CudaRuntime` calls them, on machines that have neither."""

from __future__ import annotations

import ctypes
import itertools
import os
import sys
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from headrace.tensors.gpu import driver

_CONTEXTS = 0x1000


class CudaCallError(RuntimeError):
    """As CuPy raises it."""

    status = 3


class _Entry:
    """A function of the driver; its types can be set, as those of `ctypes`."""

    def __init__(self, run: Callable[..., int]) -> None:
        self._run = run

    def __call__(self, *args: Any) -> int:
        return self._run(*args)


class FakeCuda:
    """One process' CUDA, with two devices that do nothing.

    `calls`: names of the functions that were called, in order. In a fork of the process each of
    them fails, as with CUDA. `devices_of_events`: the device that each event belongs to: the one
    that was current when it was made. `contexts`: devices that have a context.
    """

    def __init__(self, capability: tuple[int, int] = (9, 0)) -> None:
        self.calls: list[str] = []
        self.devices_of_events: dict[int, int] = {}
        self._process = os.getpid()
        self._capability = capability
        self.contexts: set[int] = set()
        self._current = threading.local()
        self._streams: dict[int, int] = {}
        self._handles = itertools.count(0x100)
        self._pinned: dict[int, Any] = {}
        names = ("memcpyAsync", "memsetAsync", "streamSynchronize", "eventSynchronize")
        self.cupy = SimpleNamespace(
            cuda=SimpleNamespace(
                runtime=SimpleNamespace(
                    CUDARuntimeError=CudaCallError,
                    getDeviceCount=self._runtime("getDeviceCount", lambda: 2),
                    getDeviceProperties=self._runtime("getDeviceProperties", self._properties),
                    setDevice=self._runtime("setDevice", self._set_device),
                    hostAlloc=self._runtime("hostAlloc", self._pin),
                    freeHost=self._runtime("freeHost", self._unpin),
                    hostRegister=self._runtime("hostRegister", lambda *_: None),
                    hostUnregister=self._runtime("hostUnregister", lambda *_: None),
                    **{name: self._runtime(name, lambda *_: None) for name in names},
                ),
                Stream=self._stream,
            )
        )

    def _runtime(self, name: str, run: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any) -> Any:
            self.calls.append(name)
            if os.getpid() != self._process:
                raise CudaCallError("cudaErrorInitializationError: initialization error")
            return run(*args)

        return call

    def __getattr__(self, name: str) -> _Entry:
        """An entry point of the driver."""
        if not name.startswith("cu"):
            raise AttributeError(name)

        def run(*args: Any) -> int:
            self.calls.append(name)
            if os.getpid() != self._process:
                return 3  # CUDA_ERROR_NOT_INITIALIZED
            if name == "cuCtxGetCurrent":
                args[0].value = self.current_context
            elif name == "cuCtxSetCurrent":
                self._current.context = args[0]
            elif name == "cuDevicePrimaryCtxRetain":
                args[0]._obj.value = self._context_of(args[1])
            elif name == "cuStreamGetCtx":
                args[1]._obj.value = self._streams.get(args[0], _CONTEXTS)
            elif name == "cuEventRecord":
                event, stream = args
                there = self._streams.get(stream)
                if there not in (None, _CONTEXTS + self.devices_of_events[event]):
                    return 400  # CUDA_ERROR_INVALID_HANDLE
            elif name == "cuEventCreate":
                if not self.current_context:
                    return 201  # CUDA_ERROR_INVALID_CONTEXT
                made = args[0]._obj.value = next(self._handles)
                self.devices_of_events[made] = self.current_context - _CONTEXTS
            return 0

        return _Entry(run)

    def _stream(self, **_: Any) -> SimpleNamespace:
        made = SimpleNamespace(ptr=next(self._handles))
        self._streams[made.ptr] = self.current_context
        return made

    @property
    def current_context(self) -> int:
        """The calling thread's; 0 if it has none."""
        return getattr(self._current, "context", 0)

    def _context_of(self, number: int) -> int:
        self.contexts.add(number)
        return _CONTEXTS + number

    def _set_device(self, number: int) -> None:
        self._current.context = self._context_of(number)

    def _properties(self, number: int) -> dict[str, Any]:
        major, minor = self._capability
        return {"name": b"fake", "major": major, "minor": minor, "multiProcessorCount": 1}

    def _pin(self, size_bytes: int, flags: int) -> int:
        memory = ctypes.create_string_buffer(size_bytes)
        address = ctypes.addressof(memory)
        self._pinned[address] = memory
        return address

    def _unpin(self, address: int) -> None:
        del self._pinned[address]


def install_fake_cuda(patch: pytest.MonkeyPatch) -> FakeCuda:
    """Let `CudaRuntime` find a `FakeCuda`."""
    found = FakeCuda()
    patch.setitem(sys.modules, "cupy", found.cupy)
    patch.setattr(driver, "_library", lambda: found)
    return found
