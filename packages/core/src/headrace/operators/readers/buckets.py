"""Batches of samples that are about as long: `bucket_by`, `buckets` and `max_batch` of readers."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.errors import ArgumentValueError
from headrace.kernels.cpu import sample_orders
from headrace.types.arrays import is_array, to_numpy

if TYPE_CHECKING:
    from headrace.operators.readers.index import Index

_MOST_BUCKETS = 32
_BATCHES_A_BUCKET = 2
"""Batches that a bucket has at least, on average, where the user did not say how many buckets there
are: the last batch of each is incomplete."""
_WITHIN, _AMONG = 1, 2  # so that equal seeds draw different numbers


def lengths_of(given: Any, index: Index, argument: str = "bucket_by") -> np.ndarray:
    """The lengths that a value of an argument stands for, one for each entry, float64."""
    if isinstance(given, str):
        known = index.lengths(given)
        if known is None:
            names = ", ".join(f'"{name}"' for name in index.length_names)
            raise ArgumentValueError(
                f"`{argument}` is {given!r}; this reader knows "
                f"{names or 'no lengths of its entries'}. Give an array with one number for each."
            )
        found = np.asarray(known, np.float64)
    else:
        values = to_numpy(given) if is_array(given) else given
        try:
            found = np.array(values, np.float64)
        except (TypeError, ValueError) as error:
            raise ArgumentValueError(f"`{argument}` cannot be made numbers: {error}.") from error
    if found.shape != (len(index),):
        raise ArgumentValueError(
            f"`{argument}` has the shape {found.shape}, and the data set {len(index)} samples: "
            "give one number for each."
        )
    wrong = np.flatnonzero(~((found >= 0) & np.isfinite(found)))
    if wrong.size:
        raise ArgumentValueError(
            f"`{argument}` is {found[wrong[0]]:g} for {index.source(int(wrong[0]))!r}; lengths are "
            "finite and not negative."
        )
    return found


class Buckets:
    """Samples in buckets of about one length, and how many of a bucket make a batch.

    `lengths`: of each sample. `batch_size`: most samples of a batch. `buckets`: number of buckets,
    or the lengths at which the next one begins; chosen if `None`. `max_batch`: most that a batch
    may have: its samples times the longest of them.
    """

    def __init__(
        self, lengths: np.ndarray, batch_size: int, buckets: Any, max_batch: float | None
    ) -> None:
        self.lengths = lengths
        if max_batch is not None and lengths.max() > max_batch:
            raise ArgumentValueError(
                f"A sample has the length {lengths.max():g} and `max_batch` is {max_batch:g}, so "
                "that it fits into no batch. Leave it out, or raise `max_batch`."
            )
        usual = batch_size
        if max_batch is not None and lengths.any():
            usual = min(batch_size, max(int(max_batch / lengths.mean()), 1))
        self._bucket = np.searchsorted(self._bounds(usual, buckets), lengths, "right")
        self.sizes = np.zeros(int(self._bucket.max()) + 1, np.int64)
        """Samples of a full batch of each bucket."""
        for bucket in np.unique(self._bucket):
            longest = lengths[self._bucket == bucket].max()
            size = batch_size
            if max_batch is not None and longest:
                size = min(size, int(max_batch // longest))
            self.sizes[bucket] = size

    def _bounds(self, batch_size: int, buckets: Any) -> np.ndarray:
        count = buckets
        if count is None:
            batches = len(self.lengths) // (_BATCHES_A_BUCKET * batch_size)
            count = min(max(batches, 1), _MOST_BUCKETS)
        if isinstance(count, (int, np.integer)) and not isinstance(count, bool):
            if count < 1:
                raise ArgumentValueError(f"`buckets` is {count}, but must be at least 1.")
            shares = np.arange(1, count) / count
            return np.unique(np.quantile(self.lengths, shares, method="higher"))
        try:
            bounds = np.array(count, np.float64)
        except (TypeError, ValueError) as error:
            raise ArgumentValueError(f"`buckets` cannot be made numbers: {error}.") from error
        if bounds.ndim != 1 or (np.diff(bounds) <= 0).any() or not np.isfinite(bounds).all():
            raise ArgumentValueError(
                f"`buckets` is {count!r}; expected a number of buckets, or lengths, in ascending "
                "order, at which the next one begins."
            )
        return bounds

    def batches(self, seed: int | None, epoch: int, shards: int) -> list[np.ndarray]:
        """The batches of an epoch, as many for each shard; in the order of the data set if there is
        no seed.
        """
        count = len(self.lengths)
        order = np.arange(count) if seed is None else _permuted(count, (seed, epoch, _WITHIN))
        found: list[np.ndarray] = []
        for bucket, size in enumerate(self.sizes.tolist()):
            own = order[self._bucket[order] == bucket]
            found += [own[k : k + size] for k in range(0, len(own), max(size, 1))]
        if seed is None:
            found.sort(key=lambda batch: int(batch[0]))
        else:
            found = [found[k] for k in _permuted(len(found), (seed, epoch, _AMONG))]
        return divisible(found, shards)

    def padded(self) -> float:
        """Lengths of an epoch's samples together, each padded to the longest of its batch."""
        batches = self.batches(0, 0, 1)
        return float(sum(len(batch) * self.lengths[batch].max() for batch in batches))

    def padding(self) -> float:
        """Share of padding in an epoch."""
        return padding(self.lengths.sum(), self.padded())


def padding(lengths: float, padded: float) -> float:
    """Share of padding in what is so long without, and so long with it."""
    return float(1 - lengths / padded) if padded else 0.0


def _permuted(count: int, key: tuple[int, ...]) -> np.ndarray:
    found = np.empty(count, np.int64)
    sample_orders.permute(0, count, max(count, 1), sample_orders.key_of(*key), found)
    return found


def divisible(batches: Sequence[np.ndarray], shards: int) -> list[np.ndarray]:
    """Batches whose number can be divided among shards: the largest ones are cut in two."""
    found = list(batches)
    while len(found) % shards:
        largest = max(range(len(found)), key=lambda k: (len(found[k]), -k))
        batch = found[largest]
        if len(batch) < 2:
            break
        found[largest : largest + 1] = [batch[: len(batch) // 2], batch[len(batch) // 2 :]]
    rest = -len(found) % shards
    return found + found[:1] * rest if found else found  # fewer samples than shards


class BucketOrder:
    """The order of batches of samples in buckets, for one shard.

    In each epoch there is one list of batches, of which the shards take one after the other in
    turn; so what is left can be dealt to any other number of them.
    """

    pad_last_batch = False
    stick_to_shard = True

    def __init__(self, buckets: Buckets, shard_id: int, num_shards: int, seed: int | None) -> None:
        self.lengths = buckets.lengths
        self.size = len(self.lengths)
        self.shard_id, self.num_shards = shard_id, num_shards
        self._buckets = buckets
        self._seed = seed
        self.epoch = 0
        self._taken = 0
        self._recalled = 0
        self._dealt: list[list[int]] = []
        """Former numbers of shards in this epoch, and how many batches each of them had taken."""
        self._made: tuple[Any, list[np.ndarray]] = (None, [])
        self.padded = buckets.padded()
        self.steps = len(buckets.batches(seed, 0, num_shards)) // num_shards
        """Batches of an epoch."""

    def _batches(self) -> list[np.ndarray]:
        """Those of all shards that are left of the epoch, in their order."""
        key = self.epoch, tuple(map(tuple, self._dealt))
        if self._made[0] != key:
            first = self._dealt[0][0] if self._dealt else self.num_shards
            found = self._buckets.batches(self._seed, self.epoch, first)
            for shards, taken in self._dealt:
                found = divisible(found, shards)[shards * taken :]
            self._made = key, divisible(found, self.num_shards)
        return self._made[1]

    def draw(self, count: int, *, refill: bool = False) -> list[int]:
        """The next batch, of up to `count` samples; or samples that fill up the last one again."""
        if refill and self._taken:
            last = self._batches()[(self._taken - 1) * self.num_shards + self.shard_id]
            drawn = [int(last[(-2 - self._recalled - k) % len(last)]) for k in range(count)]
            self._recalled += count
            return drawn
        if self._taken * self.num_shards >= len(self._batches()):
            self._begin(self.epoch + 1)
        batch = self._batches()[self._taken * self.num_shards + self.shard_id]
        self._taken, self._recalled = self._taken + 1, 0
        return batch.tolist()  # type: ignore[no-any-return]

    def coming(self, count: int) -> np.ndarray:
        """Up to `count` samples of this epoch that will be drawn next, int64."""
        found: list[int] = []
        own = self._batches()[self._taken * self.num_shards + self.shard_id :: self.num_shards]
        for batch in own:
            if len(found) >= count:
                break
            found += batch.tolist()
        return np.array(found[:count], np.int64)

    def before(self, entry: int) -> int:
        """The entry to try in place of one that turned out to be bad."""
        return (entry - 1) % self.size

    def _begin(self, epoch: int) -> None:
        self.epoch, self._taken, self._recalled, self._dealt = epoch, 0, 0, []

    def next_epoch(self, at_least: int = 0) -> int:
        """Go to the beginning of the next epoch, unless at one."""
        epoch = max(self.epoch + (self._taken > 0 or bool(self._dealt)), at_least)
        if epoch != self.epoch:
            self._begin(epoch)
        return self.shard_id

    def state(self) -> dict[str, Any]:
        """Everything that `restore` needs to go on from here."""
        return {
            "epoch": self.epoch,
            "taken": self._taken,
            "recalled": self._recalled,
            "dealt": [list(each) for each in self._dealt],
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go to the position `state` was taken at."""
        self.epoch, self._taken = int(state["epoch"]), int(state["taken"])
        self._recalled = int(state["recalled"])
        self._dealt = [[int(n) for n in each] for each in state["dealt"]]

    def follow(self, state: Mapping[str, Any]) -> None:
        """Go to where this shard is when another one is at `state`."""
        self.restore({**state, "recalled": 0})

    def why_fixed(self) -> str:
        """Nothing stands against another number of shards."""
        return ""

    def deal(self, origin: Mapping[str, Any]) -> None:
        """Go on with a part of what another number of shards has left."""
        self.restore({**origin["state"], "recalled": 0})
        self._dealt.append([int(origin["shards"]), self._taken])
        self._taken = 0
        if not self._batches():
            self._begin(self.epoch + 1)

    def rest_size(self) -> int | None:
        """Number of samples left by other shards, if they make up this epoch."""
        return sum(map(len, self._batches())) if self._dealt else None

    def steps_of_epoch(self) -> int:
        """Batches of this epoch, or of what other shards have left of it."""
        return len(self._batches()) // self.num_shards


def bucket_identity(lengths: np.ndarray) -> str:
    """A hash of the lengths, for checkpoints."""
    return hashlib.blake2b(lengths.tobytes(), digest_size=16).hexdigest()


def check_alone(names: Sequence[str], given: Mapping[str, Any]) -> None:
    """Check that nothing is given beside `bucket_by` that says another order."""
    for name in names:
        if given.get(name):
            raise ArgumentValueError(
                f"`bucket_by` and `{name}` exclude each other: batches of samples of about one "
                "length come in an order of their own. `random_shuffle` or `shuffle_after_epoch` "
                "shuffles them."
            )
