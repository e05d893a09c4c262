"""Iterable-style PyTorch datasets as a source of batches."""

from __future__ import annotations

import contextlib
import copy
import itertools
import math
import threading
from collections.abc import Iterator
from typing import Any

import torch.utils.data._utils.worker as torch_worker

from headrace.errors import ArgumentTypeError, ArgumentValueError, UnknownLengthError
from headrace.plugin.pytorch.dataset_source import check_arguments
from headrace.plugin.pytorch.samples import Fields, columns, prepare_process

_telling = threading.RLock()
"""PyTorch keeps what `get_worker_info` returns in one place for the whole process."""


class IterableDatasetSource:
    """Batches of a `torch.utils.data.IterableDataset`, for `fn.external_source`.

    Give it to ``fn.external_source(source=..., cycle="raise")``, with `num_outputs` where its
    samples are tuples. With ``parallel=True`` workers iterate it; where it divides itself by
    `torch.utils.data.get_worker_info`, as datasets for a `DataLoader` do, `num_parts` of them work
    at once. Samples are not collated: they may differ in shape.

    Batches of the parts take turns; a part that is at its end is passed over. So the batches are
    the same for any number of workers, also for none.

    Parameters
    ----------
    dataset
        Anything that can be iterated. Its ``set_epoch`` is called before each epoch with its number
        where it has one.
    batch_size
        Samples in a batch; at most the batch size of the pipeline.
    num_parts
        What the dataset is told to be the number of workers. A dataset that does not ask for it
        must have one part only, as it would give all of its samples in each.
    num_shards, shard_id
        Number of processes that train together, and which of them this is: each of them has
        `num_parts` of the ``num_parts * num_shards`` workers that the dataset is told of.
    seed
        What the random generators that samples draw from in worker processes depend on.
    last_batch
        What becomes of the last samples of each part, if they are fewer than a batch:
        ``"partial"`` makes a smaller batch of them, ``"drop"`` leaves them out.
    fields
        As of `DatasetSource`.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If the arguments do not go together.
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int,
        *,
        num_parts: int = 1,
        num_shards: int = 1,
        shard_id: int = 0,
        seed: int = 0,
        last_batch: str = "partial",
        fields: Fields = None,
    ) -> None:
        check_arguments(dataset, batch_size, num_shards, shard_id, last_batch)
        if not hasattr(dataset, "__iter__"):
            raise ArgumentTypeError(
                f"`dataset` is a {type(dataset).__name__} that cannot be iterated; for a dataset "
                "with indices use `DatasetSource`."
            )
        if num_parts < 1:
            raise ArgumentValueError(f"`num_parts` is {num_parts}; it must be positive.")
        self.num_parts = num_parts
        self._dataset = dataset
        self._batch_size = batch_size
        self._first = shard_id * num_parts
        self._total = num_shards * num_parts
        self._seed = seed
        self._drop = last_batch == "drop"
        self._fields = fields
        self._epochs: dict[int, int] = {}

    def __len__(self) -> int:
        """Number of batches in an epoch, of a dataset with a length that is one part."""
        if self._total > 1:
            raise UnknownLengthError(
                "The number of samples in each part of the dataset is unknown."
            )
        count, size = len(self._dataset), self._batch_size
        return count // size if self._drop else math.ceil(count / size)

    def __iter__(self) -> Iterator[Any]:
        """All batches of an epoch."""
        parts = [self.iterate_part(k) for k in range(self.num_parts)]
        while parts:
            for part in list(parts):
                try:
                    yield next(part)
                except StopIteration:
                    parts.remove(part)

    def iterate_part(self, part: int) -> Iterator[Any]:
        """The batches of one part, of the next epoch."""
        epoch = self._epochs.get(part, 0)
        self._epochs[part] = epoch + 1
        prepare_process(self._seed, epoch, self._first + part)
        dataset = self._dataset
        if self.num_parts > 1:
            dataset = copy.copy(dataset)  # which may keep where it is
        set_epoch = getattr(dataset, "set_epoch", None)
        if callable(set_epoch):
            set_epoch(epoch)
        with self._told(part, dataset):
            samples = iter(dataset)
        while True:
            with self._told(part, dataset):
                batch = list(itertools.islice(samples, self._batch_size))
            if not batch or (self._drop and len(batch) < self._batch_size):
                return
            yield columns(batch, self._fields)

    def begin_at_pass(self, passes: int, part: int | None = None) -> None:
        """Let the next pass over a part, or over all of them, be number `passes`."""
        parts = range(self.num_parts) if part is None else (part,)
        self._epochs.update(dict.fromkeys(parts, passes))

    @contextlib.contextmanager
    def _told(self, part: int, dataset: Any) -> Iterator[None]:
        """Let `torch.utils.data.get_worker_info` say which part of the data is wanted."""
        if self._total == 1:
            yield
            return
        info = torch_worker.WorkerInfo(
            id=self._first + part,
            num_workers=self._total,
            seed=self._seed + self._first + part,
            dataset=dataset,
        )
        with _telling:
            before, torch_worker._worker_info = torch_worker._worker_info, info
            try:
                yield
            finally:
                torch_worker._worker_info = before
