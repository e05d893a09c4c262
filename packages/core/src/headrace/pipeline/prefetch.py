"""Work ahead of the consumer: iterations are scheduled as far as there is data."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

from headrace.errors import NotFedError
from headrace.executor.iteration import Iteration

if TYPE_CHECKING:
    from headrace.executor.executor import Executor
    from headrace.executor.memory import MemoryLimit
    from headrace.pipeline.input_queues import InputQueues


class Prefetch:
    """Schedules iterations of an executor for a consumer, who takes them in their order."""

    def __init__(
        self,
        executor: Executor,
        queues: InputQueues,
        depth: int,
        number: int,
        limit: MemoryLimit | None = None,
        *,
        early: int = 0,
        waits: bool = False,
    ) -> None:
        """Schedule `depth` iterations ahead, and so many more `early`, which nobody asked for."""
        self.limit = limit
        self._waits = waits
        self._executor = executor
        self._queues = queues
        self._depth, self._early = depth, early
        self.lock = threading.Lock()
        """Held while external sources are asked and iterations are scheduled, by the consumer or
        by threads that feed; taken before the executor's monitor.
        """
        self.number = number
        """Number of the next iteration, never reset: random streams count by it. Guarded by
        `lock`, as all else.
        """
        self._until = number
        """Number of the first iteration that the consumer has not asked for."""
        self._owed = 0
        """Iterations to be scheduled, while an external source has not been fed."""
        self._is_begun = False
        """True if iterations were scheduled in this epoch."""
        self._retrying = False
        self._is_set_up = False
        """True if `set_up` was called for the next iteration."""

    def schedule(self, set_up: Callable[[], None] | None) -> None:
        """Start on a further iteration, or on as many as are worked on ahead, at first."""
        if not self._is_begun:
            self._is_begun = True
            self._owed += self._depth + self._early
            self._until += self._depth
        elif not (self._retrying and self._owed):
            self._owed += 1
            self._until += 1
        self._retrying = True  # a source that raises is asked again for the same iteration
        self._schedule_owed(set_up)
        self._retrying = False
        if self._waits:
            self._executor.finish()

    def schedule_fed(self, set_up: Callable[[], None] | None) -> None:
        """Schedule iterations that were requested before a source was fed.

        Nothing is done while this is being done already, be it by another thread or further up in
        this one: a source, or `set_up`, may feed another one.
        """
        try:
            if self.lock.acquire(blocking=False):
                try:
                    self._schedule_while_fed(set_up)
                finally:
                    self.lock.release()
        finally:
            self._queues.note_change()

    def _schedule_owed(self, set_up: Callable[[], None] | None) -> None:
        consumer = self._executor.consumer
        consumer.is_inside = True
        try:
            with self.lock:  # not `acquire`, after which a Ctrl-C would leave it locked
                self._schedule_while_fed(set_up)
        finally:
            consumer.is_inside = False
            self._queues.note_change()

    def _schedule_while_fed(self, set_up: Callable[[], None] | None) -> None:
        """Schedule requested iterations, as far as external sources have data. Holds the lock."""
        queues = self._queues
        while self._owed and not queues.ended:
            try:
                if self._is_full():
                    break
                # Once for each iteration, however often the rest is tried again.
                if set_up is not None and not self._is_set_up:
                    set_up()
                    self._is_set_up = True
                if queues.starving():
                    break
                size, fed = queues.collect()
            except StopIteration:
                queues.ended = True
                break
            iteration = Iteration(self.number, size, fed, queues.before)
            self.number += 1
            is_taken = self._executor.schedule(iteration)
            self._owed -= is_taken
            self._until += not is_taken
            self._is_set_up = False

    def _is_full(self) -> bool:
        """Return True if a further iteration must wait for memory; never if none is in progress."""
        limit = self.limit
        if limit is None:
            return False
        on_their_way = self._executor.scheduled()
        return bool(on_their_way) and not limit.has_room(on_their_way)

    def has_next(self) -> bool:
        """Return True if an iteration is scheduled that the consumer has asked for."""
        pending = self._executor.pending()
        return pending > 0 and self.number - pending < self._until

    def take(self, set_up: Callable[[], None] | None) -> Iteration:
        """Wait for the oldest iteration and hand it over."""
        queues = self._queues
        if self._owed:
            self._schedule_owed(set_up)
        while True:
            seen = queues.changes
            if self.has_next():
                break
            if queues.ended or not self._owed or self._executor.pending():
                with self.lock:  # a thread that feeds has counted an iteration, and adds it next
                    if self.has_next():
                        break
                queues.warn_of_empty_epoch()
                raise StopIteration(
                    f"The data of this epoch has come to its end, after {queues.iteration} "
                    "iterations: `reset()` of the pipeline begins the next epoch."
                )
            starving = queues.starving()
            if starving and queues.may_wait():
                queues.wait_for_change(seen)
            elif starving:
                self._owed = 0
                raise NotFedError(
                    f"The external source{'s' if len(starving) > 1 else ''} "
                    f"{', '.join(map(repr, starving))} had no data for this iteration: call "
                    "`feed_input` before each run."
                )
            self._schedule_owed(set_up)
        iteration = self._executor.take()
        if self.limit is not None:
            self.limit.note(iteration)
        return iteration

    def begin_epoch(self) -> None:
        """Forget requests of the epoch before."""
        self._owed = 0
        self._until = self.number
        self._is_begun = False
