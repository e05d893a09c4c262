"""Samplers: in which order a reader visits its samples, and which of them."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.errors import ArgumentTypeError, ArgumentValueError
from headrace.kernels.cpu import sample_orders
from headrace.operators.readers.epochs import Entries, EpochOrders, Numbers
from headrace.tracebacks import public_methods
from headrace.types.arrays import to_numpy

if TYPE_CHECKING:
    from headrace.operators.readers.index import Index

_WEIGHTS, _CLASSES = 1, 2  # so that equal seeds draw different numbers


class EpochSampler(ABC):
    """In which order a reader visits its samples; sub-classes are in `headrace.samplers`.

    Attributes are the arguments, by name.

    `seed`: what the order follows from, together with the number of the epoch. It must be the same
    for all shards.
    """

    def __init__(self, seed: int) -> None:
        if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)):
            raise ArgumentTypeError(f"`seed` of `{self.name}` is {seed!r}; expected an integer.")
        self.seed = int(seed)

    @property
    def name(self) -> str:
        """Name in messages."""
        return f"samplers.{type(self).__name__}"

    def __repr__(self) -> str:
        shown = {
            k: f"<{len(v)}>" if isinstance(v, np.ndarray) else v for k, v in vars(self).items()
        }
        return f"{self.name}({', '.join([f'{k}={v}' for k, v in shown.items()])})"

    @abstractmethod
    def orders(self, index: Index) -> EpochOrders:
        """The orders of epochs of a data set."""

    def identity(self) -> dict[str, Any]:
        """Everything the order follows from, in types that JSON keeps: arrays by their hash."""
        arguments = {
            k: hash_of(v) if isinstance(v, np.ndarray) else v for k, v in vars(self).items()
        }
        return {self.name: arguments}


@public_methods
class Shuffled(EpochSampler):
    """Every sample once an epoch, in an order that follows from seed, epoch and position alone.

    Nothing of an epoch is kept in memory, however many samples there are, any position can be gone
    to at once, and a checkpoint is resumed exactly with another number of shards.

    Parameters
    ----------
    window
        `None` shuffles all samples. A number is for containers, such as archives and files of
        records, that are better read from their beginning to their end: their order is shuffled,
        and then that of each so many samples in a row, which lie in few containers.
    seed
        Must be the same for all shards.

    Examples
    --------
    >>> fn.readers.webdataset(paths="train-*.tar", ext=["jpg"], sampler=samplers.Shuffled(4096))
    """

    def __init__(self, window: int | None = None, *, seed: int = 0) -> None:
        super().__init__(seed)
        if window is not None and (not isinstance(window, (int, np.integer)) or window < 1):
            raise ArgumentValueError(
                f"`window` of `{self.name}` is {window!r}; expected a number of samples, at least "
                "1, or `None` to shuffle all."
            )
        self.window = None if window is None else int(window)

    def orders(self, index: Index) -> EpochOrders:
        """The permutations of epochs."""
        if self.window is None:
            return _Permutations(len(index), len(index), self.seed)
        return _WindowPermutations(len(index), self.window, self.seed, index.containers())


@public_methods
class Weighted(EpochSampler):
    """Samples drawn at random, each as often as its weight says.

    `weights`: A number for each sample, none of them negative; they need not add up to 1.
    `replacement`: whether a sample may come several times in an epoch. Without, those with larger
    weights come sooner, and all of the epoch are different ones. `size`: number of samples in an
    epoch, of all shards together; that of the weights if not given. `seed`: must be the same for
    all shards.
    """

    def __init__(
        self, weights: Any, *, replacement: bool = True, size: int | None = None, seed: int = 0
    ) -> None:
        super().__init__(seed)
        found = np.array(to_numpy(weights))
        if found.ndim != 1 or found.dtype.kind not in "biuf" or not found.size:
            raise ArgumentValueError(
                f"`weights` of `{self.name}` are {found.dtype} of shape {found.shape}; expected "
                "one number for each sample."
            )
        self.weights = found.astype(np.float64)
        wrong = np.flatnonzero(~((self.weights >= 0) & np.isfinite(self.weights)))
        if wrong.size:
            raise ArgumentValueError(
                f"`weights` of `{self.name}` have {found[wrong[0]]} for sample {wrong[0]}; "
                "expected finite numbers that are not negative."
            )
        self.size = _epoch_size(self, size, found.size)
        self.replacement = bool(replacement)
        positive = np.count_nonzero(self.weights)
        if positive < (1 if replacement else self.size):
            raise ArgumentValueError(
                f"{positive} of the `weights` of `{self.name}` are above 0, and an epoch has "
                f"{self.size} different samples. Give a smaller `size`, or `replacement=True`."
                if positive
                else f"All `weights` of `{self.name}` are 0, so that no sample can be drawn."
            )

    def orders(self, index: Index) -> EpochOrders:
        """Draws of epochs."""
        _check_count(self, "weights", len(self.weights), len(index))
        return (_Draws if self.replacement else _DrawnOnce)(self)


@public_methods
class Balanced(EpochSampler):
    """Each class as often as any other, whatever number of samples it has.

    An epoch has every class equally often, but for one sample; over the epochs, those of a class
    come in turn, each once before one comes again, always in another order.

    `labels`: the class of each sample, any integers; those of the reader if not given. `size`:
    number of samples in an epoch, of all shards together; that of the data set if not given.
    `seed`: must be the same for all shards.
    """

    def __init__(self, labels: Any = None, *, size: int | None = None, seed: int = 0) -> None:
        super().__init__(seed)
        self.labels = None if labels is None else _integers(self, "labels", labels)
        self.size = None if size is None else _epoch_size(self, size, 0)

    def orders(self, index: Index) -> EpochOrders:
        """Draws of epochs."""
        labels = index.labels if self.labels is None else self.labels
        if labels is None:
            raise ArgumentValueError(
                f"`{self.name}` needs the class of each sample, which this reader does not know "
                "before it reads: give `labels`."
            )
        _check_count(self, "labels", len(labels), len(index))
        return _Balance(labels, self.size or len(index), self.seed)


def _epoch_size(sampler: EpochSampler, size: Any, usual: int) -> int:
    if size is None:
        return usual
    if isinstance(size, bool) or not isinstance(size, (int, np.integer)) or size < 1:
        raise ArgumentValueError(
            f"`size` of `{sampler.name}` is {size!r}; expected the number of samples in an epoch, "
            "at least 1."
        )
    return int(size)


def _integers(sampler: EpochSampler, name: str, values: Any) -> np.ndarray:
    found = np.array(to_numpy(values))
    if found.ndim != 1 or found.dtype.kind not in "biu" or not found.size:
        raise ArgumentValueError(
            f"`{name}` of `{sampler.name}` are {found.dtype} of shape {found.shape}; expected one "
            "integer for each sample."
        )
    return found.astype(np.int64)


def _check_count(sampler: EpochSampler, name: str, count: int, samples: int) -> None:
    if count != samples:
        raise ArgumentValueError(
            f"`{sampler.name}` has {count} `{name}`, and the data set has {samples} samples; give "
            "one for each."
        )


def hash_of(values: np.ndarray) -> str:
    """A hash of the elements of an array, in their order."""
    return hashlib.blake2b(values.tobytes(), digest_size=16).hexdigest()


class _Filled(Entries):
    """Entries that a function fills into an array, from a position on."""

    def __init__(self, size: int, fill: Any) -> None:
        self._size = size
        self._fill = fill

    def __len__(self) -> int:
        return self._size

    def take(self, start: int, stop: int) -> np.ndarray:
        found = np.empty(stop - start, np.int64)
        self._fill(start, found)
        return found


class _Permutations(EpochOrders):
    """Permutations of all samples, or of each window of them."""

    def __init__(self, size: int, window: int, seed: int) -> None:
        self.size = size
        self._window = window
        self._seed = seed

    def at(self, epoch: int) -> Numbers:
        key = sample_orders.key_of(self._seed, epoch)

        def fill(start: int, found: np.ndarray) -> None:
            sample_orders.permute(start, self.size, self._window, key, found)

        return _Filled(self.size, fill)

    def before(self, entry: int) -> int:
        return (entry - 1) % self.size


class _WindowPermutations(_Permutations):
    """Permutations of containers, and of each window of the samples in these.

    `begins`: the first sample of each container.
    """

    def __init__(self, size: int, window: int, seed: int, begins: np.ndarray) -> None:
        super().__init__(size, window, seed)
        self._begins = begins
        self._counts = np.diff(begins, append=size)
        self._last: tuple[int, Numbers] | None = None

    def at(self, epoch: int) -> Numbers:
        last = self._last
        if last is None or last[0] != epoch:
            last = self._last = epoch, self._made(epoch)
        return last[1]

    def _made(self, epoch: int) -> Numbers:
        turned = np.empty(len(self._begins), np.int64)
        sample_orders.permute(
            0, len(turned), len(turned), sample_orders.key_of(self._seed, epoch, 1), turned
        )
        ends = np.cumsum(self._counts[turned])
        shifts = self._begins[turned] - (ends - self._counts[turned])
        within = super().at(epoch)

        def fill(start: int, found: np.ndarray) -> None:
            places = within[start : start + len(found)]
            found[:] = places + shifts[np.searchsorted(ends, places, "right")]

        return _Filled(self.size, fill)


class _Draws(EpochOrders):
    """Draws with replacement."""

    def __init__(self, sampler: Weighted) -> None:
        self.size = sampler.size
        self._seed = sampler.seed
        self._entries = np.flatnonzero(sampler.weights)
        sums = np.cumsum(sampler.weights[self._entries])
        self._bounds = sums / sums[-1]

    def at(self, epoch: int) -> Numbers:
        key = sample_orders.key_of(self._seed, epoch, _WEIGHTS)

        def fill(start: int, found: np.ndarray) -> None:
            drawn = np.empty(len(found))
            sample_orders.draw_numbers(start, key, drawn)
            found[:] = self._entries[np.searchsorted(self._bounds[:-1], drawn, "right")]

        return _Filled(self.size, fill)

    def before(self, entry: int) -> int:
        return int(self._entries[int(np.searchsorted(self._entries, entry)) - 1])


class _DrawnOnce(EpochOrders):
    """Draws without replacement: samples in the order of waiting times with rates by weight."""

    def __init__(self, sampler: Weighted) -> None:
        self.size = sampler.size
        self._seed = sampler.seed
        self._entries = np.flatnonzero(sampler.weights)
        self._weights = sampler.weights[self._entries]
        self._last: tuple[int, np.ndarray] = (-1, self._entries)

    def at(self, epoch: int) -> Numbers:
        if self._last[0] != epoch:
            times = np.empty(len(self._entries))
            sample_orders.draw_numbers(0, sample_orders.key_of(self._seed, epoch, _WEIGHTS), times)
            times = -np.log(times) / self._weights
            first = np.argsort(times, kind="stable")[: self.size]
            self._last = epoch, self._entries[first]
        return self._last[1]

    def before(self, entry: int) -> int:
        return int(self._entries[int(np.searchsorted(self._entries, entry)) - 1])


class _Balance(EpochOrders):
    """Draws of classes in turn."""

    def __init__(self, labels: np.ndarray, size: int, seed: int) -> None:
        self.size = size
        self._seed = seed
        labels = labels.reshape(-1)
        self._entries = np.argsort(labels, kind="stable")
        _, counts = np.unique(labels, return_counts=True)
        self._begins = np.concatenate(([0], np.cumsum(counts)))
        self._samples = len(labels)

    def at(self, epoch: int) -> Numbers:
        keys = np.array(
            [sample_orders.key_of(self._seed, epoch), sample_orders.key_of(self._seed, 0, _CLASSES)]
        )

        def fill(start: int, found: np.ndarray) -> None:
            sample_orders.balance(start, epoch, self.size, keys, self._begins, self._entries, found)

        return _Filled(self.size, fill)

    def before(self, entry: int) -> int:
        return (entry - 1) % self._samples


CLASSES = {each.__name__: each for each in (Shuffled, Weighted, Balanced)}
"""Samplers by name, to make them again of their attributes."""
