"""Evaluation contexts: whose threads and whose stream the work of a call goes to."""

from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING, Any, Self

from headrace.errors import ArgumentTypeError, ArgumentValueError, UsageError
from headrace.experimental.dynamic.checkpoint import Checkpoint
from headrace.experimental.dynamic.devices import Device
from headrace.experimental.dynamic.evaluators import Evaluator
from headrace.experimental.dynamic.modes import THREAD
from headrace.experimental.dynamic.streams import Stream, as_stream, set_stream_of
from headrace.experimental.dynamic.thread_pools import ThreadPool, get_num_threads
from headrace.tracebacks import public_methods

if TYPE_CHECKING:
    from headrace.experimental.dynamic.invocations import Invocation


@public_methods
class EvalContext:
    """Threads and a stream for the work of calls.

    Each thread of Python has a context of its own, so that loops in several threads do not get in
    each other's way. Another one is in force for the length of a ``with``, at the end of which all
    work is done.

    Parameters
    ----------
    num_threads
        How many threads work on one batch; `get_num_threads()` when not given.
    device_id
        Number of the GPU; that of the current device when not given.
    cuda_stream
        Stream for work on the GPU: a `Stream`, or what one can be made of. One of its own when not
        given.
    thread_pool
        Threads to share with other contexts, instead of `num_threads`.

    Raises
    ------
    ArgumentValueError
        If both `num_threads` and `thread_pool` are given, or the pool belongs to another GPU.
    """

    def __init__(
        self,
        *,
        num_threads: int | None = None,
        device_id: int | None = None,
        cuda_stream: Any = None,
        thread_pool: ThreadPool | None = None,
    ) -> None:
        if num_threads is not None and thread_pool is not None:
            raise ArgumentValueError(
                "`num_threads` and `thread_pool` exclude one another: the pool has its threads."
            )
        self._device = Device.current() if device_id is None else Device("gpu", device_id)
        self._device_id = self._device.device_id
        if thread_pool is not None and thread_pool.device_id != self._device_id:
            raise ArgumentValueError(
                f"`thread_pool` belongs to device {thread_pool.device_id}, the context to device "
                f"{self._device_id}."
            )
        self._own_pool = thread_pool is None
        self._num_threads = num_threads
        if thread_pool is None:
            thread_pool = ThreadPool(num_threads, device_id=self._device_id)
        self._stream = as_stream(cuda_stream, self._device_id) or set_stream_of(self._device_id)
        self._is_default = False
        self._evaluator = Evaluator(thread_pool, self._device_id)
        if self._stream is not None:
            self._evaluator.set_stream(self._stream)
        self._deferred: weakref.WeakSet[Invocation] = weakref.WeakSet()
        self._thread: int | None = None
        self._depth = 0
        self._lock = threading.Lock()
        self._checkpoint: Checkpoint | None = None
        weakref.finalize(self, self._evaluator.close).atexit = False

    @staticmethod
    def current() -> EvalContext:
        """The context in force in the calling thread."""
        found = THREAD.context
        return found if found is not None else EvalContext.default()

    @staticmethod
    def default() -> EvalContext:
        """The calling thread's own context for the current device."""
        number = Device.current().device_id
        found = THREAD.defaults.get(number)
        if found is None:
            found = THREAD.defaults[number] = EvalContext(device_id=number)
            found._is_default = True
        if number is not None:
            found._follow()
        return found

    @property
    def device_id(self) -> int | None:
        """Number of the GPU; `None` for none."""
        return self._device_id

    @property
    def num_threads(self) -> int:
        """Number of threads that work on one batch."""
        return self.thread_pool.num_threads

    @property
    def thread_pool(self) -> ThreadPool:
        """The threads."""
        pool = self._evaluator.pool
        if self._own_pool and self._num_threads is None:
            wanted = get_num_threads()
            if pool.num_threads != wanted:
                pool = self._evaluator.pool = ThreadPool(wanted, device_id=self._device_id)
        return pool

    @property
    def cuda_stream(self) -> Stream | None:
        """Stream for work on the GPU; `None` without a GPU."""
        if self._device_id is None:
            return None
        if self._stream is None:
            self._stream = Stream(device_id=self._device_id)
            self._evaluator.set_stream(self._stream)
        return self._stream

    def _follow(self) -> None:
        """Take over the stream that the thread or the process has set meanwhile."""
        wanted = set_stream_of(self._device_id)
        if wanted is not None and wanted is not self._stream:
            self._stream = wanted
            self._evaluator.set_stream(wanted)

    @property
    def checkpoint(self) -> Checkpoint:
        """Checkpoint that belongs to this context, for programs that keep none of their own."""
        if self._checkpoint is None:
            self._checkpoint = Checkpoint()
        return self._checkpoint

    def evaluate_all(self) -> None:
        """Do all work that is left to do, that of calls in deferred mode included.

        Errors are raised where the results are read.
        """
        for invocation in list(self._deferred):
            self._evaluator.finish(invocation)
        self._deferred.clear()
        self._evaluator.drain()

    def __enter__(self) -> Self:
        here = threading.get_ident()
        with self._lock:
            if self._depth and self._thread != here:
                raise UsageError(
                    "This EvalContext is in force in another thread; make one for each thread, "
                    "with a ThreadPool in common if they are to share threads."
                )
            self._thread = here
            self._depth += 1
        self._device.__enter__()
        THREAD.contexts.append(THREAD.context)
        THREAD.context = self
        return self

    def __exit__(self, *exc_info: object) -> None:
        THREAD.context = THREAD.contexts.pop()
        with self._lock:
            self._depth -= 1
        try:
            self.evaluate_all()
        finally:
            self._device.__exit__(*exc_info)


def chosen(ctx: EvalContext | None) -> EvalContext:
    """The context that a loop was given, or the current one."""
    if ctx is None:
        return EvalContext.current()
    if not isinstance(ctx, EvalContext):
        raise ArgumentTypeError(f"`ctx` is an `EvalContext`, got {ctx!r}.")
    return ctx


def get_current_stream() -> Stream | None:
    """The stream of the calling thread's default context; `None` without a GPU."""
    return EvalContext.default().cuda_stream
