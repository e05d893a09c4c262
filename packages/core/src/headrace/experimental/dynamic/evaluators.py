"""Evaluates calls in their order: in a background thread, or in the thread that wants a result."""

from __future__ import annotations

import contextlib
import threading
from collections import deque
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from headrace.errors import UsageError
from headrace.experimental.dynamic import lifetime
from headrace.experimental.dynamic.chains import chain_of
from headrace.experimental.dynamic.execution import run_chain
from headrace.experimental.dynamic.failures import interruption_in
from headrace.experimental.dynamic.invocations import DONE, FAILED, NEW, QUEUED, RUNNING, Invocation
from headrace.experimental.dynamic.values import ValueReference, repeated
from headrace.operators.support.lazy_value import LazyValue

if TYPE_CHECKING:
    from headrace.executor.gpu.stream import StreamExecutor
    from headrace.experimental.dynamic.streams import Stream
    from headrace.experimental.dynamic.thread_pools import ThreadPool

_AHEAD_ON_GPU = 64
"""Chains that may be queued on the GPU before the host waits for it."""
_MOST_TOGETHER = 64
"""Calls in one chain. Making its program takes time, and a longer one gains nothing."""
_MOST_QUEUED = 512
"""Calls that may wait; a thread that makes more of them has to work itself."""


class Evaluator:
    """Evaluates the calls of one context.

    A thread that works takes all calls out of the queue. Calls on batches of one size become one
    chain: each sample goes through all of it while it is hot in the cache. The background thread
    works, or the thread that wants a result, if it is quicker.
    """

    def __init__(self, pool: ThreadPool, device_id: int | None) -> None:
        self.pool = pool
        self.device_id = device_id
        self._lock = threading.Lock()
        self._queue: deque[Invocation] = deque()
        self._wake = threading.Lock()
        self._wake.acquire()
        self._idle = False
        self._thread: threading.Thread | None = None
        self._active: list[Sequence[Invocation]] = []
        """Calls that threads are at work on."""
        self._closed = False
        self._stream_executor: StreamExecutor | None = None
        self._stream: Stream | None = None
        self._stream_lock = threading.RLock()
        """A thread holds it while it gives work to the GPU."""
        self._work_lock = threading.Lock()
        """A thread holds it while it works on the queue, so that calls are done in their order."""

    # -- those who call ------------------------------------------------------------------------

    def submit(self, invocation: Invocation) -> None:
        """Have the work done in the background."""
        invocation.state = QUEUED
        queue = self._queue
        queue.append(invocation)
        if self._idle:
            self._wake_thread()
        elif self._thread is None:
            self._start()
        if len(queue) > _MOST_QUEUED:
            self.drain()

    def submit_all(self, invocations: Sequence[Invocation]) -> None:
        """Have the work of several calls done in the background, together."""
        for invocation in invocations:
            invocation.state = QUEUED
        self._queue.extend(invocations)
        if self._idle:
            self._wake_thread()
        elif self._thread is None:
            self._start()

    def run_all(self, invocations: Sequence[Invocation]) -> None:
        """Do calls in this thread, each after those that it reads."""
        for invocation in invocations:
            invocation.state = RUNNING
        self._do(invocations)

    def run_now(self, invocation: Invocation) -> None:
        """Do the work in this thread; the error, if there is one, is on the call."""
        self._do([invocation])

    def finish(self, invocation: Invocation) -> None:
        """Return when a call is done, one way or the other."""
        if invocation.state == NEW:
            self._run_deferred(invocation)
        if invocation.state == QUEUED and self._work_lock.acquire(blocking=False):
            try:
                while invocation.state == QUEUED:
                    self._do(self._taken())
            finally:
                self._work_lock.release()
        if invocation.state < DONE:
            self._wait(invocation)

    def drain(self) -> None:
        """Return when all calls in the queue are done."""
        while self._queue:
            with self._work_lock:
                self._do(self._taken())
        with self._work_lock:  # what was taken before is done as well
            pass

    def close(self) -> None:
        """Let the background thread end when nothing is left to do."""
        self._closed = True
        if self._thread is None:
            self._close_stream_executor()
        self._wake_thread()

    def stop(self) -> list[threading.Thread]:
        """Drop what has not been begun and let the background thread end; return it."""
        self._queue.clear()
        self.close()
        return [] if self._thread is None else [self._thread]

    def after_fork(self) -> None:
        """Do without the thread, which is in the other process, and the locks it held.

        What waits in the queue is done here as well. What was under way is lost.
        """
        self._lock = threading.Lock()
        self._work_lock = threading.Lock()
        self._stream_lock = threading.RLock()
        self._wake = threading.Lock()
        self._wake.acquire()
        self._idle = False
        self._thread = None
        lost = [i for group in self._active for i in group if i.state < DONE]
        self._active = []
        self._complete(
            lost, UsageError("This was being worked on when the process was forked; do it again.")
        )

    def set_stream(self, stream: Stream) -> None:
        """Give the work for the GPU to another stream from now on."""
        self._stream = stream

    # -- those who work ------------------------------------------------------------------------

    def _start(self) -> None:
        with self._lock:
            if self._thread is not None:
                return
            self._thread = threading.Thread(target=self._work, name="headrace-dynamic", daemon=True)
            self._thread.start()
            lifetime.track(self)

    def _wake_thread(self) -> None:
        with self._lock:
            if self._idle:
                self._idle = False
                self._wake.release()

    def _work(self) -> None:
        while True:
            if not self._queue:
                with self._lock:
                    if self._closed:
                        break
                    self._idle = True
                if self._queue:  # it came before this thread was seen to be idle
                    self._wake_thread()
                self._wake.acquire()
                continue
            with self._work_lock:
                self._do(self._taken())
        self._close_stream_executor()

    def _taken(self) -> list[Invocation]:
        """All calls that wait."""
        queue = self._queue
        taken = []
        for _ in range(len(queue)):
            try:
                invocation = queue.popleft()
            except IndexError:
                break
            invocation.state = RUNNING
            taken.append(invocation)
        return taken

    def _run_deferred(self, invocation: Invocation) -> None:
        """Do a call that has not been started, and those it needs."""
        claimed: list[Invocation] = []
        with self._lock:
            if invocation.state == NEW:
                self._claim(invocation, claimed)
        if claimed:
            self._do(claimed)

    def _claim(self, invocation: Invocation, claimed: list[Invocation]) -> None:
        """Add a call and the unstarted ones it reads to `claimed`, each after what it reads."""
        stack: list[tuple[Invocation, bool]] = [(invocation, False)]
        while stack:
            found, sources_done = stack.pop()
            if sources_done:
                claimed.append(found)
                continue
            if found.state != NEW:
                continue
            found.state = RUNNING
            stack.append((found, True))
            for reference in reversed(found.sources()):
                owner = reference.owner
                if isinstance(owner, Invocation) and owner.state == NEW and owner.evaluator is self:
                    stack.append((owner, False))

    def _wait(self, invocation: Invocation) -> None:
        with self._lock:
            if invocation.state >= DONE:
                return
            latch = invocation.latch
            if latch is None:
                latch = invocation.latch = threading.Lock()
                latch.acquire()
        latch.acquire()
        latch.release()  # for the next one who waits

    def _do(self, invocations: Sequence[Invocation]) -> None:
        """Do calls, each after those that it reads."""
        self._active.append(invocations)
        try:
            self._do_in_groups(invocations)
        except BaseException:
            left = [i for i in invocations if i.state < DONE]
            self._complete(left, UsageError("The program was interrupted before this was done."))
            raise
        finally:
            self._active.remove(invocations)

    def _do_in_groups(self, invocations: Sequence[Invocation]) -> None:
        groups: dict[int, list[Invocation]] = {}
        group_of: dict[int, int] = {}
        for invocation in invocations:
            size = 1 if invocation.size is None else invocation.size
            failed: Any = None
            for reference in invocation.sources() if invocation.tensors else invocation.inputs:
                owner = reference.owner
                if reference.value is not None or owner is None:
                    continue
                group = group_of.get(id(owner))
                if group is not None:
                    if group != size:
                        self._flush(groups, group_of, group)
                        if reference.value is None:
                            failed = owner
                    continue
                if isinstance(owner, Invocation) and owner.state >= DONE:
                    failed = owner
                    continue
                # A waiter for a call that this thread has put off would wait for ever.
                for group in list(groups):
                    self._flush(groups, group_of, group)
                if reference.value is None:
                    try:
                        owner.ensure()
                    except Exception as error:
                        failed = error
            if failed is not None:
                self._fail(invocation, failed)
                continue
            groups.setdefault(size, []).append(invocation)
            group_of[id(invocation)] = size
        for group in list(groups):
            self._flush(groups, group_of, group)

    def _fail(self, invocation: Invocation, cause: Any) -> None:
        """Let a call fail because what it reads has."""
        if isinstance(cause, Invocation):
            cause = cause.error
        self._complete([invocation], cause)

    def _flush(
        self, groups: dict[int, list[Invocation]], group_of: dict[int, int], size: int
    ) -> None:
        group = groups.pop(size)
        for invocation in group:
            del group_of[id(invocation)]
        for together in _rounds(group):
            self._run_group(together[:_MOST_TOGETHER], size)
            if len(together) > _MOST_TOGETHER:
                self._do_in_groups(together[_MOST_TOGETHER:])

    def _run_group(self, group: list[Invocation], size: int) -> None:
        """Do calls that can go together."""
        if size == 1 and not _pays_to_fuse(group):
            group = self._run_singly(group)
            if not group:
                return
        try:
            self._run(group, size)
        except BaseException as error:
            interruption = interruption_in(error)
            if interruption is not None:
                raise interruption from None
            if len(group) == 1:
                self._complete(group, group[0].located_here(error))
                return
            # Which of them failed, and which do not depend on it, shows when each is done alone.
            for invocation in group:
                failed = next(
                    (
                        reference.owner
                        for reference in invocation.sources()
                        if reference.value is None and reference.owner is not None
                    ),
                    None,
                )
                if failed is not None:
                    self._fail(invocation, failed)
                else:
                    self._run_group([invocation], size)

    def _run_singly(self, group: list[Invocation]) -> list[Invocation]:
        """Do calls on single samples one by one; return those from the first that fails on."""
        for number, invocation in enumerate(group):
            runner = invocation.bound.runner
            try:
                inputs = invocation.inputs
                if runner is None:
                    raise NotImplementedError
                if invocation.tensors:
                    values = runner.run_with(inputs, invocation.tensors, invocation.seed)
                else:
                    values = runner.run([s.value for s in inputs], seed=invocation.seed)
            except Exception:  # met again, and told with its place, by the general way
                self._complete(group[:number], None)
                return group[number:]
            for reference, value in zip(invocation.references, values, strict=True):
                reference.value = value
        self._complete(group, None)
        return []

    def _run(self, group: list[Invocation], size: int) -> None:
        alone = len(group) == 1
        used: dict[int, int] = {}
        if not alone:
            for invocation in group:
                for reference in invocation.sources():
                    used[id(reference)] = used.get(id(reference), 0) + 1
        wanted = []
        references: list[ValueReference] = []
        for number, invocation in enumerate(group):
            for k, reference in enumerate(invocation.references):
                if alone or reference.is_held or len(reference.uses) > used.get(id(reference), 0):
                    wanted.append((number, k))
                    references.append(reference)
        chain, given = chain_of(group, wanted)
        values = [_sized(reference, size) for reference in given]
        if chain.plan.streams:
            # It may be the user's thread: what is current there is the user's choice.
            with self._stream_lock, self.stream_executor() as executor:
                results = run_chain(chain, values, size, group, self.pool, executor)
        else:
            results = run_chain(chain, values, size, group, self.pool, None)
        for reference, value in zip(references, results, strict=True):
            reference.value = value
        self._complete(group, None)

    def _complete(self, invocations: Sequence[Invocation], error: BaseException | None) -> None:
        """Mark calls as done and wake those who wait for them."""
        with self._lock:
            for invocation in invocations:
                invocation.error = error
                invocation.inputs = ()
                invocation.tensors = ()
                invocation.state = DONE if error is None else FAILED
                if invocation.latch is not None:
                    invocation.latch.release()
                if error is None:
                    for reference in invocation.references:
                        reference.owner = None

    # -- the GPU ---------------------------------------------------------------------------------

    @contextlib.contextmanager
    def stream_executor(self) -> Iterator[StreamExecutor]:
        """Stream of this context's work on the GPU; makes the GPU current while in use."""
        stream = self._stream
        if self._stream_executor is None or (
            stream is not None and self._stream_executor.stream != stream.handle
        ):
            from headrace.executor.gpu.stream import StreamExecutor
            from headrace.tensors.gpu.device import get_device
            from headrace.tensors.gpu.runtime import current_device

            self._close_stream_executor()
            number = current_device() if self.device_id is None else self.device_id
            handle = None if stream is None else stream.handle
            self._stream_executor = StreamExecutor(get_device(number), "gpu", _AHEAD_ON_GPU, handle)
        with self._stream_executor.active():
            yield self._stream_executor

    def _close_stream_executor(self) -> None:
        executor, self._stream_executor = self._stream_executor, None
        if executor is not None:
            with executor.active():
                executor.close()

    def synchronize(self) -> None:
        """Wait until the GPU has done all that this context has given it."""
        if self._stream_executor is not None:
            self._stream_executor.synchronize()


def _pays_to_fuse(group: Sequence[Invocation]) -> bool:
    """True if calls on single samples get faster by going through one program."""
    if len(group) == 1:
        return False
    expressions = 0
    for invocation in group:
        bound = invocation.bound
        if any(issubclass(kind, LazyValue) for kind in bound.op.returns_lazy):
            return True
        if bound.operation.schema.is_expression and invocation.bound.specs[0].ndim != 0:
            expressions += 1
    return expressions > 1


def _rounds(group: list[Invocation]) -> list[list[Invocation]]:
    """Split calls where a loop begins again, so that each round of it is the same chain.

    Calls that are connected by what they read stay together. A round ends before calls of a kind
    that it has already.
    """
    if len(group) == 1:
        return [group]
    parts: dict[int, list[int]] = {}
    for number, invocation in enumerate(group):
        part = [number]
        for reference in invocation.sources() if invocation.tensors else invocation.inputs:
            other = parts.get(id(reference.owner))
            if other is not None and other is not part:
                if len(other) < len(part):
                    part, other = other, part
                other += part
                for k in part:
                    parts[id(group[k])] = other
                part = other
        parts[id(invocation)] = part
    rounds: list[list[int]] = []
    kinds: set[tuple[int, ...]] = set()
    seen: set[int] = set()
    for invocation in group:
        part = parts[id(invocation)]
        if id(part) in seen:
            continue
        seen.add(id(part))
        part.sort()
        kind = tuple([id(group[k].bound) for k in part])
        if not rounds or kind in kinds:
            rounds.append([])
            kinds.clear()
        kinds.add(kind)
        rounds[-1] += part
    return [[group[k] for k in sorted(numbers)] for numbers in rounds]


def _sized(reference: ValueReference, size: int) -> Any:
    """The value of a reference as a batch of `size` samples."""
    return (
        repeated(reference.value, size) if reference.size is None and size != 1 else reference.value
    )
