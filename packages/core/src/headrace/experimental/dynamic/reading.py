"""Reading ahead: a thread that loads the next batches of a reader while others are worked on."""

from __future__ import annotations

import contextlib
import os
import queue
import threading
import weakref
from collections import deque
from collections.abc import Sequence
from types import CodeType
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.errors import ErrorLocation, located
from headrace.executor.loader import Loader
from headrace.executor.source_names import SourceNames
from headrace.experimental.dynamic import lifetime
from headrace.experimental.dynamic.failures import described, raised_at
from headrace.experimental.dynamic.operations import ConfiguredOperator
from headrace.experimental.dynamic.single_sample import SingleSampleRunner
from headrace.experimental.dynamic.values import HostValue, ValueReference
from headrace.tensors.pool import HOST_POOL
from headrace.types import storage_dtype

if TYPE_CHECKING:
    from headrace.experimental.dynamic.thread_pools import ThreadPool
    from headrace.operators.readers.base import Reader as Source
    from headrace.operators.support.schema import Spec


_SMALL_BYTES = 4096
"""Samples up to this size are put side by side, which makes one array of a batch of labels."""


class PendingRead:
    """Samples of a reader that are being loaded, and a latch for threads that wait for them.

    Attributes
    ----------
    entries
        What is to be loaded.
    state
        Position of the reader before it drew the entries, if it may be asked for.
    references
        Where the outputs go, until they are there.
    error
        What went wrong, if something did.
    """

    __slots__ = (
        "_latch",
        "code",
        "entries",
        "error",
        "instruction",
        "place",
        "references",
        "state",
    )

    def __init__(
        self,
        entries: np.ndarray,
        state: dict[str, Any] | None,
        specs: Sequence[Spec],
        size: int | None,
        place: ReaderName,
    ) -> None:
        self.entries = entries
        self.state = state
        self.place = place
        self.references: tuple[ValueReference, ...] = tuple(
            [ValueReference(spec, size, None, self) for spec in specs]
        )
        self.error: BaseException | None = None
        self.code: CodeType | None = None
        self.instruction = 0
        self._latch: threading.Lock | None = threading.Lock()
        self._latch.acquire()

    def complete(self, values: Sequence[HostValue] | None, error: BaseException | None) -> None:
        """Hand over the outputs, or what went wrong."""
        if values is not None:
            for reference, value in zip(self.references, values, strict=True):
                reference.value = value
        self.error = error
        # They refer to this object for as long as an error may be read.
        self.references = ()
        latch = self._latch
        self._latch = None
        assert latch is not None
        latch.release()

    def wait(self) -> None:
        """Return when it is complete."""
        latch = self._latch
        if latch is not None:
            latch.acquire()
            latch.release()  # for the next one who waits

    @property
    def is_complete(self) -> bool:
        """True if the outputs are there, or the call has failed."""
        return self._latch is None

    def ensure(self) -> None:
        """Return when the outputs are there."""
        self.wait()
        if self.error is not None:
            what = f"An error happened during asynchronous execution of `{self.place.shown}`"
            place = "" if self.code is None else described(self.code, self.instruction)
            raise raised_at(self.error, what, place) from self.error


class ReaderName:
    """Name of a reader in messages."""

    __slots__ = ("name", "shown")

    def __init__(self, shown: str, name: str | None) -> None:
        self.shown = shown
        self.name = name

    def where(self, sample: int | None = None, source: str | None = None) -> ErrorLocation:
        """The place of one sample."""
        return ErrorLocation(self.shown, self.name, (), sample, source)


class ReaderQueue:
    """Loads batches of one reader in the background, in the order in which they were drawn.

    Entries are drawn by the thread that iterates, so that the position of the reader is its own
    affair; the background thread does the rest.
    """

    def __init__(self, source: Source, place: ReaderName, *, keep_states: bool) -> None:
        self._source = source
        self._loading = _Loading(source)
        self._place = place
        self._keep_states = keep_states
        self._ahead: deque[tuple[PendingRead, tuple[ValueReference, ...]]] = deque()
        self._tasks: queue.SimpleQueue[_Task | None] | None = None
        self._thread: threading.Thread | None = None
        self._pid = 0
        self.pool: ThreadPool | None = None
        """Threads that samples are shared out to where each is much work."""

    @property
    def state(self) -> dict[str, Any]:
        """The position of the reader as its consumer sees it: after the last batch taken."""
        if self._ahead:
            state = self._ahead[0][0].state
            assert state is not None
            return state
        return dict(self._source.state())

    def take(self, size: int | None, depth: int) -> tuple[PendingRead, tuple[ValueReference, ...]]:
        """The next batch, and references to its outputs."""
        ahead = self._ahead
        if self._pid != os.getpid():
            self._start()
        if size is None and not ahead:
            self._draw(size, 1)  # the first one need not wait for the others
        if len(ahead) * 2 <= depth:
            self._draw(size, depth + 1 - len(ahead))
        return ahead.popleft()

    def peek(self, size: int | None, number: int) -> tuple[ValueReference, ...]:
        """References to the outputs of a later batch, which is not taken."""
        if len(self._ahead) <= number:
            self._draw(size, number + 1 - len(self._ahead))
        return self._ahead[number][1]

    def take_alone(self, size: int | None) -> tuple[PendingRead, tuple[ValueReference, ...]]:
        """The next batch, of any size, and none ahead of it. No batch may be in flight."""
        if self._pid != os.getpid():
            self._start()
        self._draw(size, 1)
        return self._ahead.popleft()

    def _draw(self, size: int | None, count: int) -> None:
        source, keep = self._source, self._keep_states
        drawn = []
        for _ in range(count):
            state = dict(source.state()) if keep else None
            entries = np.array(source.draw(1 if size is None else size), np.int64)
            own = None if size is None else len(entries)
            drawn.append(PendingRead(entries, state, self._loading.specs, own, self._place))
        self._ahead.extend([(reading, reading.references) for reading in drawn])
        tasks = self._tasks
        assert tasks is not None
        if size is None:
            tasks.put(_Task(self._loading, drawn, self.pool))
        else:
            for reading in drawn:
                tasks.put(_Task(self._loading, [reading], self.pool))

    def _start(self) -> None:
        """Start the thread; in a forked child, with the tasks of the parent's thread."""
        self._pid = os.getpid()
        tasks = self._tasks = queue.SimpleQueue()
        weakref.finalize(self, tasks.put, None).atexit = False
        for number, (reading, references) in enumerate(self._ahead):
            if not reading.is_complete:
                size = references[0].size
                specs = self._loading.specs
                again = PendingRead(reading.entries, reading.state, specs, size, self._place)
                self._ahead[number] = again, again.references
                tasks.put(_Task(self._loading, [again], self.pool))
        self._thread = threading.Thread(
            target=_work, args=(tasks,), name="headrace-reader", daemon=True
        )
        self._thread.start()
        lifetime.track(self)

    def stop(self) -> list[threading.Thread]:
        """Drop the tasks that have not begun, and let the thread end; return the thread."""
        tasks, thread = self._tasks, self._thread
        if tasks is None or thread is None or self._pid != os.getpid():
            return []
        with contextlib.suppress(queue.Empty):
            while True:
                tasks.get_nowait()
        tasks.put(None)
        return [thread]


def _work(tasks: queue.SimpleQueue[_Task | None]) -> None:
    while (task := tasks.get()) is not None:
        task()
        del task  # what it has loaded belongs to the user by now


class _Task:
    """Readings to be loaded together."""

    __slots__ = ("loading", "pool", "readings")

    def __init__(
        self, loading: _Loading, readings: list[PendingRead], pool: ThreadPool | None
    ) -> None:
        self.loading = loading
        self.readings = readings
        self.pool = pool

    def __call__(self) -> None:
        loading, readings = self.loading, self.readings
        loaded = None
        if len(readings) > 1:
            loaded = loading.load(np.concatenate([reading.entries for reading in readings]))
        first = 0
        for reading in readings:
            count = len(reading.entries)
            values, error = None, None
            try:
                if loaded is None:
                    columns, sources = loading.load(reading.entries) or (None, None)
                else:
                    columns = [column[first : first + count] for column in loaded[0]]
                    sources = loaded[1][first : first + count]
                values = loading.values(reading, columns, sources, self.pool)
            except BaseException as problem:  # whatever it is, a thread waits for the batch
                error = problem
            first += count
            reading.complete(values, error)


class _Loading:
    """Loads and parses samples of one reader."""

    def __init__(self, reader: Source) -> None:
        self._loader = Loader(reader.index)
        self._specs = self._loader.specs
        self.specs = reader.output_specs()
        self._handed = 0
        """Number of leading columns of what is loaded that go to the parser."""
        self._solo: SingleSampleRunner | None = None
        if reader.parses:
            self._handed = len(reader.parser_inputs())
            specs = self.specs[: len(self.specs) - len(reader.index.columns)]
            node = ConfiguredOperator(reader.schema, "cpu", vars(reader.args)).node()
            self._solo = SingleSampleRunner(node, reader, specs)

    def load(self, entries: np.ndarray) -> tuple[list[Any], SourceNames] | None:
        """The columns of samples, and where these come from; `None` where one is missing."""
        try:
            missing, columns, sources = self._loader.load(entries, HOST_POOL.empty)
        except Exception:  # whatever it is, `fetch` meets it again and knows the sample
            return None
        return None if missing else (columns, sources)

    def values(
        self,
        reading: PendingRead,
        columns: list[Any] | None,
        sources: SourceNames | None,
        pool: ThreadPool | None,
    ) -> list[HostValue]:
        """The outputs of samples that were loaded, if any could be."""
        count = len(reading.entries)
        samples: list[Any] = [None] * count
        found = SourceNames(count) if sources is None else sources
        handed = None if columns is None else columns[: self._handed]

        def work(k: int) -> None:
            try:
                if handed is None:
                    entry = int(reading.entries[k])
                    found[k] = self._loader.index.source(entry)
                    whole = self._loader.fetch(None, entry)  # type: ignore[arg-type]
                else:
                    whole = tuple([column[k] for column in handed])
                samples[k] = self._parsed(whole, found[k])
            except BaseException as error:
                raise located(error, reading.place.where(k, found[k] or None)) from error

        if columns is None or self._solo is not None:
            if pool is not None and count > 1:
                pool._threads.each(work, count)
            else:
                for k in range(count):
                    work(k)
            made = [list(rows) for rows in zip(*samples, strict=True)]
            columns = made if columns is None else [*made, *columns[self._handed :]]
        return [_value(c, spec, found) for c, spec in zip(columns, self.specs, strict=True)]

    def _parsed(self, whole: tuple[Any, ...], source: str) -> tuple[Any, ...]:
        """The outputs of the parser, which replace the first of these values, and the others."""
        if self._solo is None:
            return whole
        handed = [
            HostValue([value], spec, [source])
            for value, spec in zip(whole[: self._handed], self._specs, strict=False)
        ]
        made = self._solo.run(handed)
        return (*[value.rows[0] for value in made], *whole[self._handed :])


def _value(column: Any, spec: Spec, sources: SourceNames) -> HostValue:
    dtype = storage_dtype(spec.dtype)
    first = column[0]
    if first.nbytes <= _SMALL_BYTES and all(row.shape == first.shape for row in column):
        column = np.array(column, dtype)
    if isinstance(column, np.ndarray):
        return HostValue([column[k, ...] for k in range(len(column))], spec, sources, column)
    return HostValue([own_row(row, dtype) for row in column], spec, sources)


def own_row(row: np.ndarray, dtype: np.dtype) -> np.ndarray:
    """A sample as users get it: C-contiguous, and theirs to export."""
    found = np.ascontiguousarray(row, dtype).reshape(row.shape)
    return found if found.flags.writeable else found.copy()
