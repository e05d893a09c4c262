"""The order of a reader that does not draw itself."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import Any

from headrace.errors import EndOfData


class GivenOrder:
    """In the place of a `ReadingOrder`: entries that the trainer has drawn, and sent."""

    epoch = 0

    def __init__(self, meta: dict[str, int], ask: Callable[[int, int], None] | None = None) -> None:
        self.size = meta["epoch_size"]
        self.num_shards = meta["number_of_shards"]
        self.shard_id = meta["shard_id"]
        self.pad_last_batch = bool(meta["pad_last_batch"])
        self.stick_to_shard = bool(meta["stick_to_shard"])
        self._ask = ask
        """Asks the trainer for entries in place of bad ones: for which task, and how many."""
        self.ticket = -1
        """The task that entries were drawn for last."""
        self._given: deque[tuple[int, list[int]]] = deque()
        self._refills: deque[list[int] | None] = deque()
        self._changed = threading.Condition()

    def give(self, entries: list[int], ticket: int = -1) -> None:
        """Take in the entries of the next iteration, for a task."""
        self._given.append((ticket, entries))

    def refill(self, entries: list[int] | None) -> None:
        """Take in what was asked for; `None` where the iteration is no longer wanted."""
        with self._changed:
            self._refills.append(entries)
            self._changed.notify_all()

    def draw(self, count: int, *, refill: bool = False) -> list[int]:
        """Entries of the next iteration, or in place of bad ones."""
        if not refill:
            self.ticket, entries = self._given.popleft()
            return entries
        if self._ask is not None:
            self._ask(self.ticket, count)
        with self._changed:
            while not self._refills:
                self._changed.wait()
            found = self._refills.popleft()
        if found is None:
            raise EndOfData("cancelled")
        return found

    def state(self) -> dict[str, Any]:
        """Nothing: the trainer's readers have it."""
        return {}
