"""Shared memory without a name: it comes back, grows, and is let go."""

from __future__ import annotations

import os

import numpy as np
import pytest

from headrace.executor.sources.segments import (
    IDLE_LIMIT,
    SegmentReader,
    SegmentWriter,
    open_segment,
)


class Both:
    """The two sides, in one process."""

    def __init__(self):
        self.reader = SegmentReader()
        self.writer = SegmentWriter(self._announce)

    def _announce(self, number, file, size):
        self.reader.add(number, os.dup(file), size)

    def handed_over(self, size):
        self.writer.give_back(self.reader.collect())
        segment = self.writer.take(size)
        found = self.reader.borrow(segment.number)
        self.reader.drop(self.writer.dropped)
        self.writer.dropped.clear()
        return segment, found


def test_both_sides_see_the_same_memory():
    segment, seen = Both().handed_over(100)
    segment.memory[:100] = 7
    assert (seen[:100] == 7).all()


def test_segments_return_when_no_view_is_left():
    both = Both()
    segment, seen = both.handed_over(100)
    view = np.ndarray((5, 5), np.float32, seen, 0)[1:]
    del seen
    assert both.reader.lent == 1
    del view
    assert both.reader.lent == 0
    assert both.handed_over(100)[0] is segment


def test_a_segment_in_use_is_not_used_again():
    both = Both()
    first, kept = both.handed_over(100)
    second, _ = both.handed_over(100)
    assert first is not second
    del kept


def test_segments_that_are_too_small_are_replaced():
    both = Both()
    small, seen = both.handed_over(1000)
    del seen
    large, seen = both.handed_over(1_000_000)
    assert large.size >= 1_000_000
    assert both.reader.sizes() == [large.size]
    assert small.number not in both.reader._segments
    del seen
    again, _ = both.handed_over(5)
    assert again is large


def test_few_idle_segments_are_kept():
    both = Both()
    kept = [both.handed_over(10)[1] for _ in range(3 * IDLE_LIMIT)]
    kept.clear()
    _, seen = both.handed_over(10)
    assert len(both.reader.sizes()) <= IDLE_LIMIT + 1
    assert seen.size


def test_memory_outlives_its_segment():
    both = Both()
    segment, seen = both.handed_over(10)
    segment.memory[:10] = 3
    both.reader.drop([segment.number])
    del both, segment
    assert (seen[:10] == 3).all()


def test_nothing_has_a_name():
    file = open_segment(4096)
    place = os.readlink(f"/proc/self/fd/{file}") if os.path.isdir("/proc/self/fd") else ""
    os.close(file)
    assert not place.startswith("/dev/shm") or place.endswith("(deleted)")


def test_too_much_memory():
    with pytest.raises(MemoryError, match="bytes of a parallel source"):
        open_segment(1 << 60)
