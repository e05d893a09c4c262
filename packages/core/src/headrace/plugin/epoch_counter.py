"""Position of an iterator within its epoch: batches left, and samples that count.

Plain arithmetic on sizes, without pipelines, so that each policy can be read and tested by itself.
Readers never stop: without padding the samples of the next epoch follow at once and share a batch
with the last ones of this epoch. An epoch is thus something the iterator counts, and what it has
read of the next epoch must be accounted for, in the same way as DALI does it:

* ``FILL`` counts what was read ahead as part of the next epoch, which gets shorter by it.
* ``DROP`` and ``PARTIAL`` do not: they drop a batch, or a part of one, that goes beyond the epoch,
  and the next epoch begins with whatever the reader gives next.
"""

from __future__ import annotations

import enum
import itertools
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol


class LastBatchPolicy(enum.Enum):
    """Treatment of the last batch of an epoch when too few samples are left to fill it."""

    FILL = 0
    """It is filled up: with samples of the next epoch, or by the padding of the reader."""
    DROP = 1
    """It is dropped."""
    PARTIAL = 2
    """It is cut to the samples that are left."""


class DrawnBatch(NamedTuple):
    """Entries that one pipeline drew for one batch, and the samples they became.

    `batch_size`: number of samples in the batch. `skipped`: number of further entries that were
    drawn and turned out to be bad. `draw_numbers`: for each sample of the batch, the index of its
    entry among those drawn. `None` for 0, 1, 2, ...
    """

    batch_size: int
    skipped: int = 0
    draw_numbers: Sequence[int] | None = None

    @property
    def drawn(self) -> int:
        """Number of entries that were drawn."""
        return self.batch_size + self.skipped

    def kept(self, entries: int) -> int | list[int]:
        """Samples that are among the first `entries` drawn: so many from the front, or which."""
        if self.draw_numbers is None:
            return max(0, min(entries, self.batch_size))
        chosen = [i for i, number in enumerate(self.draw_numbers) if number < entries]
        if chosen == list(range(len(chosen))):
            return len(chosen)
        return chosen


class EpochCounter(Protocol):
    """Position of an iterator in its epoch."""

    @property
    def size(self) -> int:
        """Number of samples in an epoch as DALI counts it, or -1."""
        ...

    @property
    def counted(self) -> int:
        """Number of samples counted in this epoch, those read ahead of it included."""
        ...

    def steps_left(self) -> int | None:
        """Return the number of batches left in this epoch; `None` if only the data can tell."""
        ...

    def leftover_steps(self) -> int:
        """Return the number of batches to read and drop before the next epoch begins."""
        ...

    def advance(self, deliveries: Sequence[DrawnBatch]) -> Sequence[int | list[int]] | None:
        """Count a batch of each pipeline."""
        ...

    def beyond(self, pipelines: int) -> list[int]:
        """Return, for each pipeline, the number of samples at the end of its last batch that are
        not the epoch's.

        Bad samples that were skipped are not counted.
        """
        ...

    def next_epoch(self) -> None:
        """Begin the next epoch after the end of this one."""
        ...

    def restart(self, shards: Sequence[int] | None) -> None:
        """Begin an epoch with readers that have just jumped to the beginning of `shards`."""
        ...

    def state(self) -> dict[str, Any]:
        """Everything that `restore` needs to go on from here."""
        ...

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from `state`."""
        ...


class EndlessCounter:
    """An epoch that lasts until the pipeline has no more data."""

    size = -1

    def __init__(self) -> None:
        self.counted = 0

    def steps_left(self) -> int | None:
        """Return `None`: it is unknown."""
        return None

    def leftover_steps(self) -> int:
        """None: the pipeline has no more."""
        return 0

    def advance(self, deliveries: Sequence[DrawnBatch]) -> Sequence[int | list[int]] | None:
        """Every sample counts."""
        sizes = [d.batch_size for d in deliveries]
        self.counted += sum(sizes)
        return sizes

    def beyond(self, pipelines: int) -> list[int]:
        """All samples are the epoch's."""
        return [0] * pipelines

    def next_epoch(self) -> None:
        """Begin the next epoch."""
        self.counted = 0

    def restart(self, shards: Sequence[int] | None) -> None:
        """Begin an epoch with readers at the beginning of one."""
        self.counted = 0

    def state(self) -> dict[str, Any]:
        """Nothing to remember."""
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """There is nothing to remember."""


class SizeCounter:
    """An epoch of a given number of samples, all pipelines together."""

    def __init__(
        self, size: int, pipelines: int, batch_size: int, policy: LastBatchPolicy, padded: bool
    ) -> None:
        self.size = size
        self._per_step = pipelines * batch_size
        self._policy = policy
        self._carries = policy is LastBatchPolicy.FILL and not padded
        self.counted = 0

    def steps_left(self) -> int | None:
        """Return the number of batches left in this epoch."""
        left = max(0, self.size - self.counted)
        if self._policy is LastBatchPolicy.DROP:
            return left // self._per_step
        return -(-left // self._per_step)

    def leftover_steps(self) -> int:
        """One, if the last batch is incomplete and dropped."""
        return int(self._policy is LastBatchPolicy.DROP and self.counted < self.size)

    def advance(self, deliveries: Sequence[DrawnBatch]) -> Sequence[int | list[int]] | None:
        """Count a batch of each pipeline."""
        left = self.size - self.counted
        self.counted += sum(d.drawn for d in deliveries)
        if left >= sum(d.drawn for d in deliveries):
            return [d.batch_size for d in deliveries]
        kept = []
        for delivery in deliveries:  # the surplus is that of the last pipelines
            kept.append(delivery.kept(max(0, left)))
            left -= delivery.drawn
        return _last(self._policy, deliveries, kept, fills=self._carries)

    def beyond(self, pipelines: int) -> list[int]:
        """Samples of the last batches that are not the epoch's: those of the last pipelines."""
        left = max(0, self.counted - self.size)
        each = self._per_step // pipelines
        found = []
        for _ in range(pipelines):
            found.append(min(left, each))
            left -= found[-1]
        return found[::-1]

    def next_epoch(self) -> None:
        """Begin the next epoch; samples read ahead count."""
        self.counted = max(0, self.counted) % self.size if self._carries else 0

    def restart(self, shards: Sequence[int] | None) -> None:
        """Begin an epoch with readers at the beginning of one."""
        self.counted = 0

    def state(self) -> dict[str, Any]:
        """Number of samples counted."""
        return {"counter": self.counted}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from `state`."""
        self.counted = int(state["counter"])


def _last(
    policy: LastBatchPolicy,
    deliveries: Sequence[DrawnBatch],
    kept: Sequence[int | list[int]],
    *,
    fills: bool,
) -> Sequence[int | list[int]] | None:
    """Samples of a last batch of which `kept` are the epoch's: none if all of these were bad."""
    if policy is LastBatchPolicy.DROP or not (fills or any(kept)):
        return None
    if policy is LastBatchPolicy.PARTIAL:
        return kept
    return [delivery.batch_size for delivery in deliveries]


class BatchCounter:
    """An epoch of so many batches, of any number of samples, for each shard: of `bucket_by`."""

    def __init__(self, size: int, steps: int) -> None:
        self.size = size
        self._steps = self._usual = steps
        self._given = 0
        self.counted = 0

    def steps_left(self) -> int | None:
        """Return the number of batches left in this epoch."""
        return self._steps - self._given

    def leftover_steps(self) -> int:
        """None: all are the epoch's."""
        return 0

    def advance(self, deliveries: Sequence[DrawnBatch]) -> Sequence[int | list[int]] | None:
        """Count a batch of each pipeline."""
        self._given += 1
        sizes = [d.batch_size for d in deliveries]
        self.counted += sum(sizes)
        return sizes

    def beyond(self, pipelines: int) -> list[int]:
        """All samples are the epoch's."""
        return [0] * pipelines

    def next_epoch(self) -> None:
        """Begin the next epoch."""
        self.restart(None)

    def restart(self, shards: Sequence[int] | None) -> None:
        """Begin an epoch with readers at the beginning of one."""
        self._steps, self._given, self.counted = self._usual, 0, 0

    def state(self) -> dict[str, Any]:
        """Number of batches and samples counted."""
        return {"steps": self._steps, "given": self._given, "counter": self.counted}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from `state`."""
        self._steps, self._given = int(state["steps"]), int(state["given"])
        self.counted = int(state["counter"])

    def begin_rest(self, steps: int) -> None:
        """Begin an epoch with readers that continue the rest of another number of shards."""
        self.restart(None)
        self._steps = steps


class ReaderCounter:
    """An epoch of a reader whose data set is shared by shards, one or more of which are here.

    All shards are counted, also those read by pipelines elsewhere, so that iterators in all
    processes agree on the number of batches without talking to each other: as many as there would
    be without bad samples. An epoch of a single pipeline ends with its last good sample.
    """

    def __init__(
        self,
        epoch_size: int,
        num_shards: int,
        shards: Sequence[int],
        batch_size: int,
        policy: LastBatchPolicy,
        *,
        padded: bool,
        sticks: bool,
        skips: bool = False,
    ) -> None:
        self._epoch_size = epoch_size
        self._num_shards = num_shards
        self._shards = list(shards)
        self._batch_size = batch_size
        self._policy = policy
        self._padded = padded
        self._sticks = sticks
        self._skips = skips
        self._rotation = 0
        self._cut(epoch_size)
        # Entries of the current epoch that the reader which began with shard k has drawn. Those
        # elsewhere are assumed to draw as many, but for the bad samples that were skipped here.
        self._drawn = [0] * num_shards
        self._skipped = [0] * num_shards
        """Number of these that were skipped."""
        self._alone = num_shards == len(shards) == 1
        self._given = 0
        """Samples of whole batches in this epoch, padding included."""
        self.carried = [0] * num_shards
        """Samples of this epoch that each shard's reader had drawn before it began."""

    def _cut(self, size: int) -> None:
        """Cut so many samples into shards."""
        count = self._num_shards
        self._size = size
        self._bounds = [size * k // count for k in range(count + 1)]
        self._largest, self._smallest = -(-size // count), size // count

    @property
    def counted(self) -> int:
        """Samples that each pipeline here has given of this epoch, or more."""
        return self._given + min(self.carried[k] for k in self._shards)

    @property
    def shard_sizes(self) -> list[int]:
        """Number of samples of each shard."""
        return [b - a for a, b in itertools.pairwise(self._bounds)]

    @property
    def shards(self) -> list[int]:
        """Shard that each pipeline here reads now."""
        rotation = 0 if self._sticks else self._rotation
        return [(k + rotation) % self._num_shards for k in self._shards]

    @property
    def padded(self) -> bool:
        """True if the reader pads shards to the size of the largest."""
        return self._padded

    @property
    def size(self) -> int:
        """Samples of one pipeline in this epoch, as DALI counts them."""
        if self._policy is LastBatchPolicy.DROP:
            return self._smallest
        if self._padded:
            return self._largest
        if self._policy is LastBatchPolicy.FILL:
            return self._rounded(self._most_left() + self._given)
        return self._rounded(self._largest)

    def steps_left(self) -> int | None:
        """Return the number of batches left in this epoch."""
        if self._policy is LastBatchPolicy.FILL and not self._padded:
            left = self._most_left()
        elif self._policy is LastBatchPolicy.DROP:
            left = max(0, self._smallest - max(self._count(k) for k in self._shards))
        else:
            left = max(0, self._largest - min(self._count(k) for k in self._shards))
        if self._policy is LastBatchPolicy.DROP:
            return left // self._batch_size
        return -(-left // self._batch_size)

    def _count(self, shard: int) -> int:
        """Entries drawn of a shard; where there are several, as if none had been skipped."""
        return self._drawn[shard] - (0 if self._alone else self._skipped[shard])

    def leftover_steps(self) -> int:
        """Batches of this epoch that ``DROP`` leaves out."""
        if self._policy is not LastBatchPolicy.DROP:
            return 0
        if self._padded:
            # DALI reads one batch more only if the smallest shard leaves a part of one. Where just
            # the larger shards do, a batch of nothing but padding then opens the next epoch.
            left = self._largest - max(self._count(k) for k in self._shards)
            return -(-max(0, left) // self._batch_size)
        return int(max(self._count(k) for k in self._shards) < self._smallest)

    def advance(self, deliveries: Sequence[DrawnBatch]) -> Sequence[int | list[int]] | None:
        """Count a batch of each pipeline."""
        before = [self._drawn[k] for k in self._shards]
        self._drawn = [count + self._batch_size for count in self._drawn]
        for shard, delivery in zip(self._shards, deliveries, strict=True):
            self._drawn[shard] += delivery.skipped
            self._skipped[shard] += delivery.skipped
        self._given += self._batch_size
        kept = [
            delivery.kept(self._shard_size(shard) - count)
            for shard, count, delivery in zip(self._shards, before, deliveries, strict=True)
        ]
        if self._alone:
            if self._drawn[0] <= self._size:
                return [deliveries[0].batch_size]
            return _last(self._policy, deliveries, kept, fills=self._carries)
        if self._policy is not LastBatchPolicy.PARTIAL:
            return [d.batch_size for d in deliveries]
        return [each or int(self._skips) for each in kept]

    @property
    def _carries(self) -> bool:
        """Return True if samples of the next epoch that fill up a last batch count there."""
        return self._policy is LastBatchPolicy.FILL and not self._padded

    def beyond(self, pipelines: int) -> list[int]:
        """Samples of the last batches that are not the epoch's."""
        return [
            min(self._batch_size, max(0, self._drawn[k] - self._shard_size(k)))
            for k in self._shards
        ]

    def next_epoch(self) -> None:
        """Begin the next epoch; with ``FILL``, samples read ahead count."""
        ahead = [max(0, d - self._shard_size(k)) for k, d in enumerate(self._drawn)]
        counted = [max(0, self._count(k) - self._shard_size(k)) for k in range(self._num_shards)]
        self._begin(self._rotation + 1)
        if self._carries:
            self._drawn = ahead
            self._skipped = [a - c for a, c in zip(ahead, counted, strict=True)]
            self.carried = list(ahead)
            if not self._most_left():  # batches larger than shards: a whole epoch was read ahead
                self._begin(self._rotation + 1)

    def restart(self, shards: Sequence[int] | None) -> None:
        """Begin an epoch with readers at the beginning of `shards`."""
        rotation = self._rotation + 1 if shards is None else shards[0] - self._shards[0]
        self._begin(rotation)

    def state(self) -> dict[str, Any]:
        """Return the counts of entries drawn, and the shards they are from."""
        rest = {} if self._size == self._epoch_size else {"rest": self._size}
        skipped = {"skipped": list(self._skipped)} if any(self._skipped) else {}
        return {
            **rest,
            **skipped,
            "rotation": self._rotation,
            "drawn": list(self._drawn),
            "given": self._given,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from `state`."""
        self._cut(int(state.get("rest", self._epoch_size)))
        self._rotation = int(state["rotation"])
        self._drawn = [int(count) for count in state["drawn"]]
        self._skipped = [int(n) for n in state.get("skipped", [0] * self._num_shards)]
        self._given = int(state["given"])
        self.carried = [
            max(0, d - s - self._given) for d, s in zip(self._drawn, self._skipped, strict=True)
        ]

    def begin_rest(self, epoch: int, size: int | None) -> None:
        """Begin an epoch with readers that continue the rest of another number of shards."""
        self._begin(epoch)
        if size is not None:
            self._cut(size)

    def _begin(self, rotation: int) -> None:
        self._cut(self._epoch_size)
        self._rotation = rotation % self._num_shards
        self._drawn = [0] * self._num_shards
        self._skipped = [0] * self._num_shards
        self.carried = [0] * self._num_shards
        self._given = 0

    def _shard_size(self, first: int) -> int:
        """Size of the shard that the reader which began with shard `first` reads now."""
        shard = first if self._sticks else (first + self._rotation) % self._num_shards
        return self._bounds[shard + 1] - self._bounds[shard]

    def _most_left(self) -> int:
        """Samples left of the shard that has most left."""
        return max(0, *(self._shard_size(k) - self._count(k) for k in range(self._num_shards)))

    def _rounded(self, samples: int) -> int:
        return -(-samples // self._batch_size) * self._batch_size
