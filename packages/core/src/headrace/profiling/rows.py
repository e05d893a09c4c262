"""Rows of numbers in memory that is there before they come: no object for each of them."""

from __future__ import annotations

import struct
import threading
from collections import deque
from time import perf_counter_ns, thread_time_ns
from typing import Any

import numpy as np

SPAN = np.dtype(
    [
        ("code", "<i4"),
        ("iteration", "<i4"),
        ("samples", "<i4"),
        ("first", "<i4"),
        ("begin", "<i8"),
        ("end", "<i8"),
        ("processor", "<i8"),
    ]
)
"""Span of a thread's work. ``code`` is that of a `Label`; ``first`` the index of the first sample
in the batch; ``begin`` and ``end`` are nanoseconds of `time.perf_counter_ns`, which all processes
of a machine share; ``processor`` is the processor time in nanoseconds."""

LOOK = np.dtype(
    [
        ("time", "<i8"),
        ("queued", "<i4"),
        ("ready", "<i4"),
        ("pool_used", "<i8"),
        ("pool_idle", "<i8"),
        ("device_pool", "<i8"),
        ("resident", "<i8"),
        ("interpreter_wait", "<i8"),
        ("processor_wait", "<i8"),
    ]
)
"""Observation by the sampler: iterations in the queue and how many of them are complete, bytes of
memory, the nanoseconds that it took to get the interpreter, and those that all threads of the
process have waited for a processor so far; -1 where unknown."""

_FORMATS = {SPAN: struct.Struct("<iiiiqqq"), LOOK: struct.Struct("<qiiqqqqqq")}
_ROWS_A_BLOCK = 16_384
_MOST_BLOCKS = 24
"""Of a thread, 16 MB: what it did in its last 400,000 steps."""


class RowBuffer:
    """Rows that one thread writes; the oldest are dropped when there are very many."""

    def __init__(self, dtype: np.dtype, rows: int) -> None:
        self.dtype = dtype
        self._pack: Any = _FORMATS[dtype].pack_into
        self._row_bytes = dtype.itemsize
        self._size = rows * dtype.itemsize
        self._block = bytearray(self._size)
        self._used = 0
        self._full: deque[bytearray] = deque(maxlen=_MOST_BLOCKS)
        self.is_cut = False
        """True if rows were dropped."""

    def _begin_block(self) -> None:
        self.is_cut |= len(self._full) == _MOST_BLOCKS
        self._full.append(self._block)
        self._block = bytearray(self._size)
        self._used = 0

    def taken(self) -> bytes:
        """All rows, packed; they are forgotten here. For threads that have few at a time."""
        found = b"".join((*self._full, self._block[: self._used]))
        self._full.clear()
        self._used = 0
        return found

    def array(self) -> np.ndarray:
        """A copy of all rows, as a structured array; any thread may ask for it."""
        block, used = self._block, self._used
        parts: list[bytes | bytearray] = [*self._full, block[:used]]
        return np.frombuffer(b"".join(parts), self.dtype)


class SpanRows(RowBuffer):
    """Rows of `SPAN`, of a thread."""

    def __init__(self, rows: int = _ROWS_A_BLOCK) -> None:
        super().__init__(SPAN, rows)

    # The columns by name: to pack and unpack them as a tuple takes as long as all the rest.
    def note(
        self,
        code: int,
        iteration: int,
        samples: int,
        first: int,
        begin: int,
        end: int,
        processor: int,
    ) -> None:
        """Add a row: see `SPAN`."""
        used = self._used
        if used == self._size:
            self._begin_block()
            used = 0
        self._pack(self._block, used, code, iteration, samples, first, begin, end, processor)
        self._used = used + self._row_bytes

    def note_since(
        self, code: int, iteration: int, samples: int, first: int, begin: int, worked: int
    ) -> None:
        """Add a row of a span that began at `begin` and ends now.

        The thread had taken `worked` nanoseconds of a processor when it began.
        """
        used = thread_time_ns() - worked
        self.note(code, iteration, samples, first, begin, perf_counter_ns(), used)


class Observations(RowBuffer):
    """Rows of `LOOK`, of the sampler."""

    def __init__(self, rows: int = _ROWS_A_BLOCK) -> None:
        super().__init__(LOOK, rows)

    def note(
        self,
        time: int,
        queued: int,
        ready: int,
        used: int,
        idle: int,
        device: int,
        resident: int,
        waited: int,
        delay: int,
    ) -> None:
        """Add a row: see `LOOK`."""
        at = self._used
        if at == self._size:
            self._begin_block()
            at = 0
        pack, block = self._pack, self._block
        pack(block, at, time, queued, ready, used, idle, device, resident, waited, delay)
        self._used = at + self._row_bytes


class SharedRows(SpanRows):
    """Rows that several threads write, many at a time: those of a worker process."""

    def __init__(self) -> None:
        super().__init__()
        self._lock = threading.Lock()

    def add(self, packed: bytes, base: int) -> None:
        """Add rows that `SpanRows.taken` has returned; `base` is added to their codes."""
        rows = np.frombuffer(packed, self.dtype).copy()
        rows["code"] += base
        left = memoryview(rows.tobytes())
        with self._lock:
            while left:
                if self._used == self._size:
                    self._begin_block()
                count = min(len(left), self._size - self._used)
                self._block[self._used : self._used + count] = left[:count]
                self._used += count
                left = left[count:]
