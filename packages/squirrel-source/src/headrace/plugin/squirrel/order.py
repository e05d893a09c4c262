"""Order of samples: shards permuted for each epoch, split among ranks, read side by side, and
shuffled by a buffer.

All of it follows from the seeds, the epoch, and how many samples each shard has. It never
depends on threads, and a position in it is one number.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

_WORD = (1 << 64) - 1
_KEYS, _BUFFER = 1, 2


@dataclass(frozen=True, slots=True)
class ShardSegment:
    """A run of samples of one shard."""

    shard: Any
    """Its key, or its number."""
    start: int = 0
    stop: int | None = None
    """Number of the sample after the last; the end of the shard when not given."""


class Segments(Protocol):
    """Segments to read, as far as they are known."""

    def segment(self, slot: int) -> ShardSegment | None:
        """Segment number `slot`; `None` after the last."""

    def has(self, slot: int, number: int) -> bool:
        """True if segment `slot` has sample `number` of its shard."""


class Counted:
    """Segments whose lengths are known before anything is read."""

    def __init__(self, segments: Sequence[ShardSegment]) -> None:
        self._segments = segments

    def segment(self, slot: int) -> ShardSegment | None:
        """Segment number `slot`; `None` after the last."""
        return self._segments[slot] if slot < len(self._segments) else None

    def has(self, slot: int, number: int) -> bool:
        """True if segment `slot` has sample `number` of its shard."""
        stop = self._segments[slot].stop
        assert stop is not None
        return number < stop


def _words(seed: int, epoch: int, purpose: int, rank: int = 0) -> np.random.Philox:
    """Random 64-bit words that are a function of the arguments; equal on every machine."""
    position = (epoch & 0xFFFFFFFF) << 32 | purpose << 24 | (rank & 0xFFFFFF)
    return np.random.Philox(key=np.array([seed & _WORD, position], np.uint64))


def permutation(count: int, seed: int, epoch: int) -> list[int]:
    """The order of `count` shards in `epoch`: the same on all ranks."""
    words = _words(seed, epoch, _KEYS).random_raw(count)
    return np.argsort(np.atleast_1d(words), kind="stable").tolist() if count else []


def split(
    shards: Sequence[int], counts: Sequence[int], part: int, parts: int
) -> list[ShardSegment]:
    """Part number `part` of all samples of `shards`, put one after the other in this order.

    Part ``k`` of ``S`` holds samples ``floor(k N / S)`` to ``floor((k + 1) N / S)`` of them: the
    parts are as equal as can be, hold everything between them, and share nothing.
    """
    total = sum(counts[shard] for shard in shards)
    first, last = part * total // parts, (part + 1) * total // parts
    segments = []
    begin = 0
    for shard in shards:
        start, stop = max(first - begin, 0), min(last - begin, counts[shard])
        if start < stop:
            segments.append(ShardSegment(shard, start, stop))
        begin += counts[shard]
    return segments


def emission(
    known: Segments, *, lanes: int, buffer: int, seed: int, epoch: int, rank: int = 0
) -> Iterator[tuple[int, int]]:
    """The order of samples: pairs of the number of a segment and that of a sample of its shard."""
    entries = _side_by_side(known, lanes)
    return (
        entries if buffer <= 1 else _buffered(entries, buffer, _words(seed, epoch, _BUFFER, rank))
    )


def _side_by_side(known: Segments, lanes: int) -> Iterator[tuple[int, int]]:
    begun = _with_samples(known)
    active = list(itertools.islice(begun, lanes))
    turn = 0
    while active:
        turn %= len(active)
        slot, number = active[turn]
        yield slot, number
        if known.has(slot, number + 1):
            active[turn] = slot, number + 1
            turn += 1
            continue
        following = next(begun, None)
        if following is None:
            del active[turn]
        else:
            active[turn] = following
            turn += 1


def _with_samples(known: Segments) -> Iterator[tuple[int, int]]:
    """The first sample of each segment that has any."""
    for slot in itertools.count():
        segment = known.segment(slot)
        if segment is None:
            return
        if known.has(slot, segment.start):
            yield slot, segment.start


def _buffered(
    entries: Iterator[tuple[int, int]], size: int, words: np.random.Philox
) -> Iterator[tuple[int, int]]:
    held: list[tuple[int, int]] = []
    for entry in entries:
        if len(held) < size:
            held.append(entry)
            continue
        drawn = _below(words, size)
        yield held[drawn]
        held[drawn] = entry
    while held:
        drawn = _below(words, len(held))
        yield held[drawn]
        held[drawn] = held[-1]
        held.pop()


def _below(words: np.random.Philox, bound: int) -> int:
    return int(words.random_raw()) * bound >> 64
