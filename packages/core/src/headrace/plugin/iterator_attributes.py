"""Attributes of iterators that DALI does not document, and that published training code reads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from headrace.plugin.epoch_counter import EpochCounter, ReaderCounter
from headrace.plugin.iterator_steps import IteratorSteps


class IteratorAttributes(IteratorSteps):
    """Counts of DALI's iterators, derived from this library's counter of epochs."""

    _epochs: EpochCounter
    _epoch: tuple[int, bool]
    _first: Any
    _made_of: Callable[[Any], Any]

    @property
    def _size(self) -> int:
        return self._epochs.size

    @property
    def _counter(self) -> int:
        return self._epochs.counted

    @property
    def _first_batch(self) -> Any:
        """The batch that was taken ahead, as `__next__` will give it; `None` if there is none."""
        return self._ahead if self._first is None else self._made_of(self._first)

    @_first_batch.setter
    def _first_batch(self, value: Any) -> None:
        self._first, self._ahead = None, value

    @property
    def _reader(self) -> ReaderCounter:
        if not isinstance(self._epochs, ReaderCounter):
            raise AttributeError(
                "Only an iterator with `reader_name` knows about shards and their sizes."
            )
        return self._epochs

    @property
    def _size_no_pad(self) -> int:
        return sum(self._reader.shard_sizes)

    @property
    def _shards_num(self) -> int:
        return len(self._reader.shard_sizes)

    @property
    def _shards_id(self) -> list[int]:
        return list(self._reader.shards)

    @property
    def _shard_sizes_per_gpu(self) -> np.ndarray:
        return np.array(self._reader.shard_sizes)

    @property
    def _counter_per_gpu(self) -> np.ndarray:
        return np.array(self._reader.carried)

    @property
    def _last_batch_padded(self) -> bool:
        epochs = self._epochs
        return epochs.padded if isinstance(epochs, ReaderCounter) else self._epoch[1]
