"""The thread that decodes by the JPEG engines of a device, for all pipelines of the process."""

from __future__ import annotations

import threading
import weakref
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import numpy as np

from headrace.kernels.cpu.semaphores import SEMAPHORE_NUMBERS, semaphores
from headrace.kernels.gpu.decode.engine_lock import engine_lock_at, path_of
from headrace.kernels.gpu.decode.engine_loop import (
    DONE,
    JOB_NUMBERS,
    KIND,
    OTHER,
    RING,
    STATUS,
    serve,
)
from headrace.tensors.gpu.runtime import Runtime

Result = TypeVar("Result")
_POLL_SECONDS = 0.01


class Running:
    """A batch that the engines decode, or will."""

    __slots__ = ("_job", "_owner", "_status")

    def __init__(self, job: np.ndarray, owner: _ThreadState) -> None:
        self._job = job
        self._owner = owner
        self._status: int | None = None

    def wait(self) -> int:
        """Wait, without the interpreter, until it is queued; returns nvJPEG's status."""
        if self._status is None:
            semaphores().wait(self._job.ctypes.data + 8 * DONE)
            self._owner.ended(self._job)
            self._status = int(self._job[STATUS])
        return self._status

    def __del__(self) -> None:
        if self._status is None:  # an error came in between
            self._owner.abandoned.append(self._job)


class _ThreadState:
    """State shared by the thread and those that give it work."""

    def __init__(self, lock: np.ndarray) -> None:
        self.ring = np.zeros(RING, np.uint64)
        self.wake = np.zeros(SEMAPHORE_NUMBERS, np.uint64)
        semaphores().make(self.wake.ctypes.data)
        self.lock = lock
        self.calls: deque[tuple[Future[Any], Callable[[], Any]] | None] = deque()
        """Queue of the functions that jobs of another kind call; `None` ends the thread."""
        self.abandoned: deque[np.ndarray] = deque()
        """Jobs that no thread will wait for."""
        self._kept: dict[int, Any] = {}
        self._room = threading.BoundedSemaphore(RING)
        self._order = threading.Lock()
        self._end = 0

    def submit(self, job: np.ndarray, keep: Any, call: Any = None) -> None:
        """Queue a job; `keep` lives until it is done."""
        self._sweep()
        while not self._room.acquire(timeout=_POLL_SECONDS):
            self._sweep()
        address = job.ctypes.data
        with self._order:
            self._kept[address] = (job, keep)
            if job[KIND] == OTHER:
                self.calls.append(call)
            self.ring[self._end % RING] = address
            self._end += 1
            semaphores().post(self.wake.ctypes.data)

    def _sweep(self) -> None:
        """Release jobs that are done and that no thread waits for."""
        for _ in range(len(self.abandoned)):
            job = self.abandoned.popleft()
            if semaphores().take(job.ctypes.data + 8 * DONE):
                self.ended(job)
            else:
                self.abandoned.append(job)

    def ended(self, job: np.ndarray) -> None:
        """A job is done."""
        del self._kept[job.ctypes.data]
        self._room.release()


class EngineThread:
    """Decodes batches one after the other, and makes other calls that must not come in between."""

    def __init__(self, runtime: Runtime, lock: np.ndarray) -> None:
        self._shared = _ThreadState(lock)
        threading.Thread(
            target=_run,
            args=(self._shared, weakref.ref(runtime)),
            name="headrace-engines",
            daemon=True,
        ).start()
        weakref.finalize(self, self._shared.submit, _other(), None).atexit = False

    def submit(self, job: np.ndarray, keep: Any) -> Running:
        """Have a batch decoded when those before it are.

        `job`: its numbers, uint64 ``(JOB_NUMBERS,)``; see `engine_loop`.
        """
        semaphores().make(job.ctypes.data + 8 * DONE)
        self._shared.submit(job, keep)
        return Running(job, self._shared)

    def call(self, function: Callable[[], Result]) -> Result:
        """The result of `function`, which the thread calls between two batches."""
        future: Future[Result] = Future()
        self._shared.submit(_other(), None, (future, function))
        try:
            return future.result()
        finally:
            del future  # an error's frames would keep what it is about


def _other() -> np.ndarray:
    job = np.zeros(JOB_NUMBERS, np.uint64)
    job[KIND] = OTHER
    return job


def _run(shared: _ThreadState, runtime: weakref.ref[Runtime]) -> None:
    found = runtime()
    if found is None:
        return
    found.activate()
    del found
    position = 0
    while True:
        position = serve(shared.ring, shared.wake, position, shared.lock)
        job, _ = shared._kept[int(shared.ring[(position - 1) % RING])]
        call = shared.calls.popleft()
        if call is None:
            return
        _answer(*call)
        shared.ended(job)
        del job, call


def _answer(future: Future[Any], function: Callable[[], Any]) -> None:
    try:
        future.set_result(function())
    except BaseException as error:  # whatever it is, a thread waits for it
        future.set_exception(error)


_threads: WeakKeyDictionary[Runtime, EngineThread] = WeakKeyDictionary()
_lock = threading.Lock()


def engine_thread(runtime: Runtime) -> EngineThread:
    """The one of a device."""
    with _lock:
        found = _threads.get(runtime)
        if found is None:
            name = _name(runtime)
            lock = engine_lock_at(None if name is None else path_of(name))
            found = _threads[runtime] = EngineThread(runtime, lock)
        return found


def _name(runtime: Runtime) -> str | None:
    """Name of the device in all processes, since each process numbers devices by itself.

    `None` for what is no device of CUDA's, which other processes do not see.
    """
    try:
        name: str = runtime.xp.cuda.runtime.deviceGetPCIBusId(runtime.device_id)
    except AttributeError:
        return None
    return name
