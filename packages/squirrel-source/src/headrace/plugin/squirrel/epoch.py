"""One pass over one part of a data set: its shards, their order, and the threads that read them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from headrace.plugin.squirrel.dataset import ShardFolder
from headrace.plugin.squirrel.order import Counted, ShardSegment, emission, permutation, split
from headrace.plugin.squirrel.read_ahead import SegmentReader


@dataclass(frozen=True, slots=True)
class ReadSettings:
    """Settings for reading a data set; the same in every epoch."""

    folder: ShardFolder
    keys: Sequence[str]
    fields: frozenset[str]
    convert: Callable[[Any, str, int], tuple[Any, int]]
    workers: int
    readahead_bytes: int
    allow_pickle: bool = False
    lanes: int = 1
    shuffled: bool = False
    """True if shards are permuted for every epoch."""
    buffer: int = 1
    """Size of the shuffle buffer."""
    keys_seed: int = 0
    """Seed of the permutation of the shards: the same on all ranks."""
    buffer_seed: int = 0

    def seeded(self, seed: int) -> ReadSettings:
        """The same with another seed of the buffer."""
        return replace(self, buffer_seed=seed)

    def segments(
        self, epoch: int, part: int, parts: int, counts: Sequence[int] | None
    ) -> list[ShardSegment]:
        """Segments that part number `part` of `parts` reads in `epoch`, by numbers of shards."""
        shards: Sequence[int] = range(len(self.keys))
        if self.shuffled:
            shards = permutation(len(self.keys), self.keys_seed, epoch)
        if counts is None:
            assert parts == 1
            return [ShardSegment(shard) for shard in shards]
        return split(shards, counts, part, parts)

    def entries(
        self, segments: Sequence[ShardSegment], epoch: int, part: int
    ) -> list[tuple[int, int]]:
        """The order of all samples of `segments`, whose lengths are known."""
        if self.in_order:
            return [
                (slot, number)
                for slot, s in enumerate(segments)
                for number in range(s.start, s.stop or 0)
            ]
        return list(self.emission(Counted(segments), epoch, part))

    @property
    def in_order(self) -> bool:
        """True if segments are read one after the other."""
        return self.lanes == 1 and self.buffer <= 1

    def emission(self, known: Any, epoch: int, part: int) -> Iterator[tuple[int, int]]:
        """The order of the samples of what is `known`: numbers of segments and samples."""
        return emission(
            known,
            lanes=self.lanes,
            buffer=self.buffer,
            seed=self.buffer_seed,
            epoch=epoch,
            rank=part,
        )

    def start(
        self,
        segments: Sequence[ShardSegment],
        unneeded: Callable[[int, int], bool] | None = None,
    ) -> SegmentReader:
        """Begin to read `segments`."""
        return SegmentReader(
            (ShardSegment(self.keys[s.shard], s.start, s.stop) for s in segments),
            open_shard=self._open,
            convert=self.convert,
            lanes=self.lanes,
            workers=self.workers,
            readahead_bytes=self.readahead_bytes,
            held=self.buffer if self.buffer > 1 else 0,
            unneeded=unneeded,
        )

    def _open(self, key: str) -> Any:
        return self.folder.open(key, self.fields, allow_pickle=self.allow_pickle)


class Pass:
    """The samples of one epoch, from some position on."""

    def __init__(
        self,
        reading: ReadSettings,
        epoch: int,
        part: int = 0,
        parts: int = 1,
        counts: Sequence[int] | None = None,
        position: int = 0,
    ) -> None:
        segments = reading.segments(epoch, part, parts, counts)
        self._order: Iterator[tuple[int, int]]
        if counts is None:
            assert position == 0
            self._reader = reading.start(segments)
            self._order = reading.emission(self._reader, epoch, part)
            return
        entries = reading.entries(segments, epoch, part)
        if position:
            left = set(entries[position:])
            segments = _shortened(segments, left)
            self._reader = reading.start(segments, lambda *entry: entry not in left)
        else:
            self._reader = reading.start(segments)
        self._order = iter(entries[position:])

    def __iter__(self) -> Iterator[Any]:
        """Yield the converted samples, `SKIPPED` included."""
        return itertools.starmap(self._reader.take, self._order)

    def close(self) -> None:
        """Stop reading."""
        self._reader.close()


def _shortened(segments: Sequence[ShardSegment], left: set[tuple[int, int]]) -> list[ShardSegment]:
    """`segments` without what is at their beginning and not `left`; those done become empty."""
    first: dict[int, int] = {}
    for slot, number in left:
        first[slot] = min(number, first.get(slot, number))
    return [
        ShardSegment(s.shard, first.get(slot, s.stop or 0), s.stop)
        for slot, s in enumerate(segments)
    ]
