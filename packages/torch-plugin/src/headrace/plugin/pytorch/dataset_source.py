"""Map-style PyTorch datasets as a source of batches."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from headrace.errors import ArgumentChoiceError, ArgumentTypeError, ArgumentValueError
from headrace.plugin.pytorch.samples import Fields, columns, prepare_process
from headrace.types import BatchInfo

_REMEMBERED = 64
"""Batches whose samples are known still, for a caller who asks again."""


class DatasetSource:
    """Batches of a map-style `torch.utils.data.Dataset`, for `fn.external_source`.

    Give it to ``fn.external_source(source=..., batch_info=True)``, with `num_outputs` where its
    samples are tuples, and with ``parallel=True`` or ``parallel="threads"`` to have workers load
    the samples. Samples are not collated: they may differ in shape. The batches are the same for
    any number of workers.

    Parameters
    ----------
    dataset
        Anything with ``dataset[index]``, and a length unless a sampler is given. Its
        ``__getitems__`` is used where it has one.
    batch_size
        Samples in a batch; at most the batch size of the pipeline.
    sampler
        Yields the indices of an epoch, in order; a `torch.utils.data.Sampler`, or any iterable.
        Its ``set_epoch`` is called with the number of each epoch where it has one.
    shuffle
        Draw a new order for each epoch, from `seed` and the number of the epoch.
    seed
        See `shuffle`. The random generators that samples draw from in worker processes depend on
        it, too.
    num_shards, shard_id
        Of how many equal parts of the epoch this is which, such as the ranks of a training on
        several GPUs. The parts are made of the shuffled order, so that all of them get to see
        all samples over time. A `sampler` must yield the same on all ranks.
    even_shards
        Repeat samples from the beginning of the order, so that all shards have as many.
    last_batch
        ``"partial"``: the last batch is smaller where the samples do not go up; ``"drop"``: it is
        left out.
    fields
        Which elements of a sample are wanted, by name or position: one for one output, or several.
        All elements of tuples when None.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If the arguments do not go together.

    Examples
    --------
    ::

        source = DatasetSource(dataset, 64, shuffle=True, seed=1, fields=("image", "label"))


        @pipeline_def(batch_size=64, num_threads=4, device_id=None, py_num_workers=4)
        def training():
            images, labels = fn.external_source(
                source=source, num_outputs=2, batch_info=True, parallel=True
            )
            return fn.resize(images, size=(224, 224)), labels
    """

    def __init__(
        self,
        dataset: Any,
        batch_size: int,
        *,
        sampler: Iterable[Any] | None = None,
        shuffle: bool = False,
        seed: int = 0,
        num_shards: int = 1,
        shard_id: int = 0,
        even_shards: bool = True,
        last_batch: str = "partial",
        fields: Fields = None,
    ) -> None:
        check_arguments(dataset, batch_size, num_shards, shard_id, last_batch)
        if not hasattr(dataset, "__getitem__"):
            raise ArgumentTypeError(
                f"`dataset` is a {type(dataset).__name__} without `__getitem__`; for an "
                "`IterableDataset` use `IterableDatasetSource`."
            )
        if sampler is not None and shuffle:
            raise ArgumentValueError("`shuffle` has no use with a `sampler`, which has the order.")
        if sampler is None and not hasattr(dataset, "__len__"):
            raise ArgumentTypeError(
                f"`dataset` is a {type(dataset).__name__} without a length; give it one, or a "
                "`sampler` that knows its indices."
            )
        self._dataset = dataset
        self._batch_size = batch_size
        self._sampler = sampler
        self._shuffle = shuffle
        self._seed = seed
        self._num_shards = num_shards
        self._shard_id = shard_id
        self._even = even_shards
        self._drop = last_batch == "drop"
        self._fields = fields
        self._epoch: _Epoch | None = None

    def __getstate__(self) -> dict[str, Any]:
        # Workers are told the indices: they need no sampler, which may not even be picklable.
        return {**self.__dict__, "_sampler": None, "_epoch": None}

    def __len__(self) -> int:
        """Number of batches in an epoch of this shard."""
        total = len(self._dataset if self._sampler is None else self._sampler)  # type: ignore[arg-type]
        own = total // self._num_shards
        if total % self._num_shards:
            own += self._even or self._shard_id < total % self._num_shards
        return own // self._batch_size if self._drop else math.ceil(own / self._batch_size)

    def plan_batch(self, info: BatchInfo) -> tuple[Sequence[Any], tuple[int, int, int]]:
        """Indices of a batch, and what its random numbers depend on; in the main process.

        Raises
        ------
        StopIteration
            Beyond the last batch of an epoch.
        """
        if not isinstance(info, BatchInfo):
            raise ArgumentTypeError(
                "A DatasetSource has to be told the epoch: give `fn.external_source` the argument "
                "batch_info=True, and leave `batch` as it is."
            )
        if self._epoch is None or self._epoch.number != info.epoch_idx:
            self._epoch = _Epoch(info.epoch_idx, self._order(info.epoch_idx), self._batch_size)
        indices = self._epoch.batch(info.iteration)
        if not len(indices) or (self._drop and len(indices) < self._batch_size):
            raise StopIteration
        return indices, (self._seed, info.epoch_idx, info.iteration)

    def load_batch(self, plan: tuple[Sequence[Any], tuple[int, int, int]]) -> Any:
        """The samples of a planned batch; in any process or thread."""
        indices, seed = plan
        prepare_process(*seed)
        keys = indices.tolist() if isinstance(indices, np.ndarray) else list(indices)
        together = getattr(self._dataset, "__getitems__", None)
        samples = together(keys) if callable(together) else [self._dataset[k] for k in keys]
        return columns(list(samples), self._fields)

    def __call__(self, info: BatchInfo) -> Any:
        """The samples of a batch."""
        return self.load_batch(self.plan_batch(info))

    def _order(self, epoch: int) -> Iterable[Any]:
        """The indices of this shard in an epoch."""
        if self._sampler is not None:
            set_epoch = getattr(self._sampler, "set_epoch", None)
            if callable(set_epoch):
                set_epoch(epoch)
            return self._own(iter(self._sampler))
        count = len(self._dataset)
        if self._shuffle:
            order = np.random.default_rng([self._seed, epoch]).permutation(count)
        else:
            order = np.arange(count)
        if self._even and count % self._num_shards:
            order = np.resize(order, math.ceil(count / self._num_shards) * self._num_shards)
        return order[self._shard_id :: self._num_shards]

    def _own(self, indices: Iterator[Any]) -> Iterator[Any]:
        """Every `num_shards`-th of `indices`, which may never end."""
        beginning: list[Any] = []
        while group := list(itertools.islice(indices, self._num_shards)):
            if len(beginning) < self._num_shards:
                beginning += group
            if len(group) < self._num_shards:
                if not self._even:
                    if self._shard_id < len(group):
                        yield group[self._shard_id]
                    return
                group += itertools.islice(itertools.cycle(beginning), self._num_shards - len(group))
            yield group[self._shard_id]


class _Epoch:
    """The batches of an epoch, as far as they have been drawn."""

    def __init__(self, number: int, order: Iterable[Any], batch_size: int) -> None:
        self.number = number
        self._array = order if isinstance(order, np.ndarray) else None
        self._rest = iter(order)
        self._size = batch_size
        self._drawn: dict[int, Sequence[Any]] = {}
        self._next = 0

    def batch(self, index: int) -> Sequence[Any]:
        """Indices of batch `index`; none beyond the end."""
        if self._array is not None:
            return self._array[index * self._size : (index + 1) * self._size]  # type: ignore[return-value]
        while self._next <= index:
            self._drawn[self._next] = list(itertools.islice(self._rest, self._size))
            self._drawn.pop(self._next - _REMEMBERED, None)
            self._next += 1
        return self._drawn[index]


def check_arguments(
    dataset: Any, batch_size: int, num_shards: int, shard_id: int, last_batch: str
) -> None:
    """Check what both kinds of sources take."""
    if batch_size < 1:
        raise ArgumentValueError(f"`batch_size` is {batch_size}; it must be positive.")
    if not 0 <= shard_id < num_shards:
        raise ArgumentValueError(
            f"`shard_id` is {shard_id} and `num_shards` {num_shards}; it must be "
            "0 <= shard_id < num_shards."
        )
    if last_batch not in ("partial", "drop"):
        raise ArgumentChoiceError(f'`last_batch` is {last_batch!r}; it can be "partial" or "drop".')
