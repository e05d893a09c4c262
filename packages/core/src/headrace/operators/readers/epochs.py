"""Orders of whole epochs, made when they are read: of billions of samples, nothing is kept."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

import numpy as np


class Entries(ABC):
    """Numbers of samples that are made in parts: ``entries[start:stop]`` is an array."""

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def take(self, start: int, stop: int) -> np.ndarray:
        """Entries from number `start` to before `stop`, int64; both lie within."""

    def __getitem__(self, part: slice) -> np.ndarray:
        start, stop, _ = part.indices(len(self))
        return self.take(start, max(start, stop))


Numbers = Entries | np.ndarray | range
"""The samples of an epoch, or a part of them."""


class Section(Entries):
    """Those of others from `start` to before `stop`."""

    def __init__(self, of: Numbers, start: int, stop: int) -> None:
        self._of = of
        self._start, self._stop = start, stop

    def __len__(self) -> int:
        return self._stop - self._start

    def take(self, start: int, stop: int) -> np.ndarray:
        """A part of the part."""
        return np.asarray(self._of[self._start + start : self._start + stop], np.int64)


class Joined(Entries):
    """Several after another."""

    def __init__(self, parts: Sequence[Numbers]) -> None:
        self._parts = [part for part in parts if len(part)]
        self._ends = list(accumulate(map(len, self._parts)))

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def take(self, start: int, stop: int) -> np.ndarray:
        """Of each part, what belongs to it."""
        found: list[Any] = [np.empty(0, np.int64)]
        for part, end in zip(self._parts, self._ends, strict=True):
            begin = end - len(part)
            if start < end and begin < stop:
                found.append(part[max(start - begin, 0) : min(stop, end) - begin])
        return np.concatenate(found)


class EpochOrders(ABC):
    """For each epoch, the order of the samples of all shards together.

    `size`: number of samples in an epoch, the same in all.
    """

    size: int

    @abstractmethod
    def at(self, epoch: int) -> Numbers:
        """The samples of an epoch."""

    def before(self, entry: int) -> int:
        """The entry to try in place of one that turned out to be bad."""
        known = np.unique(self.at(0)[0 : self.size])
        return int(known[int(np.searchsorted(known, entry)) - 1])
