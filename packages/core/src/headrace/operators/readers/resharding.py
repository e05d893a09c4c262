"""Samples left of an epoch, divided anew among another number of shards.

Where an epoch was under way on so many readers, and goes on with another number of them, the
samples that none of the former has drawn become one last, shorter epoch of the latter, each of
whom gets an equal part. After it epochs are cut into shards as ever.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from headrace.operators.readers.epochs import Joined, Numbers, Section

if TYPE_CHECKING:
    from headrace.operators.readers.order import ReadingOrder


@dataclass(frozen=True)
class Remainder:
    """Samples left of an epoch.

    `origin`: what it follows from, for checkpoints: ``shards``, how many there were; ``shard``, one
    of them; and its ``state``. `epoch`: number of the epoch that it makes up now. `samples`: the
    samples, in the order of the former shards; none where an epoch begins, which is cut into shards
    as ever.
    """

    origin: dict[str, Any]
    epoch: int
    samples: Joined

    def part(self, shard: int, num_shards: int) -> Numbers:
        """The samples of one shard."""
        count = len(self.samples)
        return Section(self.samples, shard * count // num_shards, (shard + 1) * count // num_shards)


def find_remainder(order: ReadingOrder, origin: Mapping[str, Any]) -> Remainder:
    """Find the samples that the readers of other shards have left.

    They are assumed to have drawn equally much, but for bad samples that one of them may have
    skipped.
    """
    first = order.of_shard(origin["shard"], origin["shards"])
    first.restore(origin["state"])
    others = []
    for shard in range(origin["shards"]):
        other = first
        if shard != first.shard_id:
            other = order.of_shard(shard, origin["shards"])
            other.rest = first.rest  # found once
            other.follow(origin["state"])
        others.append(other)
    epoch = max(other.reached()[0] for other in others)
    left: list[Numbers] = []
    begins = all(other.reached() == (epoch, 0) for other in others)
    if not begins or first.remainder_of(epoch) is not None:
        for other in others:
            left += other.left_until(epoch)
        epoch += not any(map(len, left))
    return Remainder(copy.deepcopy(dict(origin)), epoch, Joined(left))
