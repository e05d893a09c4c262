"""Has workers compute the batches of one source before they are asked for."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headrace.errors import CheckpointError
from headrace.operators.support.external.callback import cycle_policy
from headrace.operators.support.external.parallel.tasks import (
    BatchTask,
    NextTask,
    ResumeTask,
    RewindTask,
    SamplesTask,
    Task,
    Traits,
)
from headrace.types import BatchInfo

if TYPE_CHECKING:
    from headrace.operators.support.external.parallel.wire_format import OutputSamples
    from headrace.operators.support.external.parallel.workers import TaskHandle, Workers

Partials = list[list["OutputSamples"]]
"""Parts of a batch, one after the other, each with its outputs."""


@dataclass(slots=True)
class _Request:
    """A batch that workers are at."""

    position: tuple[int, int, int]
    """Size, iteration, epoch."""
    handles: list[TaskHandle]


class IndexedAhead:
    """For functions of the position: any worker makes any batch, or a piece of it."""

    def __init__(
        self, workers: Workers, number: int, source: Any, traits: Traits, depth: int
    ) -> None:
        self._workers = workers
        self._number = number
        self._source = source
        self._traits = traits
        self._depth = depth
        self._asked: deque[_Request] = deque()

    def collect(self, size: int, iteration: int, epoch: int) -> Partials:
        """The batch of an iteration."""
        asked = self._asked
        position = (size, iteration, epoch)
        if asked and asked[0].position != position:
            self._forget()
        try:
            self._ask(size, iteration, epoch)
            found = [self._workers.wait(handle) for handle in asked[0].handles]
        except Exception:
            # What comes after an error is asked for again, as without workers.
            self._forget()
            raise
        asked.popleft()
        return found

    def _ask(self, size: int, iteration: int, epoch: int) -> None:
        first = self._asked[-1].position[1] + 1 if self._asked else iteration
        for k in range(first, iteration + self._depth + 1):
            try:
                tasks = self._tasks(size, k, epoch)
            except StopIteration:
                if k == iteration:
                    raise
                return
            # Pieces of a batch go to a worker each.
            places = [None] if len(tasks) == 1 else range(len(tasks))
            handles = [
                self._workers.submit(self._number, task, place)
                for task, place in zip(tasks, places, strict=True)
            ]
            self._asked.append(_Request((size, k, epoch), handles))

    def _tasks(self, size: int, iteration: int, epoch: int) -> list[Task]:
        if self._traits.batch:
            plan = None
            if self._traits.plans:
                plan = self._source.plan_batch(BatchInfo(iteration, epoch))
            return [BatchTask(iteration, epoch, plan)]
        count = min(self._workers.size, size)
        bounds = [size * k // count for k in range(count + 1)]
        return [SamplesTask(bounds[k], bounds[k + 1], size, iteration, epoch) for k in range(count)]

    def _forget(self) -> None:
        handles = [handle for each in self._asked for handle in each.handles]
        self._asked.clear()
        self._workers.discard(handles)

    def drop(self) -> None:
        """Let go of all that is there, now that the workers are gone."""
        self._asked.clear()

    def new_epoch(self) -> None:
        """Begin at the beginning."""
        self._forget()

    def state(self) -> dict[str, Any]:
        """Nothing: the position says it all."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """There is nothing to remember."""


class ForwardAhead:
    """For iterables and functions without argument, each of which belongs to one worker.

    A source that is divided into several iterables gives a batch of each in turn; those that are
    at their end are passed over. This order depends on nothing but the source.
    """

    def __init__(
        self, workers: Workers, number: int, traits: Traits, depth: int, places: list[int]
    ) -> None:
        self._workers = workers
        self._number = number
        self._depth = max(depth, len(places)) if len(places) > 1 else depth
        self._places = places
        self._divided = traits.shards > 0
        self._cycle = cycle_policy(traits.cycle)
        self._alive = list(range(len(places)))
        self._turn = 0
        self._asked: deque[tuple[int, TaskHandle]] = deque()
        self._rewinds: list[TaskHandle] = []
        self._batch = traits.batch
        self._passes = 0
        self._taken = [0] * len(places)
        """Batches (or samples) of each iterable that were handed over, since it was begun."""

    def collect(self, size: int, iteration: int, epoch: int) -> Partials:
        """The next batch; as of `IndexedAhead`."""
        rewound = False
        while True:
            self._ask(size, iteration, epoch)
            if not self._asked:
                if self._divided and self._cycle == "quiet" and not rewound:
                    rewound = True
                    self._rewind()
                    continue
                raise StopIteration
            while self._rewinds:  # only an error of theirs matters
                self._workers.wait(self._rewinds[0])
                del self._rewinds[0]
            shard, handle = self._asked[0]
            try:
                found = self._workers.wait(handle)
            except StopIteration:
                self._asked.popleft()
                if not self._divided:
                    raise
                if shard in self._alive:
                    # Whose turn is next stays the same.
                    self._turn -= self._alive.index(shard) < self._turn
                    self._alive.remove(shard)
                continue
            except Exception:
                self._asked.popleft()
                raise
            self._asked.popleft()
            self._taken[shard] += 1 if self._batch else size
            return [found]

    def _ask(self, size: int, iteration: int, epoch: int) -> None:
        while self._alive and len(self._asked) <= self._depth:
            self._turn %= len(self._alive)
            shard = self._alive[self._turn]
            self._turn += 1
            task = NextTask(shard, size, iteration + len(self._asked), epoch)
            handle = self._workers.submit(self._number, task, self._places[shard])
            self._asked.append((shard, handle))

    def _rewind(self) -> None:
        unwanted = [handle for _, handle in self._asked]
        self._asked.clear()
        self._workers.discard(unwanted)
        for shard, place in enumerate(self._places):
            self._rewinds.append(self._workers.submit(self._number, RewindTask(shard), place))
        self._alive = list(range(len(self._places)))
        self._turn = 0
        self._passes += any(self._taken)
        self._taken = [0] * len(self._places)

    def drop(self) -> None:
        """Let go of all that is there, now that the workers are gone."""
        self._asked.clear()

    def new_epoch(self) -> None:
        """Rewind what can be rewound."""
        if self._cycle == "raise" or (self._divided and self._cycle == "quiet" and not self._alive):
            self._rewind()

    def state(self) -> dict[str, Any]:
        """Position of each iterable, and whose turn it is."""
        if self._asked:
            following = self._asked[0][0]
        else:
            following = self._alive[self._turn % len(self._alive)] if self._alive else 0
        return {
            "passes": self._passes,
            "taken": list(self._taken),
            "alive": list(self._alive),
            "next": following,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Have the workers take what was taken before."""
        if len(state["taken"]) != len(self._places):
            raise CheckpointError(
                f"The source is divided into {len(self._places)} parts; when the checkpoint was "
                f"made, there were {len(state['taken'])}."
            )
        self._passes, self._taken = state["passes"], list(state["taken"])
        self._alive = list(state["alive"])
        following = [k for k, shard in enumerate(self._alive) if shard >= state["next"]]
        self._turn = following[0] if following else 0
        for shard, place in enumerate(self._places):
            task = ResumeTask(shard, self._passes, self._taken[shard])
            self._rewinds.append(self._workers.submit(self._number, task, place))
