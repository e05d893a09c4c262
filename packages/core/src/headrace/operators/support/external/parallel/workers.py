"""Shared code of the processes and threads that run sources."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from headrace.errors import SourceWorkerError

if TYPE_CHECKING:
    from headrace.operators.support.external.parallel.tasks import Task, Traits
    from headrace.operators.support.external.parallel.wire_format import OutputSamples


@dataclass(slots=True, eq=False)
class TaskHandle:
    """A task that was given to a worker."""

    number: int
    source: int
    task: Task
    worker: int
    outcome: Any = None
    """Result of the task, once there is one."""
    discarded: bool = False
    packed: bytes = field(default=b"", repr=False)
    """The message, until it is sent."""


@dataclass(frozen=True, slots=True)
class SourceEntry:
    """A source, for the workers."""

    source: Any
    traits: Traits
    where: str
    """Name and line of the external source, for messages."""


class Workers(Protocol):
    """Processes or threads that do tasks."""

    size: int
    """Number of workers."""

    def submit(self, source: int, task: Task, worker: int | None = None) -> TaskHandle:
        """Have a task done, by worker number `worker` or by the one with the least to do."""

    def wait(self, handle: TaskHandle) -> list[OutputSamples]:
        """Wait for the result of a task."""

    def discard(self, handles: list[TaskHandle]) -> None:
        """Give up tasks whose results are not wanted any more."""

    def close(self) -> None:
        """End all workers."""


def useful_workers(entries: list[SourceEntry], wanted: int) -> int:
    """Number of the `wanted` workers that can have a task at a time."""
    if any(e.traits.indexed for e in entries):
        return wanted
    return min(wanted, sum(max(1, e.traits.shards) for e in entries))


def raised_in(error: BaseException, place: str) -> BaseException:
    """The error to raise for `error` of a source that a worker has called; `place` is added."""
    # Taken for what it is, a SystemExit or a StopIteration would end more than this batch.
    if not isinstance(error, Exception) or isinstance(error, StopIteration):
        found = SourceWorkerError(f"{type(error).__name__} in {place}")
        found.__cause__ = error
        return found
    error.add_note(f"raised in {place}")
    return error
