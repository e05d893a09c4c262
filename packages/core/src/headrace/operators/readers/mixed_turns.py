"""Turns of the readers of a mix, and the entries that they come to, worked out ahead."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from headrace.kernels.cpu import sample_orders

AHEAD = 4096
"""Samples whose turns, and entries, are worked out at once."""


class Turns:
    """The reader of each sample of an epoch, in a random order that follows from `seed`.

    `counts`: number of samples of each reader.
    """

    def __init__(self, counts: np.ndarray, seed: int, epoch: int) -> None:
        self.counts = counts
        self._ends = np.cumsum(counts)
        self._key = sample_orders.key_of(seed, epoch)
        self._first = 0
        self._known = np.empty(0, np.int64)
        """Turns from number `_first` on."""

    def __len__(self) -> int:
        return int(self._ends[-1])

    def at(self, position: int, count: int) -> np.ndarray:
        """Up to `count` turns from number `position` on, fewer at the end."""
        count = min(count, len(self) - position)
        begin = position - self._first
        if begin < 0 or begin + count > len(self._known):
            places = np.empty(min(max(count, AHEAD), len(self) - position), np.int64)
            sample_orders.permute(position, max(len(self), 1), max(len(self), 1), self._key, places)
            self._known = np.searchsorted(self._ends, places, "right")
            self._first, begin = position, 0
        return self._known[begin : begin + count]


class EntriesAhead:
    """Entries that are drawn next, each in the turn of a reader.

    `state`: that of the mix before the first of them.
    """

    def __init__(self, entries: np.ndarray, turns: np.ndarray, state: dict[str, Any]) -> None:
        self._entries: list[int] = entries.tolist()
        self._turns = turns
        self.state = state
        self.taken = 0

    def take(self, count: int) -> list[int] | None:
        """The next entries; `None` if fewer are left."""
        begin, end = self.taken, self.taken + count
        if end > len(self._entries):
            return None
        self.taken = end
        return self._entries[begin:end]

    def shares(self, count: int) -> list[int]:
        """Number of entries of each reader among the first `count`."""
        readers = len(self.state["readers"])
        found: list[int] = np.bincount(self._turns[:count], minlength=readers).tolist()
        return found


class LaterState(Mapping[str, Any]):
    """The state of a reader, worked out by `make` where somebody looks at it."""

    def __init__(self, make: Callable[[], dict[str, Any]]) -> None:
        self._make = make

    @cached_property
    def _state(self) -> dict[str, Any]:
        return self._make()

    def __getitem__(self, name: str) -> Any:
        return self._state[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._state)

    def __len__(self) -> int:
        return len(self._state)


def apportioned(total: int, weights: np.ndarray) -> np.ndarray:
    """Whole numbers in proportion to weights, which add up to `total`."""
    exact = total * weights
    counts: np.ndarray = np.floor(exact).astype(np.int64)
    most = np.argsort(counts - exact, kind="stable")[: total - int(counts.sum())]
    counts[most] += 1
    return counts
