"""In which order a reader visits its samples: shards, epochs, shuffling and padding.

The order is the one of DALI's readers, equal to it number by number for the same seed:

* Shard ``k`` of ``S`` holds samples ``floor(k N / S)`` to ``floor((k + 1) N / S)``. With every
  epoch a reader goes on to the next shard, unless it sticks to its own.
* Without padding the epochs follow each other without a gap, and a batch may begin in one and end
  in the next. With padding every epoch ends with a full batch: the last sample is repeated until
  each shard has given as many batches as the largest.
* `random_shuffle` permutes the list once, always in the same way, before it is cut into shards.
  Then every epoch of a shard is shuffled by a window of `initial_fill` samples, out of which one is
  drawn at random and replaced by the next from the list. The windows of two epochs never mix.
* `shuffle_after_epoch` permutes the whole list anew for every epoch, the first included, by a seed
  that all shards have in common, so that together they still see every sample once. A reader
  then keeps the number of its shard.

With a sampler (`headrace.samplers`) the order of each epoch, of all shards together, is the
sampler's, and is cut into shards and batches by the same rules.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

import numpy as np

from headrace.errors import ArgumentValueError
from headrace.kernels.cpu import sample_orders
from headrace.operators.readers.epochs import EpochOrders, Numbers, Section
from headrace.operators.readers.resharding import Remainder, find_remainder
from headrace.operators.readers.standard_shuffle import (
    MinimalStandard,
    shuffle_32,
    shuffle_64,
)

FIXED_SEED = 524287
"""Seed of the permutation that `random_shuffle` starts from, and the default of every epoch's."""

_CHUNK = 4096


def check_order(
    *,
    shard_id: int,
    num_shards: int,
    stick_to_shard: bool,
    random_shuffle: bool,
    initial_fill: int,
    shuffle_after_epoch: bool,
) -> None:
    """Check the arguments of an order, whatever the number of samples."""
    if num_shards < 1:
        raise ArgumentValueError(f"`num_shards` is {num_shards}, but must be at least 1.")
    if not 0 <= shard_id < num_shards:
        raise ArgumentValueError(
            f"`shard_id` is {shard_id}, but must be at least 0 and less than "
            f"`num_shards`, which is {num_shards}."
        )
    if random_shuffle and initial_fill < 1:
        raise ArgumentValueError(
            f"`initial_fill` is {initial_fill}, but `random_shuffle` draws out of that many "
            "samples: give at least 1, which keeps the same order in every epoch."
        )
    if shuffle_after_epoch and random_shuffle:
        raise ArgumentValueError(
            "`shuffle_after_epoch` and `random_shuffle` exclude each other: the first shuffles "
            "all samples between epochs, the second a window of `initial_fill` samples."
        )
    if shuffle_after_epoch and stick_to_shard:
        raise ArgumentValueError(
            "`shuffle_after_epoch` and `stick_to_shard` exclude each other: after a shuffle of "
            "all samples a shard holds others than before."
        )


class ReadingOrder:
    """The endless sequence of sample numbers that one reader visits.

    No data is touched: this is a state machine of a few integers, and everything else is computed
    from them when it is needed. The order does not depend on how many are drawn at a time, but
    for padding, which fills up what is drawn at once.
    """

    def __init__(
        self,
        size: int,
        *,
        shard_id: int = 0,
        num_shards: int = 1,
        stick_to_shard: bool = False,
        pad_last_batch: bool = False,
        random_shuffle: bool = False,
        initial_fill: int = 1024,
        seed: int = 0,
        shuffle_after_epoch: bool = False,
        shuffle_after_epoch_seed: int | None = None,
        cumulative: bool = True,
        permuted: bool = True,
        listed: np.ndarray | None = None,
        epochs: EpochOrders | None = None,
    ) -> None:
        check_order(
            shard_id=shard_id,
            num_shards=num_shards,
            stick_to_shard=stick_to_shard,
            random_shuffle=random_shuffle,
            initial_fill=initial_fill,
            shuffle_after_epoch=shuffle_after_epoch,
        )
        if epochs is not None:
            size = epochs.size
        if num_shards > size:
            raise ArgumentValueError(
                f"The number of input samples: {size}, needs to be at least equal to the requested "
                f"number of shards: {num_shards}. Lower `num_shards`, or add samples."
            )
        self.size = size
        self.shard_id = shard_id
        self.num_shards = num_shards
        self.stick_to_shard = stick_to_shard or shuffle_after_epoch
        self.pad_last_batch = pad_last_batch
        self._independent_shard = stick_to_shard and epochs is None
        self._window = initial_fill if random_shuffle else 0
        if shuffle_after_epoch and epochs is None:
            seed_of_epochs = (
                FIXED_SEED if shuffle_after_epoch_seed is None else shuffle_after_epoch_seed
            )
            epochs = _EpochPermutations(size, seed_of_epochs, cumulative)
        self._epochs = epochs
        self._list: np.ndarray | None = None
        if random_shuffle:
            self._list = np.arange(size) if listed is None else listed
            if permuted and listed is None:
                shuffle_32(self._list, FIXED_SEED)

        self._epoch = 0
        self._position = 0  # entries of this epoch that were drawn
        self._returned = 0  # of these, and padding, without refills
        self._recalled = 0  # refills of this epoch after its end
        self._since_epoch = 0  # epoch and number of entries drawn since the last jump
        self._since_drawn = 0
        self._random = MinimalStandard.seeded(seed).value if random_shuffle else 0
        self._entries: _EpochEntries | None = None
        self.rest: Remainder | None = None
        """Samples that other shards have left of an epoch which goes on here."""

    @property
    def epoch(self) -> int:
        """Number of the epoch the last entry came from, 0 before the first."""
        return self._epoch

    @property
    def shard(self) -> int:
        """The shard that is being read."""
        return self._shard_of(self._epoch)

    def shard_in(self, epoch: int) -> int:
        """The shard that is read in `epoch`."""
        return self._shard_of(epoch)

    def before(self, entry: int) -> int:
        """The entry to try in place of one that turned out to be bad."""
        return (entry - 1) % self.size if self._epochs is None else self._epochs.before(entry)

    @property
    def position(self) -> int:
        """Number of entries of the epoch that were drawn."""
        return self._position

    def draw(self, count: int, *, refill: bool = False) -> list[int]:
        """The next `count` sample numbers."""
        if self.pad_last_batch:
            return self._draw_padded(count, refill)
        drawn: list[int] = []
        while len(drawn) < count:
            entries = self._opened()
            if self._position == len(entries):
                self._begin_next()
                continue
            part = entries.take(self._position, count - len(drawn))
            self._position += len(part)
            self._since_drawn += len(part)
            drawn += part
        return drawn

    def coming(self, count: int) -> np.ndarray:
        """Up to `count` entries of this epoch that will be drawn next, int64."""
        part = self._opened().part(self._position, count)
        return np.arange(part.start, part.stop) if isinstance(part, range) else part

    def pass_over(self, count: int) -> None:
        """Count as many entries as drawn, which `coming` has told."""
        self._position += count
        self._since_drawn += count

    def state_after(self, state: Mapping[str, Any], count: int) -> dict[str, Any]:
        """The state after `state` and as many entries."""
        moved = {name: state[name] + count for name in ("position", "since_drawn")}
        return {**state, **moved}

    def _draw_padded(self, count: int, refill: bool) -> list[int]:
        entries = self._opened()
        if not refill:
            if self._has_padded():
                self._begin_next()
                entries = self._opened()
            self._returned += count
        drawn = entries.take(self._position, count)
        self._position += len(drawn)
        missing = count - len(drawn)
        if missing and refill:
            # The last sample may be the bad one: go back through those before it.
            for _ in range(missing):
                self._recalled += 1
                drawn += entries.take((-1 - self._recalled) % len(entries), 1)
        elif missing and len(entries):
            drawn += entries.take(self._position - 1, 1) * missing
        elif missing:  # a part of less samples than shards
            assert self.rest is not None
            drawn += self.rest.samples[-1:].tolist() * missing
        return drawn

    def _has_padded(self) -> bool:
        """True if a padded epoch is at its end: for one shard of several when all have given as
        many batches, even if samples were skipped here; for a single shard when all samples were
        drawn.
        """
        if self.num_shards == 1:
            return self._position >= len(self._opened())
        return self._returned >= self._padded_length()

    def _padded_length(self) -> int:
        """Number of samples of this epoch that each shard gives, not counting padding of incomplete
        batches.
        """
        rest = self.remainder_of(self._epoch)
        size = self.size if rest is None else len(rest.samples)
        return -(-size // self.num_shards)

    def next_epoch(self, at_least: int = 0) -> int:
        """Go to the beginning of the next epoch, whose shard is returned.

        Epochs before number `at_least` are left out.

        Where the shards rotate, the readers of all of them, having drawn equally much, jump to
        one and the same epoch, even if some stand at the end of a shorter shard and some not yet.
        Nothing happens at the beginning of an epoch.
        """
        if self.pad_last_batch:
            target = self._epoch + (self._returned > 0)
        elif self._independent_shard:
            target = self._epoch + (self._position > 0)
        else:
            drawn, target = self._since_drawn * self.num_shards, self._since_epoch
            rest = self.remainder_of(target)
            if rest is not None and drawn:
                drawn, target = max(0, drawn - len(rest.samples)), target + 1
            target += -(-drawn // self.size)
        target = max(target, at_least)
        self._go_to_epoch(target)
        self._position = self._returned = self._recalled = self._since_drawn = 0
        self._since_epoch = target
        return self.shard

    def state(self) -> dict[str, Any]:
        """Everything that `restore` needs to go on from here."""
        rest = self.remainder_of(self._epoch if self.pad_last_batch else self._since_epoch)
        dealt = {} if rest is None else {"rest": rest.origin}
        return {
            **dealt,
            "epoch": self._epoch,
            "position": self._position,
            "returned": self._returned,
            "recalled": self._recalled,
            "since_epoch": self._since_epoch,
            "since_drawn": self._since_drawn,
            "random": self._random,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go to the position `state` was taken at."""
        self._set_rest(state.get("rest"))
        same = (state["epoch"], state["random"]) == (self._epoch, self._random)
        self._epoch = state["epoch"]
        self._position = state["position"]
        self._returned = state["returned"]
        self._recalled = state["recalled"]
        self._since_epoch = state["since_epoch"]
        self._since_drawn = state["since_drawn"]
        self._random = state["random"]
        if not same:
            self._entries = None

    def drop(self) -> None:
        """Work out the order of this epoch anew, since an exception may have ended that halfway."""
        self._entries = None

    def follow(self, state: Mapping[str, Any]) -> None:
        """Go from the beginning to where this reader is when that of another shard is at `state`.

        All readers of a data set draw equally much, but for the bad samples that one of them may
        have skipped.
        """
        self._set_rest(state.get("rest"))
        epoch, drawn = state["since_epoch"], state["since_drawn"]
        if self.pad_last_batch:
            epoch, drawn = state["epoch"], state["returned"]
        self._go_to_epoch(epoch)
        self._since_epoch, self._since_drawn = state["since_epoch"], state["since_drawn"]
        entries = self._opened()
        if self.pad_last_batch:
            self._returned = drawn
            self._position = min(drawn, len(entries))
            return
        while drawn > len(entries):
            drawn -= len(entries)
            self._begin_next()
            entries = self._opened()
        self._position = drawn

    # -- another number of shards --------------------------------------------------------------

    def why_fixed(self) -> str:
        """Reason why what is left of an epoch cannot be divided anew, or "" if it can."""
        if self._window:
            return (
                "`random_shuffle` draws each shard out of a window of its own, by the seed of its "
                "reader (`sampler=samplers.Shuffled()` and `shuffle_after_epoch` shuffle by a seed "
                "that all shards have in common)"
            )
        return ""

    def deal(self, origin: Mapping[str, Any]) -> None:
        """Go on with a part of what readers of another number of shards have left."""
        self._set_rest(origin)
        assert self.rest is not None
        self._go_to_epoch(self.rest.epoch)
        self._position = self._returned = self._recalled = self._since_drawn = 0
        self._since_epoch = self.rest.epoch
        self._entries = None

    def rest_size(self) -> int | None:
        """Samples of all shards in this epoch, where it is what others have left; else `None`."""
        rest = self.remainder_of(self._epoch)
        return None if rest is None else len(rest.samples)

    def of_shard(self, shard_id: int, num_shards: int) -> ReadingOrder:
        """The order of another shard, at its beginning."""
        other = copy.copy(self)
        other.shard_id, other.num_shards, other.rest = shard_id, num_shards, None
        other._epoch = other._position = other._returned = other._recalled = 0
        other._since_epoch = other._since_drawn = 0
        other._entries = None
        return other

    def reached(self) -> tuple[int, int]:
        """Number of the epoch, and of the samples of it that were given; its end is a beginning."""
        if self.pad_last_batch:
            ended, given = self._has_padded(), self._returned
        else:
            ended, given = self._position == len(self._opened()), self._position
        return (self._epoch + 1, 0) if ended else (self._epoch, given)

    def left_until(self, epoch: int) -> list[Numbers]:
        """The samples that are left of this epoch, and those of the next ones up to `epoch`."""
        now = self._entries_in(self._epoch)
        found: list[Numbers] = [Section(now, self._position, len(now))]
        if not self.pad_last_batch:  # else all are in one epoch
            found += map(self._entries_in, range(self._epoch + 1, epoch + 1))
        return found

    def _set_rest(self, origin: Mapping[str, Any] | None) -> None:
        if origin != (None if self.rest is None else self.rest.origin):
            self.rest = None if origin is None else find_remainder(self, origin)
            self._entries = None

    def remainder_of(self, epoch: int) -> Remainder | None:
        """Samples left by other shards, if they make up `epoch`."""
        rest = self.rest
        return rest if rest is not None and len(rest.samples) and rest.epoch == epoch else None

    def _go_to_epoch(self, target: int) -> None:
        while self._window and self._epoch < target:
            self._begin_next()
        if self._epoch != target:
            self._epoch = target
            self._entries = None

    def _shard_of(self, epoch: int) -> int:
        return (self.shard_id + (0 if self.stick_to_shard else epoch)) % self.num_shards

    def _opened(self) -> _EpochEntries:
        """The entries of the current epoch."""
        if self._entries is None:
            entries = self._entries_in(self._epoch)
            self._entries = _EpochEntries(entries, self._window, self._random)
        return self._entries

    def _entries_in(self, epoch: int) -> Numbers:
        shard, rest = self._shard_of(epoch), self.remainder_of(epoch)
        return self.entries_of(epoch, shard) if rest is None else rest.part(shard, self.num_shards)

    def entries_of(self, epoch: int, shard: int) -> Numbers:
        """The samples of `shard` in `epoch`, in the order before shuffling by a window.

        Readers whose order follows other rules replace this.
        """
        start = shard * self.size // self.num_shards
        stop = (shard + 1) * self.size // self.num_shards
        if self._list is not None:
            return self._list[start:stop]
        return (
            range(start, stop)
            if self._epochs is None
            else Section(self._epochs.at(epoch), start, stop)
        )

    def _begin_next(self) -> None:
        self._random = self._opened().random_after()
        self._epoch += 1
        self._position = self._returned = self._recalled = 0
        self._entries = None


class _EpochEntries:
    """The samples of one epoch of one shard, shuffled by a window as far as they were asked for."""

    def __init__(self, entries: Numbers, window: int, random: int) -> None:
        self._entries = np.array(entries[:], np.int64) if window else entries
        self._window = window
        self._random = MinimalStandard(random)
        self._shuffled = 0

    def __len__(self) -> int:
        return len(self._entries)

    def take(self, start: int, count: int) -> list[int]:
        """Up to `count` entries from number `start` on."""
        part = self.part(start, count)
        return list(part) if isinstance(part, range) else part.tolist()

    def part(self, start: int, count: int) -> np.ndarray | range:
        """The same, as they are kept."""
        stop = min(start + count, len(self._entries))
        while self._window and self._shuffled < stop:
            first = self._shuffled
            partners = first + self._draw(self._random, first)
            # Taking a sample out of the window and moving the window by one is a swap in place.
            assert isinstance(self._entries, np.ndarray)
            sample_orders.swap_in_turn(self._entries, first, partners + np.arange(len(partners)))
            self._shuffled += len(partners)
        return self._entries[start:stop]

    def random_after(self) -> int:
        """State of the random generator after the whole epoch."""
        random = MinimalStandard(self._random.value)
        done = self._shuffled
        while self._window and done < len(self._entries):
            done += len(self._draw(random, done))
        return random.value

    def _draw(self, random: MinimalStandard, first: int) -> np.ndarray:
        """Positions within the window, for one chunk of entries from number `first` on."""
        left = len(self._entries) - np.arange(first, min(first + _CHUNK, len(self._entries)))
        return random.below(np.minimum(left, self._window))


class _EpochPermutations(EpochOrders):
    """The permutations of the whole list for one epoch after the other."""

    def __init__(self, size: int, seed: int, cumulative: bool) -> None:
        self.size = size
        self._seed = seed
        self._cumulative = cumulative
        self._last = -1, np.empty(0, np.int64)
        """The last epoch that was asked for, and its permutation."""

    def at(self, epoch: int) -> np.ndarray:
        """The permutation of `epoch`."""
        last, current = self._last
        if epoch == last:
            return current
        begins = not self._cumulative or epoch < last or last < 0
        current = np.arange(self.size) if begins else current.copy()
        if begins:
            last = -1 if self._cumulative else epoch - 1
        while last < epoch:
            last += 1
            shuffle_64(current, self._seed + ((last + 1) << 32))
        self._last = last, current  # at once: a Ctrl-C may come anywhere
        return current

    def before(self, entry: int) -> int:
        """The one before it in the data."""
        return (entry - 1) % self.size
