"""A pipeline without an executor, whose only output says which sample it is.

It has the calls that iterators make, and draws from the real order of readers.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from headrace.errors import UsageError
from headrace.operators.readers.order import ReadingOrder
from headrace.pipeline.settings import Settings
from headrace.plugin.base_iterator import PipelineBatch, _DaliBaseIterator
from headrace.tensors import TensorListCPU
from headrace.types import PipelineAPIType


class CountingPipeline:
    """Gives the numbers of the samples of one shard.

    `bad`: samples that cannot be read; later ones take their places.
    """

    def __init__(
        self, size: int, batch_size: int, *, depth: int = 2, bad: Iterable[int] = (), **order: Any
    ) -> None:
        self.max_batch_size = batch_size
        self.order = ReadingOrder(size, **order)
        self.bad = frozenset(bad)
        self.api: PipelineAPIType | None = None
        self._queue: deque[Any] = deque()
        self._depth = depth
        self._started = False
        self._skipped_in_last_outputs = 0
        self._draw_numbers_in_last_outputs: list[int] | None = None
        self.num_outputs = 1
        self.shared = 0
        self.released = 0
        self._restored = None
        self._settings = Settings(enable_checkpointing=False)

    def _latch_api(self, api: PipelineAPIType) -> None:
        if self.api not in (None, api):
            raise UsageError("Mixing pipeline API type.")
        self.api = api

    def build(self) -> None:
        pass

    def reader_meta(self, name: str) -> dict[str, int]:
        order = self.order
        padded = -(-order.size // order.num_shards) * order.num_shards
        return {
            "epoch_size": order.size,
            "epoch_size_padded": padded if order.pad_last_batch else order.size,
            "number_of_shards": order.num_shards,
            "shard_id": order.shard_id,
            "pad_last_batch": int(order.pad_last_batch),
            "stick_to_shard": int(order.stick_to_shard),
        }

    def schedule_run(self) -> None:
        for _ in range(1 if self._started else self._depth):
            before = self.order.state()
            entries = self.order.draw(self.max_batch_size)
            numbers = list(range(len(entries)))
            drawn = len(entries)
            while failed := [i for i, e in enumerate(entries) if e in self.bad]:
                for i in failed:
                    entries[i] = self.order.draw(1, refill=True)[0]
                    numbers[i] = drawn
                    drawn += 1
            self._queue.append((before, entries, drawn - len(entries), numbers))
        self._started = True

    def share_outputs(self) -> tuple[TensorListCPU, ...]:
        if not self._queue:
            raise StopIteration
        _, entries, skipped, numbers = self._queue.popleft()
        self._skipped_in_last_outputs = skipped
        self._draw_numbers_in_last_outputs = numbers if skipped else None
        self.shared += 1
        return (TensorListCPU._from_dense(np.array(entries, np.int64).reshape(-1, 1)),)

    def release_outputs(self) -> None:
        self.released += 1

    def reset(self) -> None:
        pass

    def empty(self) -> bool:
        return not self._queue

    def _reader_epoch(self, name: str) -> int:
        return self.order.epoch

    def _restart_epoch(self, at_least: Mapping[str, int] | None = None) -> dict[str, int]:
        if self._queue:
            self.order.restore(self._queue[0][0])
            self._queue.clear()
        self._started = False
        return {"reader": self.order.next_epoch((at_least or {}).get("reader", 0))}


class NumberIterator(_DaliBaseIterator):
    """Gives the numbers of the samples, a list for each pipeline."""

    def _assemble(self, batches: list[PipelineBatch]) -> list[list[int]]:
        steps = []
        for batch in batches:
            numbers = [int(batch.outputs[0].at(i)[0]) for i in range(len(batch.outputs[0]))]
            kept = batch.kept
            steps.append(numbers[:kept] if isinstance(kept, int) else [numbers[i] for i in kept])
        return steps
