"""A GPU that is the CPU: `headrace.tensors.gpu.runtime.Runtime` for tests."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from tests.support.gpu.cpu_functions import CpuFunction, KernelError, cpu_function
from tests.support.gpu.memory import Memory, Piece
from tests.support.gpu.recording import record
from tests.support.gpu.streams import LOCK, LateEvent, LateStream, Work, run_until, synchronize

_STREAM_NUMBERS = iter(range(0x5000, 1 << 31))
"""Streams of all devices have numbers of their own."""
_LEGACY, _PER_THREAD = 1, 2
"""Default streams: of the device, and of the device and the thread."""


class EmulatedFunction:
    """A kernel that queues itself."""

    def __init__(self, runtime: EmulatedRuntime, function: CpuFunction) -> None:
        self._runtime = runtime
        self._function = function

    def __call__(
        self,
        grid: tuple[int, int, int],
        block: tuple[int, int, int],
        args: tuple[Any, ...],
        shared_bytes: int,
        stream: int,
    ) -> None:
        """Check the launch and queue it."""
        function, runtime = self._function, self._runtime
        function.check_launch(grid, block, shared_bytes)
        packed = function.packed(args)
        pointers = [int(a) for a, kind in zip(args, function.kinds, strict=True) if kind == "p"]
        addresses = [address for address in pointers if address]
        pieces = runtime._named(function.name, addresses)
        runtime.launches.append(function.name)
        runtime._give(
            stream,
            f"launch of {function.name}",
            lambda: function.run(grid, block, packed, shared_bytes),
            tuple(piece.address for piece in pieces),
            [(piece, address, 1) for piece, address in zip(pieces, addresses, strict=True)],
        )


_CURRENT = threading.local()
"""The GPU that is current in the calling thread, as `runtime`: one at a time, as with CUDA."""


def current_emulated() -> int:
    """Number of the GPU that is current in the calling thread."""
    runtime = getattr(_CURRENT, "runtime", None)
    return 0 if runtime is None else runtime.device_id


class EmulatedRuntime:
    """One GPU.

    Device memory is memory of the host, and NumPy its array module.

    Parameters
    ----------
    device_id
        Its number.
    late
        Whether work waits until somebody has to see it; else it is done when it is queued.
    memory_bytes
        How much device memory there is.

    Attributes
    ----------
    launches
        Names of the kernels launched so far, the last 10000.
    errors
        What went wrong while queued work ran, wherever it was raised.
    """

    name = "emulated GPU"
    compute_capability = (9, 0)
    multiprocessors = 132
    xp = np

    def __init__(
        self, device_id: int = 0, *, late: bool = True, memory_bytes: int = 4 << 30
    ) -> None:
        self.device_id = device_id
        self.late = late
        self.memory_bytes = memory_bytes
        self.launches: deque[str] = deque(maxlen=10000)
        self.errors: list[BaseException] = []
        self._memory = Memory()
        self._streams: dict[Any, LateStream] = {}
        """By number; those of threads by number and thread."""
        self._idle: list[int] = []

    # Threads

    def activate(self) -> None:
        """Let the calling thread queue work here."""
        _CURRENT.runtime = self

    @contextlib.contextmanager
    def active(self) -> Iterator[None]:
        """The same for the length of a ``with``."""
        before = getattr(_CURRENT, "runtime", None)
        _CURRENT.runtime = self
        try:
            yield
        finally:
            _CURRENT.runtime = before

    # Streams

    def acquire_stream(self) -> int:
        """A stream for the caller alone."""
        with LOCK:
            return self._idle.pop() if self._idle else self.new_stream(blocking=False)

    def release_stream(self, stream: int) -> None:
        """Take back a stream."""
        with LOCK:
            assert stream not in self._idle, "a stream is released that nobody has"
            self._idle.append(stream)

    def new_stream(self, *, blocking: bool) -> int:
        """A stream of a user's, who may destroy it; `blocking`: it and the legacy default stream
        wait for one another.
        """
        with LOCK:
            number = next(_STREAM_NUMBERS)
            self._make_stream(number, number, blocking=blocking)
        return number

    def destroy_stream(self, number: int) -> None:
        """Destroy a stream, as CUDA does it: what it has been given is done still."""
        with LOCK:
            run_until(self._streams[number], self._streams[number].queued)
            del self._streams[number]

    def _make_stream(self, key: Any, number: int, *, blocking: bool) -> LateStream:
        eager = 0 if self.late else 1
        found = self._streams[key] = LateStream(number, eager=eager, blocking=blocking)
        return found

    def _stream(self, number: int) -> LateStream:
        """The stream that a number means here and now, behind what it waits for by itself."""
        number = int(number) or _LEGACY
        key = (number, threading.get_ident()) if number == _PER_THREAD else number
        found = self._streams.get(key)
        if found is None:
            if number > _PER_THREAD:
                raise KernelError(
                    f"GPU {self.device_id} has no stream {number:#x}, or not any more"
                )
            found = self._make_stream(key, number, blocking=number == _PER_THREAD)
        if number == _LEGACY:
            others = [other for other in self._streams.values() if other.blocking]
        elif found.blocking:
            others = [other for key, other in self._streams.items() if key == _LEGACY]
        else:
            others = []
        for other in others:
            if not found.is_behind(other, other.queued):
                found.give(Work("wait", None, LateEvent(other), ()))
        return found

    def _check_current(self, what: str) -> None:
        if getattr(_CURRENT, "runtime", None) is not self:
            raise KernelError(f"{what}: GPU {self.device_id} is not current in this thread")

    def record(self, stream: int) -> LateEvent:
        """An event behind all work of `stream` so far."""
        self._check_current("record")
        with LOCK:
            return LateEvent(self._stream(stream))

    def wait(self, stream: int, event: Any) -> None:
        """Let work that follows on `stream` start behind `event`."""
        self._check_current("wait")
        with LOCK:
            self._stream(stream).give(Work("wait", None, event, ()))

    def synchronize(self, stream: int) -> None:
        """Run all work of `stream`."""
        self._check_current("synchronize")
        with LOCK:
            synchronize(self._stream(stream))

    def _give(
        self,
        number: int,
        what: str,
        run: Callable[[], None],
        memory: tuple[int, ...],
        reads: Sequence[tuple[Piece, int, int]] = (),
        writes: Sequence[tuple[Piece, int, int]] = (),
    ) -> None:
        """Queue work; `reads` and `writes` are pieces, and the addresses and sizes there."""
        self._check_current(what)

        def noted() -> None:
            try:
                run()
            except BaseException as error:
                self.errors.append(error)
                raise

        with LOCK:
            stream = self._stream(number)
            for piece, begin, size_bytes in (*reads, *writes):
                piece.check_order(stream, begin, size_bytes, what)
            stream.give(Work(what, noted, None, memory))
            for piece, begin, size_bytes in writes:
                piece.note_write(stream, begin, size_bytes, what)

    # Memory

    def allocate(self, size_bytes: int) -> int:
        """New device memory, filled with a pattern."""
        with LOCK:
            if self._memory.device_bytes + size_bytes > self.memory_bytes:
                raise MemoryError(f"the emulated device has no memory for {size_bytes} bytes")
            return self._memory.allocate(size_bytes, "device")

    def free(self, address: int) -> None:
        """Take device memory back, which no queued work may name any more."""
        self._free(address, "device")

    def allocate_pinned(self, size_bytes: int) -> int:
        """New host memory, filled with a pattern."""
        with LOCK:
            return self._memory.allocate(size_bytes, "pinned")

    def free_pinned(self, address: int) -> None:
        """Take host memory back, which no queued work may name any more."""
        self._free(address, "pinned")

    def is_page_locked(self, address: int) -> bool:
        """Whether host memory is page-locked."""
        with LOCK:
            piece = self._memory.piece(address)
        return piece is not None and piece.kind != "device"

    def register_pinned(self, address: int, size_bytes: int) -> None:
        """Know host memory of somebody else."""
        if address % 4096 or size_bytes % 4096:
            raise KernelError(f"{size_bytes} bytes from {address:#x} are not whole pages")
        with LOCK:
            self._memory.register(address, size_bytes)

    def unregister_pinned(self, address: int) -> None:
        """Forget it; no queued work may name it any more."""
        self._free(address, "registered")

    # At the interpreter's end a finalizer may come here after the module's names are gone.
    def _free(self, address: int, kind: str, _lock: threading.RLock = LOCK) -> None:
        with _lock:
            try:
                for stream in self._streams.values():
                    for work in stream.work:
                        if address in work.memory:
                            raise KernelError(
                                f"{kind} memory is freed while the {work.what} is still queued"
                            )
                self._memory.free(address, kind)
            except KernelError as error:  # raised in __del__, it would not be heard
                self.errors.append(error)
                raise

    def _named(self, what: str, addresses: list[int]) -> list[Piece]:
        """The pieces that these addresses are in."""
        with LOCK:
            found = []
            for address in addresses:
                piece = self._memory.piece(address)
                if piece is None:
                    raise KernelError(
                        f"{what}: {address:#x} is neither device memory nor page-locked"
                    )
                found.append(piece)
            return found

    # Copies

    def copy(
        self, target: int, source: int, size_bytes: int, stream: int, *, may_wait: bool = False
    ) -> None:
        """Queue a copy. As with CUDA, one from or to plain host memory does not return before it
        has read or written that.
        """
        what = f"copy of {size_bytes} bytes"
        with LOCK:
            pieces = [self._memory.check_range(a, size_bytes) for a in (target, source)]
            if pieces[0] is None and not may_wait:
                raise KernelError(
                    f"{what} to memory that is not page-locked: no other thread has the "
                    "interpreter until the GPU is there; pass `may_wait`"
                )
            memory = tuple(p.address for p in pieces if p is not None)
            writes, reads = (
                [(piece, address, size_bytes)] if piece is not None else []
                for piece, address in zip(pieces, (target, source), strict=True)
            )
            if pieces[1] is None:
                snapshot = ctypes.create_string_buffer(
                    ctypes.string_at(source, size_bytes), max(size_bytes, 1)
                )
                run = functools.partial(_move, target, snapshot, size_bytes)
            else:
                run = functools.partial(_move, target, source, size_bytes)
            self._give(stream, what, run, memory, reads, writes)
            if pieces[0] is None:
                self.synchronize(stream)

    def fill(self, target: int, value: int, size_bytes: int, stream: int) -> None:
        """Queue setting bytes of device memory."""
        with LOCK:
            piece = self._memory.check_range(target, size_bytes)
            if piece is None or piece.kind != "device":
                raise KernelError(f"fill: {target:#x} is no device memory")
            self._give(
                stream,
                f"fill of {size_bytes} bytes",
                lambda: _set(target, value, size_bytes),
                (piece.address,),
                writes=[(piece, target, size_bytes)],
            )

    # Kernels and arrays

    def function(self, source: str, name: str) -> EmulatedFunction:
        """The kernel `name` of a program, built by g++."""
        record(source, name)
        return EmulatedFunction(self, cpu_function(source, name))

    def array(
        self,
        address: int,
        shape: tuple[int, ...],
        dtype: np.dtype,
        strides: tuple[int, ...] | None,
        owner: Any,
        size_bytes: int,
    ) -> np.ndarray:
        """A NumPy array over device memory. Use it inside `using`, or after `synchronize`."""
        dtype = np.dtype(dtype)
        raw = (ctypes.c_ubyte * max(size_bytes, dtype.itemsize, 1)).from_address(address)
        raw.kept = owner, self  # type: ignore[attr-defined]
        element = np.frombuffer(raw, dtype, 1)
        if strides is None:
            steps = [dtype.itemsize]
            for extent in shape[:0:-1]:
                steps.append(steps[-1] * extent)
            strides = tuple(reversed(steps[: len(shape)]))
        return np.lib.stride_tricks.as_strided(element, shape, strides)

    @contextlib.contextmanager
    def using(self, stream: int) -> Iterator[None]:
        """Let NumPy's operations, which run at once, run behind the work of `stream`."""
        with LOCK:
            found = self._stream(stream)
            synchronize(found)
            found.eager += 1
        try:
            with self.active():
                yield
        finally:
            with LOCK:
                found.eager -= 1

    # For tests

    def pending(self) -> list[str]:
        """What is queued and has not run yet."""
        with LOCK:
            return [work.what for s in self._streams.values() for work in s.work]

    def check(self) -> None:
        """Run everything and raise what went wrong: failed work, overruns, use of freed memory."""
        with LOCK:
            for stream in list(self._streams.values()):
                run_until(stream, stream.queued)
            if self.errors:
                raise self.errors[0]
            self._memory.check()


def _move(target: int, source: Any, size_bytes: int) -> None:
    ctypes.memmove(target, source, size_bytes)


def _set(target: int, value: int, size_bytes: int) -> None:
    ctypes.memset(target, value, size_bytes)
