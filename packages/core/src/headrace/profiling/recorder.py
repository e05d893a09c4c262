"""Record of one pipeline: spans of work, and regular observations."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from headrace.profiling.rows import Observations, SharedRows, SpanRows


class Label(NamedTuple):
    """Activity that a span of time was spent on."""

    name: str
    """As the page shows it: ``fn.resize``."""
    kind: str
    """``"operator"``, ``"reader"``, ``"callback"`` (a function of the user's), ``"source"`` (an
    external source, asked in the consumer's thread), ``"chunk"`` (a few samples on their way
    through a stage, with all of its operators), ``"engine"``, ``"process"`` (a thread waits for
    a worker process), ``"launch"`` (work is given to a GPU), ``"take"`` (the consumer waits for a
    batch)."""
    number: int = -1
    """Of an operator, its place in the pipeline."""
    where: str = ""
    """The user's line that created the operator."""
    note: str = ""
    """Further remark."""
    device: str = "cpu"
    decodes: bool = False
    """True if images or audio are decoded here."""


@dataclass(slots=True)
class Setup:
    """Facts that do not change while a pipeline runs."""

    name: str = "pipeline"
    batch_size: int = 0
    threads: int = 1
    workers: str = "threads"
    """``"threads"`` or ``"processes"``."""
    depth: int = 2
    processors: int = 1
    """Number of processors that the program may use."""
    has_gpu: bool = False
    """True if there is a GPU, used or not."""
    device: str = "cpu"
    """``"cpu"``, or ``"gpu"`` where the pipeline has work for one."""
    has_python: bool = False
    """True if the user's functions are called for batches."""


@dataclass(eq=False)
class ProfileRecorder:
    """Rows of all threads and processes of one pipeline.

    Threads write to rows of their own, without a lock; the lock guards the lists.
    """

    setup: Setup = field(default_factory=Setup)
    labels: list[Label] = field(default_factory=list)
    lanes: dict[str, SpanRows] = field(default_factory=dict)
    """By the name of the thread or process."""
    looks: Observations = field(default_factory=Observations)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _own: dict[int, SpanRows] = field(default_factory=dict, repr=False)
    """By the number of a thread, while it lives."""

    def add_labels(self, labels: Iterable[Label]) -> int:
        """Take in labels; their codes follow one another from the one returned."""
        with self._lock:
            first = len(self.labels)
            self.labels += labels
            return first

    def here(self) -> SpanRows:
        """The rows of the calling thread."""
        found = self._own.get(threading.get_ident())
        return self.lane(threading.current_thread().name) if found is None else found

    def lane(self, name: str) -> SpanRows:
        """The rows of the calling thread, which are called `name`."""
        with self._lock:
            rows = self.lanes.get(name)
            if rows is None:
                rows = self.lanes[name] = SpanRows()
            self._own[threading.get_ident()] = rows
            return rows

    def process(self, pid: int) -> SharedRows:
        """The rows of a worker process."""
        name = f"worker process {pid}"
        rows = self.lanes.get(name)
        if rows is None:
            with self._lock:
                rows = self.lanes.setdefault(name, SharedRows())
        assert isinstance(rows, SharedRows)
        return rows


def resident_bytes() -> int:
    """Memory of this process that is in use by the system's count; 0 where it does not tell."""
    try:
        return int(_content("/proc/self/statm").split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except (OSError, IndexError, ValueError):
        return 0


def processor_wait_nanoseconds(others: Iterable[int] = ()) -> int:
    """Return the time that all threads of this process, and the main threads of the processes
    `others`, were ready and waited for a processor; -1 if the system does not tell.
    """
    total = 0
    try:
        own = [f"self/task/{thread}" for thread in os.listdir("/proc/self/task")]
        for which in (*own, *others):
            try:
                total += int(_content(f"/proc/{which}/schedstat").split()[1])
            except (FileNotFoundError, ProcessLookupError):  # it has ended
                continue
    except (OSError, IndexError, ValueError):
        return -1
    return total or -1


def _content(path: str) -> bytes:
    """The beginning of a file of the system's, without what Python does for files of text."""
    file = os.open(path, os.O_RDONLY)
    try:
        return os.read(file, 256)
    finally:
        os.close(file)
