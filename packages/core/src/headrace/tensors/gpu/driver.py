"""Calls of the CUDA driver that take a microsecond, made without letting go of the interpreter.

CuPy lets other threads have the interpreter during each call. For a call that only queues work
this costs far more than the call: the thread has to get the interpreter back, from a thread that
has just woken up and would have had its turn soon anyway. What may really wait (synchronising,
allocating, copies from memory that is not page-locked) goes through CuPy.
"""

from __future__ import annotations

import contextlib
import ctypes
import struct
import threading
from collections import deque
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from headrace.errors import HeadraceError

_NOT_READY = 600
INVALID_CONTEXT = 201
_DISABLE_TIMING = 2
_MOST_DYNAMIC_SHARED_BYTES = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
_COMMON_SHARED_BYTES = 16 << 10
"""Shared memory that every kernel may ask for, beside what it has itself, without saying so before.
"""
_LIBRARIES = ("libcuda.so.1", "nvcuda.dll")
_FORMATS = {"u8": "Q", "i8": "q", "f8": "d", "u4": "I4x", "i4": "i4x", "f4": "f4x"}
_FORMATS |= {"u2": "H6x", "i2": "h6x", "u1": "B7x", "i1": "b7x", "b1": "?7x"}

_handle = ctypes.c_size_t
_unsigned = ctypes.c_uint


class CudaError(HeadraceError, RuntimeError):
    """The CUDA driver refused a call, or reports that earlier work failed."""


class EventFunctions(NamedTuple):
    """Events for code that is compiled: the current device's."""

    make: Callable[[], int]
    destroy: Callable[[int], Any]
    record: int
    """Address of the function that takes an event and a stream."""
    synchronize: int
    """Address of the function that waits for an event."""


class Driver:
    """The driver's entry points."""

    def __init__(self, activate: Any, library: Any = None) -> None:
        library = _library() if library is None else library
        self._activate = activate
        self._idle_events: deque[int] = deque()
        self.is_closed = False

        def entry(name: str, *types: Any) -> Any:
            function = getattr(library, name)
            function.argtypes = types
            function.restype = ctypes.c_int
            return function

        self._copy = entry("cuMemcpyAsync", _handle, _handle, _handle, _handle)
        self._create = entry("cuEventCreate", ctypes.POINTER(_handle), _unsigned)
        self._destroy = entry("cuEventDestroy_v2", _handle)
        self._record = entry("cuEventRecord", _handle, _handle)
        self._query = entry("cuEventQuery", _handle)
        self._synchronize = entry("cuEventSynchronize", _handle)
        self._wait = entry("cuStreamWaitEvent", _handle, _handle, _unsigned)
        self.launch_entry = entry(
            "cuLaunchKernel", _handle, *[_unsigned] * 7, _handle, ctypes.c_void_p, ctypes.c_void_p
        )
        self._set_attribute = entry(
            "cuFuncSetAttribute", ctypes.c_size_t, ctypes.c_int, ctypes.c_int
        )
        self._current = entry("cuCtxGetCurrent", ctypes.POINTER(_handle))
        self._set_current = entry("cuCtxSetCurrent", _handle)
        self._context_of_stream = entry("cuStreamGetCtx", _handle, ctypes.POINTER(_handle))
        self._retain = entry("cuDevicePrimaryCtxRetain", ctypes.POINTER(_handle), ctypes.c_int)
        self._describe = entry("cuGetErrorString", ctypes.c_int, ctypes.POINTER(ctypes.c_char_p))

    def close(self, error: Callable[[], Exception]) -> None:
        """Have every further call of an entry point raise `error`."""

        def refused(*args: Any) -> int:
            raise error()

        self.is_closed = True
        vars(self).update({name: refused for name, value in vars(self).items() if callable(value)})

    def current_context(self) -> int:
        """The calling thread's current context; 0 if it has none."""
        context = _handle()
        self._current(context)
        return context.value

    def context_of(self, device_id: int) -> int:
        """The context that the CUDA runtime has for a device; made if need be, and kept."""
        context = _handle()
        self.call(self._retain, ctypes.byref(context), device_id)
        return context.value

    def context_of_stream(self, stream: int) -> int:
        """The context that a stream belongs to."""
        context = _handle()
        self.call(self._context_of_stream, stream, ctypes.byref(context))
        return context.value

    @contextlib.contextmanager
    def active(self, context: int) -> Iterator[None]:
        """Make a context current in the calling thread, and then the one that was, be it none.

        To go back by the number of the device would make a context of device 0, half a gigabyte,
        in each process in which a thread of its own has not chosen any.
        """
        before = self.current_context()
        self.call(self._set_current, context)
        try:
            yield
        finally:
            self.call(self._set_current, before)

    def call(self, function: Any, *args: Any) -> None:
        """Call an entry point."""
        status = function(*args)
        if status == INVALID_CONTEXT:
            self._activate()
            status = function(*args)
        if status:
            raise CudaError(self.described(status))

    def described(self, status: int) -> str:
        """Return the driver's text for a status."""
        text = ctypes.c_char_p()
        self._describe(status, ctypes.byref(text))
        return f"CUDA error {status}: {(text.value or b'unknown').decode()}"

    def copy(self, target: int, source: int, size_bytes: int, stream: int) -> None:
        """Queue a copy."""
        if self._copy(target, source, size_bytes, stream):
            self.call(self._copy, target, source, size_bytes, stream)

    def idle_event(self) -> int | None:
        """An event that was given back, if there is one."""
        try:
            return self._idle_events.pop()
        except IndexError:
            return None

    def allow_shared(self, function: int, size_bytes: int) -> None:
        """Allow launches of a kernel to ask for so much shared memory."""
        self.call(self._set_attribute, function, _MOST_DYNAMIC_SHARED_BYTES, size_bytes)

    def new_event(self) -> int:
        """An event without timing, of the current device."""
        event = _handle()
        self.call(self._create, ctypes.byref(event), _DISABLE_TIMING)
        return event.value

    def queueing_entries(self) -> tuple[int, int]:
        """Addresses of the functions that queue a copy and a launch, for compiled code."""
        copy, launch = (
            ctypes.cast(f, ctypes.c_void_p).value or 0 for f in (self._copy, self.launch_entry)
        )
        return copy, launch

    def event_functions(self) -> EventFunctions:
        """Return the addresses with which compiled code works with events."""
        record, synchronize = (
            ctypes.cast(f, ctypes.c_void_p).value or 0 for f in (self._record, self._synchronize)
        )
        return EventFunctions(self.new_event, self._destroy, record, synchronize)

    def give_back_event(self, event: int) -> None:
        """Take an event back, also one that has not passed: what waits for it waits for what was
        recorded when it was told to.

        It is kept for the next who wants one. Events are given back by the garbage collector, also
        where the driver must not be called.
        """
        self._idle_events.append(event)

    def record(self, event: int, stream: int) -> None:
        """Record an event after the work queued on `stream`."""
        if self._record(event, stream):
            self.call(self._record, event, stream)

    def passed(self, event: int) -> bool:
        """Return True if the device has reached an event."""
        status: int = self._query(event)
        if status in (0, _NOT_READY):
            return status == 0
        self.call(self._query, event)
        return True

    def wait(self, stream: int, event: int) -> None:
        """Let `stream` wait for an event."""
        if self._wait(stream, event, 0):
            self.call(self._wait, stream, event, 0)


class Launch:
    """A kernel and room for its arguments."""

    __slots__ = (
        "_arguments",
        "_driver",
        "_format",
        "_lock",
        "_pointers",
        "_shared",
        "_types",
        "handle",
    )

    def __init__(self, driver: Driver, function: int) -> None:
        self._driver = driver
        self.handle = function
        self._lock = threading.Lock()
        self._shared = _COMMON_SHARED_BYTES
        self._types: tuple[Any, ...] | None = None
        self._format: struct.Struct
        self._arguments: Any
        self._pointers: Any

    def _prepare(self, types: tuple[Any, ...]) -> None:
        size = max(len(types), 1)
        self._arguments = (ctypes.c_uint64 * size)()
        base = ctypes.addressof(self._arguments)
        self._pointers = (ctypes.c_void_p * size)(*(base + 8 * k for k in range(size)))
        self._format = struct.Struct("=" + "".join(_format(t) for t in types))
        self._types = types

    def __call__(
        self,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        args: tuple[Any, ...],
        shared_bytes: int,
        stream: int,
    ) -> None:
        """Queue a launch; `args` are NumPy scalars of the types of the kernel's parameters."""
        types = tuple(map(type, args))
        with self._lock:  # two threads may use one kernel
            if types != self._types:
                self._prepare(types)
            if shared_bytes > self._shared:
                self._driver.allow_shared(self.handle, shared_bytes)
                self._shared = shared_bytes
            self._format.pack_into(self._arguments, 0, *args)
            entry, end = self._driver.launch_entry, (shared_bytes, stream, self._pointers, None)
            # A refused call is made once more, where the reason is found and mended.
            if entry(self.handle, *grid, *block, *end):
                self._driver.call(entry, self.handle, *grid, *block, *end)


@cache
def _format(scalar: Any) -> str:
    return _FORMATS[np.dtype(scalar).str[1:]]


@cache
def _library() -> ctypes.PyDLL:
    for name in _LIBRARIES:
        try:
            return ctypes.PyDLL(name)
        except OSError as error:
            failed = error
    raise CudaError(f"The library of the CUDA driver cannot be loaded: {failed}.")
