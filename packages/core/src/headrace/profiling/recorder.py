"""Record of one pipeline: spans of work, and regular observations."""

from __future__ import annotations

import contextvars
import importlib
import os
import threading
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass, field
from time import perf_counter_ns, thread_time_ns
from typing import TYPE_CHECKING, Any, NamedTuple

from headrace.profiling.rows import Observations, SharedRows, SpanRows

if TYPE_CHECKING:
    from typing import Self

CONSUMER = "consumer"
"""Lane of the thread that takes batches, whichever that is."""


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


class Span:
    """Work of a thread that nothing records."""

    code = iteration = samples = first = 0
    """See `headrace.profiling.rows.SPAN`; may be set until the span ends. A negative code leaves
    the span out."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass


class _RecordedSpan(Span):
    """Work of a thread, a row when it has ended, and a range for tools of NVTX if it has a name."""

    def __init__(
        self, recorder: ProfileRecorder, rows: SpanRows, fields: tuple[int, ...], name: str
    ) -> None:
        self._recorder, self._rows, self._name = recorder, rows, name
        self.code, self.iteration, self.samples, self.first = fields

    def __enter__(self) -> Self:
        self._begin, self._worked = perf_counter_ns(), thread_time_ns()
        if self._name:
            self._recorder.ranges[0](self._name)
        return self

    def __exit__(self, *_: object) -> None:
        if self._name:
            self._recorder.ranges[1]()
        if self.code >= 0:
            fields = self.code, self.iteration, self.samples, self.first
            self._rows.note_since(*fields, self._begin, self._worked)


class SpanRecorder:
    """Recorder of spans; this one, of a pipeline that is not profiled, does nothing."""

    is_on = False

    def code(self, key: Hashable, labels: Callable[[], Iterable[Label]]) -> int:
        """Code of the first of `labels`, which are made once for each `key`."""
        return 0

    def span(
        self,
        code: int,
        iteration: int = -1,
        samples: int = 0,
        first: int = 0,
        *,
        is_range: bool = False,
        lane: str = "",
    ) -> Span:
        """Context in which the calling thread does the work with this code, on its own lane or the
        one given; `is_range`: shown by tools of NVTX, too.
        """
        return _NOTHING

    def end(self) -> None:
        """Note that the pipeline has ended."""


_NOTHING = Span()
NO_RECORD = SpanRecorder()


@dataclass(eq=False)
class ProfileRecorder(SpanRecorder):
    """Rows of all threads and processes of one pipeline.

    Threads write to rows of their own, without a lock; the lock guards the lists.
    """

    is_on = True
    setup: Setup = field(default_factory=Setup)
    labels: list[Label] = field(default_factory=list)
    lanes: dict[str, SpanRows] = field(default_factory=dict)
    """By the name of the thread or process."""
    looks: Observations = field(default_factory=Observations)
    padding: Callable[[], float] = float
    """Returns the share of padding in padded batches."""
    ended: Callable[[ProfileRecorder], None] | None = None
    """Called when the pipeline has ended."""
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)
    _own: dict[int, SpanRows] = field(default_factory=dict, repr=False)
    """By the number of a thread, while it lives."""

    _codes: dict[Hashable, int] = field(default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        self.ranges = _ranges()

    def code(self, key: Hashable, labels: Callable[[], Iterable[Label]]) -> int:
        """As `SpanRecorder.code`; the codes of the others follow."""
        found = self._codes.get(key)
        if found is None:  # two threads may come to it at once: some labels are of no use then
            made = list(labels())
            with self._lock:
                found = self._codes.setdefault(key, len(self.labels))
                self.labels += made
        return found

    def span(
        self,
        code: int,
        iteration: int = -1,
        samples: int = 0,
        first: int = 0,
        *,
        is_range: bool = False,
        lane: str = "",
    ) -> Span:
        """As `SpanRecorder.span`."""
        name = ""
        if is_range:
            label = self.labels[code]
            name = label.name
            if label.kind == "launch":
                name = f"headrace {name} of batch {iteration}"
        rows = self.lanes.get(lane) if lane else self.here()
        if rows is None:
            rows = self.lanes.setdefault(lane, SpanRows())
        return _RecordedSpan(self, rows, (code, iteration, samples, first), name)

    def end(self) -> None:
        """Have the profile written."""
        # A finalizer may call no ufunc: on Python 3.11 it may run while `np.errstate` is being
        # left, and NumPy would remember the state that goes. In a context of its own it remembers
        # nothing.
        if self.ended is not None:
            contextvars.Context().run(self.ended, self)

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


def _ranges() -> tuple[Callable[[str], Any], Callable[[], Any]]:
    """Return the functions that begin and end an NVTX range: CuPy's, those of the library `nvtx`,
    or none.
    """
    for module, push, pop in (
        ("cupy.cuda.nvtx", "RangePush", "RangePop"),
        ("nvtx", "push_range", "pop_range"),
    ):
        try:
            found = importlib.import_module(module)
            return getattr(found, push), getattr(found, pop)
        except (ImportError, AttributeError):
            continue
    return _nothing, _nothing


def _nothing(*_: Any) -> None:
    pass


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
