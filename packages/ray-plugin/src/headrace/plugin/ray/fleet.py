"""The workers of one pipeline: started, given tasks, replaced when they are lost, and ended."""

from __future__ import annotations

import contextlib
import threading
import time
import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Protocol

import ray
from ray.exceptions import RayError
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from headrace.errors import WorkerProcessError
from headrace.plugin.ray.ending import CALLS, shut_down
from headrace.plugin.ray.messages import Result, Task, WorkerAddress
from headrace.plugin.ray.options import Options
from headrace.plugin.ray.worker import Worker

TASKS_A_WORKER = 2
"""Tasks of a worker at a time: one that it works on, and the next."""
_SAME_TASK = 3
"""So many workers may be lost with one and the same task in hand."""


class Owner(Protocol):
    """User of the fleet, all of which its lock `changed` guards, too."""

    changed: threading.Condition

    def arrived(self, member: Member, result: Result) -> None:
        """Take in a result. The lock is held."""
        ...

    def given_back(self, ticket: int) -> None:
        """Note that a task waits for another worker. The lock is held."""
        ...

    def go_on(self) -> None:
        """Have workers begin what they can. The lock is held."""
        ...


@dataclass(eq=False)
class Member:
    """One worker, as the trainer sees it."""

    number: int
    actor: Any
    place: WorkerAddress | None = None
    """Its whereabouts, once it has started."""
    is_local: bool = False
    assigned: dict[int, Task] = field(default_factory=dict)
    """By ticket; the oldest first."""
    is_leaving: bool = False
    batches: int = 0
    samples: int = 0
    bytes: int = 0
    seconds: float = 0.0
    """Time it worked on batches."""
    fetched: float = 0.0
    """Time it took to fetch the last batch."""
    fetching: float = 0.0
    """That of all."""
    since: float = field(default_factory=time.perf_counter)


class Fleet:
    """Workers and their tasks. All methods but `close` are called with the owner's lock held."""

    def __init__(self, options: Options, graph: list[Any], owner: Owner) -> None:
        self.members: dict[int, Member] = {}
        self.failure: Exception | None = None
        """Reason why nothing goes on."""
        self.lost = 0
        """Workers that were lost so far."""
        self.wanted = options.least
        self.waiting: dict[int, Task] = {}
        """Tasks by ticket that no worker has."""
        self._options = options
        self._graph = graph
        self._owner = weakref.ref(owner)
        self.is_closed = False
        self._numbers = 0
        self._losses: dict[int, int] = {}
        """By ticket, how many workers were lost with it."""
        self._without_since = time.monotonic()
        """Since when there is no worker at all."""
        self._node_id = ray.get_runtime_context().get_node_id()
        groups = {"control": 1, "stream": 1}
        self._class: Any = ray.remote(concurrency_groups=groups)(Worker)
        CALLS.callers.add(self)

    # -- who is there --------------------------------------------------------------------------

    def resize(self, wanted: int) -> None:
        """Have so many workers, from now on; those that leave finish what they have begun."""
        self.wanted = wanted
        if self.is_closed:
            return
        staying = [m for m in self.members.values() if not m.is_leaving]
        for _ in range(len(staying), wanted):
            self._start()
        if len(staying) <= wanted:
            return
        # Who has not started goes first, then who is far away; the last to come before others.
        staying.sort(key=lambda m: (m.place is None, not m.is_local, m.number), reverse=True)
        for member in staying[: len(staying) - wanted]:
            member.is_leaving = True
            self._end_if_idle(member)

    def _start(self) -> None:
        strategy = {
            # The trainer's own node first, as long as it has processors to spare.
            "scheduling_strategy": NodeAffinitySchedulingStrategy(
                self._node_id, soft=True, _spill_on_unavailable=True
            )
        }
        self._numbers += 1
        actor = self._class.options(**{**strategy, **self._options.actor}).remote(
            *self._graph, self._options.threads
        )
        member = Member(self._numbers, actor)
        self.members[member.number] = member
        threading.Thread(
            target=_follow,
            args=(weakref.ref(self), self._owner, member),
            name=f"headrace-ray-{member.number}",
            daemon=True,
        ).start()

    def joined(self, member: Member, place: WorkerAddress) -> None:
        """Note that a worker has started."""
        member.place, member.is_local = place, place.node_id == self._node_id
        member.since = time.perf_counter()

    def _end_if_idle(self, member: Member) -> None:
        if not member.assigned and self.members.pop(member.number, None) is not None:
            _kill(member)

    def lose(self, member: Member, error: BaseException) -> None:
        """Give the tasks of a worker that is gone to others, and start another worker."""
        if self.is_closed or self.members.pop(member.number, None) is None:
            return
        _kill(member)
        tasks, member.assigned = member.assigned, {}
        self.waiting.update(tasks)
        owner = self._owner()
        for ticket in tasks:
            if owner is not None and ticket in self.waiting:
                owner.given_back(ticket)
        self._note_without()
        if member.is_leaving:
            return
        self.lost += 1
        for ticket in list(tasks)[:1]:  # the one it was at
            self._losses[ticket] = self._losses.get(ticket, 0) + 1
        most = self._options.max_restarts
        again = max((self._losses[t] for t in tasks if t in self._losses), default=0)
        where = "before it had started" if member.place is None else f"on {member.place}"
        numbers = ", ".join(str(task.number) for task in tasks.values())
        doing = f" while it worked on iterations {numbers}" if numbers else ""
        what = f"Worker {member.number} was lost {where}{doing}: {_cause(error)}"
        if _is_final(member, error):
            self.failure = WorkerProcessError(f"{what} Another one would end in the same way.")
        elif again >= _SAME_TASK:
            number = next(t.number for k, t in tasks.items() if self._losses.get(k) == again)
            self.failure = WorkerProcessError(
                f"{what} Iteration {number} has now cost {again} workers: something in it ends "
                "the process, such as a file that crashes a decoder."
            )
        elif 0 <= most < self.lost:
            self.failure = WorkerProcessError(
                f"{what} That makes {self.lost} lost workers, and `max_restarts` is {most}."
            )
        if self.failure is not None:
            self.failure.__cause__ = error
            return
        self.resize(self.wanted)

    def end_with_ray(self) -> None:
        """End all workers, because Ray is being shut down. The lock is not held."""
        owner = self._owner()
        if owner is not None:
            with owner.changed:
                self.failure = self.failure or shut_down()
                self.close()
                owner.changed.notify_all()

    def _note_without(self) -> None:
        if any(m.place is not None for m in self.members.values()):
            self._without_since = time.monotonic()

    def check(self) -> None:
        """Raise what keeps the work from going on."""
        if self.failure is not None:
            raise self.failure
        limit = self._options.start_timeout_seconds
        if any(m.place is not None for m in self.members.values()):
            self._without_since = time.monotonic()
        elif limit is not None and time.monotonic() - self._without_since > limit:
            wanted = {k: v for k, v in self._options.actor.items() if k != "runtime_env"}
            raise WorkerProcessError(
                f"No worker has started within {limit:g} seconds (`start_timeout_seconds`). Each "
                f"asks for {wanted}; the cluster has {_free()} free of {_all()}. Ask for less with "
                "`resources`, or add nodes."
            )

    # -- what they do --------------------------------------------------------------------------

    def deal(self, tickets: Iterable[int]) -> None:
        """Give these waiting tasks, oldest first, to workers that have room."""
        for ticket in tickets:
            free = self.with_room()
            if not free:
                return
            # Of the idle ones, the trainer's own processors first.
            member = min(free, key=lambda m: (len(m.assigned), not m.is_local, m.number))
            task = self.waiting.pop(ticket)
            member.assigned[ticket] = task
            member.actor.push.remote(task)

    def with_room(self) -> list[Member]:
        """Workers that may be given another task."""
        return [
            m
            for m in self.members.values()
            if m.place is not None and not m.is_leaving and len(m.assigned) < TASKS_A_WORKER
        ]

    def before(self, ticket: int) -> list[int] | None:
        """Tasks that the worker of this one was given before it; `None` where no worker has it."""
        for member in self.members.values():
            if ticket in member.assigned:
                given = list(member.assigned)
                return given[: given.index(ticket)]
        return None

    def took(self, member: Member, result: Result) -> bool:
        """Note that a task is done; False if it is not awaited any more."""
        task = member.assigned.pop(result.ticket, None)
        self._losses.pop(result.ticket, None)
        member.batches += 1
        member.samples += 0 if task is None else task.size
        member.bytes += result.nbytes
        member.seconds += result.seconds
        member.fetching += member.fetched
        if member.is_leaving:
            self._end_if_idle(member)
        return task is not None

    def drop(self, ticket: int) -> None:
        """Forget a task, of which no result is wanted any more."""
        self.waiting.pop(ticket, None)
        for member in self.members.values():
            member.assigned.pop(ticket, None)

    def seconds_a_batch(self) -> float:
        """Time that a worker spends on a batch, on average; 0 where none has made any."""
        made = sum(m.batches for m in self.members.values())
        return sum(m.seconds for m in self.members.values()) / made if made else 0.0

    def are_all_there(self) -> bool:
        """Return True if no worker is about to start, or to leave."""
        return all(m.place is not None and not m.is_leaving for m in self.members.values())

    def in_hand(self) -> int:
        """Number of tasks that workers have."""
        return sum(len(m.assigned) for m in self.members.values())

    def close(self) -> None:
        """End all workers."""
        self.is_closed = True
        members = list(self.members.values())
        self.members.clear()
        self.waiting.clear()
        self._graph = []
        for member in members:
            _kill(member)


def _follow(fleet_ref: Any, owner_ref: Any, member: Member) -> None:
    """Take the results of one worker, in a thread of its own, until it ends."""
    with contextlib.suppress(WorkerProcessError), CALLS.inside():  # without Ray there is none
        _follow_results(partial(_tell, fleet_ref, owner_ref), member)


def _follow_results(tell: Callable[[str, Member, Any], bool], member: Member) -> None:
    try:
        place = ray.get(member.actor.where.remote())
        if not tell("joined", member, place):
            return
        stream = member.actor.serve.options(num_returns="streaming").remote()
        while (reference := next(stream, None)) is not None:
            began = time.perf_counter()
            result = ray.get(reference)
            member.fetched = time.perf_counter() - began
            del reference
            if not tell("arrived", member, result):
                return
            del result
    except Exception as error:
        tell("lose", member, error)


def _tell(fleet_ref: Any, owner_ref: Any, what: str, member: Member, content: Any) -> bool:
    """Call a method of the fleet, or of its owner, under their lock, if they are still there."""
    fleet, owner = fleet_ref(), owner_ref()
    if fleet is None or owner is None:
        return False
    with owner.changed:
        if fleet.is_closed:
            return False
        getattr(owner if what == "arrived" else fleet, what)(member, content)
        owner.go_on()
        owner.changed.notify_all()
    return True


def _kill(member: Member) -> None:
    with contextlib.suppress(RayError, ValueError, RuntimeError):
        if ray.is_initialized():  # a call would start it once more
            ray.kill(member.actor)


def _cause(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def _is_final(member: Member, error: BaseException) -> bool:
    """Return True if a worker could not be made, for a reason that others would have, too."""
    return member.place is None and "creation task" in str(error)


def _free() -> dict[str, float]:
    return _shown(ray.available_resources())


def _all() -> dict[str, float]:
    return _shown(ray.cluster_resources())


def _shown(found: dict[str, float]) -> dict[str, float]:
    """Resources as they are asked for, without those of single nodes."""
    return {k: v for k, v in sorted(found.items()) if ":" not in k and "memory" not in k}
