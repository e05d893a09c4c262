"""`source`: a Squirrel data set for `fn.external_source`."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from headrace.errors import ArgumentTypeError, ArgumentValueError, EndOfData, UsageError
from headrace.operators.support.external.traits import SourceTraits
from headrace.plugin.squirrel import settings
from headrace.plugin.squirrel.folder_passes import FolderPasses
from headrace.plugin.squirrel.read_ahead import SKIPPED
from headrace.plugin.squirrel.recognise import folder_of, is_squirrel
from headrace.plugin.squirrel.stream import StreamPasses
from headrace.types import BatchInfo, DataTypeLike, SampleInfo

_ORDERS = ("sequential", "interleave", "shuffle")
_LAST_BATCHES = ("partial", "fill", "drop")


def source(
    data: Any,
    fields: str | Sequence[str] | None = None,
    *,
    dtype: DataTypeLike | Mapping[str, DataTypeLike | None] | None = None,
    num_workers: int | None = None,
    order: str = "sequential",
    readahead_bytes: int = settings.READAHEAD_BYTES,
    shuffle_buffer: int = settings.SHUFFLE_BUFFER,
    num_shards: int = 1,
    shard_id: int = 0,
    seed: int = 0,
    last_batch: str = "partial",
    length: int | None = None,
    batch_size: int | None = None,
    schema: Mapping[str, Any] | None = None,
    on_mismatch: str = "raise",
    cache: str | None = None,
    allow_pickle: bool = False,
    storage_options: Mapping[str, Any] | None = None,
) -> SquirrelSource:
    """A Squirrel data set as the `source` of `fn.external_source`.

    Shards are read by threads of their own, ahead of the pipeline. The source gives batches, with
    one output for each field, and starts again with every epoch.

    Parameters
    ----------
    data
        The folder or address of the shards; a `MessagepackDriver` or `JsonlDriver`; a
        `CatalogSource` of one of these; or a Composable, or any other driver, whose samples then
        come one after the other from Squirrel itself, but for the reading of the shards where that
        is recognised.
    fields
        Which values of each sample become outputs, in this order. A single name gives one output
        that is not in a list; without any, all that the first sample has are taken.
    dtype
        Element type to convert to, as `types.as_data_type` takes it, or by name of a field the one
        of that field. Without it, what is stored is kept.
    num_workers
        Number of threads that read; as many as there are processors when not given.
    order
        ``"sequential"``: one shard after the other, in the order of their names. ``"interleave"``:
        8 shards side by side, which needs less memory to read in parallel. ``"shuffle"``: the same,
        with the shards permuted anew for each epoch, and out of a buffer.
    readahead_bytes
        Largest number of bytes decoded before they are asked for.
    shuffle_buffer
        How many samples the buffer of ``order="shuffle"`` holds.
    num_shards, shard_id
        Read one of that many equal parts. Together they hold every sample once, in every epoch,
        if all have the same `seed`.
    seed
        Of the order of ``"shuffle"``.
    last_batch
        What becomes of the samples that are left for the last batch: ``"partial"`` gives a smaller
        one, ``"fill"`` repeats the last sample, ``"drop"`` leaves them out. With the last two, all
        parts have equally many batches.
    length
        Number of samples of an epoch, if it is not to be that of the part: it is cut there, or goes
        on with a further pass.
    batch_size
        Number of samples of a batch; that of the pipeline when not given.
    schema
        By name of a field, what all its samples have to be: an element type, or a pair of it and a
        number of dimensions or a shape, ``(np.uint8, (None, None, 3))``. Without it, they have to
        have type and number of dimensions of the first.
    on_mismatch
        What to do with a sample that is not that: ``"raise"``, ``"skip"`` it, or ``"cast"`` its
        elements.
    cache
        A folder in which inflated shards are kept: from the second epoch on, nothing is inflated.
    allow_pickle
        Load arrays of Python objects, which are stored as pickles: this runs code that comes with
        the data.
    storage_options
        For the file system, as Squirrel's drivers take them.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If an argument has a value that makes no sense.

    Examples
    --------
    >>> from headrace import fn, pipeline_def
    >>> from headrace.plugin import squirrel
    >>> @pipeline_def(batch_size=32, num_threads=4, device_id=None)
    ... def pipeline(url):
    ...     images, labels = fn.external_source(
    ...         source=squirrel.source(url, fields=["image", "label"], order="shuffle")
    ...     )
    ...     return fn.resize(images, size=(224, 224)), labels
    """
    if order not in _ORDERS:
        raise ArgumentValueError(f"`order` is {order!r}; it can be one of {_listed(_ORDERS)}.")
    if last_batch not in _LAST_BATCHES:
        raise ArgumentValueError(
            f"`last_batch` is {last_batch!r}; it can be one of {_listed(_LAST_BATCHES)}."
        )
    settings.at_least("num_shards", num_shards, 1)
    settings.at_least("readahead_bytes", readahead_bytes, 1)
    settings.at_least("shuffle_buffer", shuffle_buffer, 1)
    if (
        isinstance(shard_id, bool)
        or not isinstance(shard_id, int)
        or not (0 <= shard_id < num_shards)
    ):
        raise ArgumentValueError(
            f"`shard_id` is {shard_id!r}; it must be at least 0 and less than `num_shards`, which "
            f"is {num_shards}."
        )
    for name, value in (("length", length), ("batch_size", batch_size)):
        if value is not None:
            settings.at_least(name, value, 1)
    workers = settings.worker_count(num_workers)
    folder = folder_of(data, storage_options)
    passes: Any
    if folder is not None:
        if cache is not None:
            from headrace.plugin.squirrel.shard_cache import CachedFolder

            folder = CachedFolder(folder, cache)
        passes = FolderPasses(
            folder,
            fields=fields,
            dtype=dtype,
            schema=schema,
            on_mismatch=on_mismatch,
            workers=workers,
            readahead_bytes=readahead_bytes,
            allow_pickle=allow_pickle,
            order=order,
            buffer=shuffle_buffer,
            seed=seed,
            part=shard_id,
            parts=num_shards,
        )
    else:
        _check_stream(data, order=order, num_shards=num_shards, cache=cache)
        passes = StreamPasses(
            data,
            fields=fields,
            dtype=dtype,
            schema=schema,
            on_mismatch=on_mismatch,
            workers=workers,
            readahead_bytes=readahead_bytes,
            allow_pickle=allow_pickle,
        )
    return SquirrelSource(passes, last_batch=last_batch, length=length, batch_size=batch_size)


def _check_stream(data: Any, *, order: str, num_shards: int, cache: str | None) -> None:
    if not is_squirrel(data):
        raise ArgumentTypeError(
            f"`data` is a {type(data).__name__}; expected the address of a folder of shards, or a "
            "driver, CatalogSource or Composable of Squirrel."
        )
    kind = type(data).__name__
    for name, usual, given, instead in (
        ("order", "sequential", order, "use its `shuffle`"),
        ("num_shards", 1, num_shards, "split its keys with `key_hooks=[SplitByRank]`"),
        ("cache", None, cache, "leave it out"),
    ):
        if given != usual:
            raise ArgumentValueError(
                f"`{name}` is {given!r}, but a {kind} has an order of its own: {instead}, or give "
                "the folder of the shards in its place."
            )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)


class SquirrelSource:
    """External source made by `source`; call it with a position, or pass it to
    `fn.external_source`.
    """

    def __init__(
        self, passes: Any, *, last_batch: str, length: int | None, batch_size: int | None
    ) -> None:
        self._passes = passes
        self._last_batch = last_batch
        self._length = length
        self._own_batch_size = batch_size
        self._batch_size = batch_size
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._epoch = -1
        self._position = 0
        self._samples: Iterator[Any] | None = None
        self._pass: Any = None
        self._ended = False
        self._failed: Exception | None = None
        self._last: Any = None
        self.external_source_traits = SourceTraits(
            num_outputs=None if passes.single else len(passes.names),
            batch_info=True,
            gives_away=True,
        )

    @property
    def fields(self) -> tuple[str, ...]:
        """Names of the fields, one for each output."""
        return tuple(self._passes.names)

    def epoch_size(self) -> int:
        """Number of samples of an epoch, without those that fill up its last batch.

        Unless it is known, the shards are read once to count them.
        """
        return self._length or int(self._passes.size())

    def count_batches(self, size: int) -> int | None:
        """Number of batches of an epoch in a pipeline of this batch size, as far as it is known.

        Shards are not read to count their samples.
        """
        size = self._own_batch_size or size
        samples = self._length or self._passes.known_size()
        if samples is None:
            return None
        found = self._batches(size)
        if found is None:
            found = samples // size if self._last_batch == "drop" else -(-samples // size)
        return found

    def expect_batch_size(self, size: int) -> None:
        """Take the size of a batch of the pipeline, if none was given."""
        if self._own_batch_size is None:
            self._batch_size = size
        elif self._own_batch_size > size:
            raise ArgumentValueError(
                f"`batch_size` of the source is {self._own_batch_size}, more than the {size} of "
                "the pipeline. Leave it out to take the pipeline's."
            )

    def __call__(self, position: Any) -> Any:
        """The batch, or the sample, for `position`: of the field, or a tuple with one for each.

        Parameters
        ----------
        position
            A `BatchInfo`, or the number of the iteration in the epoch, for a batch; a `SampleInfo`
            for a sample.

        Raises
        ------
        StopIteration
            At the end of the epoch.
        """
        if self._pid != os.getpid():  # a fork, which has neither the threads nor a free lock
            self.__setstate__(self.__getstate__())
        with self._lock:
            if hasattr(position, "idx_in_epoch"):
                return self._sample(position)
            return self._batch(position)

    def samples(self, epoch: int = 0) -> Iterator[Any]:
        """The samples of `epoch`, one by one, to look at them without a pipeline."""
        opened = self._passes.open(epoch, 0)
        try:
            for sample in opened:
                if sample is not SKIPPED:
                    yield sample[0] if self._passes.single else sample
        finally:
            opened.close()

    def close(self) -> None:
        """Stop reading; the next call begins anew."""
        if self._pass is not None:
            self._pass.close()
        self._pass = self._samples = self._failed = None

    def __getstate__(self) -> dict[str, Any]:
        state = self.__dict__.copy()
        for name in ("_lock", "_samples", "_pass", "_failed", "_last"):
            del state[name]
        state["_epoch"], state["_position"] = -1, 0
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.Lock()
        self._pid = os.getpid()
        self._samples = self._pass = self._failed = self._last = None

    # -- positions ------------------------------------------------------------------------------

    def _batch(self, position: BatchInfo | int) -> Any:
        size = self._batch_size
        if size is None:
            raise ArgumentValueError(
                "The size of a batch is not known. Give `batch_size` to the source, or use it in a "
                "pipeline of Headrace."
            )
        if isinstance(position, int):
            begun = self._samples is not None or self._epoch >= 0
            epoch = self._epoch + 1 if position == 0 or not begun else self._epoch
            if position and not begun:
                epoch = 0
            start = position * size
        else:
            epoch, start = position.epoch_idx, position.iteration * size
        self._go_to(epoch, start)
        if self._is_behind(start // size, size):
            raise EndOfData("the end of the data set")
        batch = self._draw(size)
        if len(batch) < size:
            batch = self._completed(batch, start // size, size)
        columns = [[sample[k] for sample in batch] for k in range(len(self._passes.names))]
        return columns[0] if self._passes.single else tuple(columns)

    def _sample(self, position: SampleInfo) -> Any:
        if self._last_batch == "partial":
            raise UsageError(
                "This source gives batches; leave `batch` of `fn.external_source` at True. With "
                'batch=False, what is left for the last batch cannot be had: use last_batch="drop" '
                'or "fill".'
            )
        self._go_to(position.epoch_idx, position.idx_in_epoch)
        size = self._batch_size
        if size is not None and self._is_behind(position.iteration, size):
            raise EndOfData("the end of the data set")
        found = self._draw(1)
        if not found:
            number = position.iteration if position.idx_in_batch == 0 else -1
            found = self._completed([], number, 1 if size is None else size)[:1]
            self._position = position.idx_in_epoch + 1
        return found[0][0] if self._passes.single else found[0]

    def _go_to(self, epoch: int, start: int) -> None:
        if epoch == self._epoch and self._samples is not None:
            if start == self._position:
                if self._failed is not None:
                    raise self._failed
                return
            if self._ended and start > self._position:  # after a last batch that was not full
                raise EndOfData("the end of the data set")
        self.close()
        self._samples = self._run(epoch, start)
        self._ended = False
        self._epoch, self._position = epoch, start

    def _draw(self, count: int) -> list[Any]:
        """Up to `count` further samples."""
        assert self._samples is not None
        found: list[Any] = []
        try:
            while len(found) < count:
                sample = next(self._samples, None)
                if sample is None:
                    break
                found.append(sample)
        except Exception as error:
            self._failed = error
            raise
        self._position += len(found)
        self._ended = len(found) < count
        if self._position == 0:
            raise ArgumentValueError("The data set is empty: there is no sample in it.")
        return found

    def _completed(self, batch: list[Any], iteration: int, size: int) -> list[Any]:
        """The last batch of the epoch, number `iteration`, filled up if that is wanted.

        Number -1 stands for one that has begun.
        """
        batches = self._batches(size)
        owed = iteration == -1 or (batches is not None and iteration < batches)
        if self._last_batch == "drop" or not (batch or (self._last_batch == "fill" and owed)):
            raise EndOfData("the end of the data set")
        if self._last_batch == "fill":
            missing = size - len(batch)
            self._position += missing
            return batch + [self._last_sample()] * missing
        return batch

    def _last_sample(self) -> Any:
        if self._last is None:  # the first call asked for what is after the end
            opened = self._passes.open(self._epoch, int(self._passes.size()) - 1)
            self._last = next(iter(opened))
            opened.close()
        return self._last

    def _is_behind(self, iteration: int, size: int) -> bool:
        batches = self._batches(size)
        return batches is not None and iteration >= batches

    def _batches(self, size: int) -> int | None:
        """Number of batches in every part; `None` if it is not the same for all, or not known."""
        if self._last_batch == "partial":
            return None
        if self._length is not None:
            smallest = largest = self._length
        elif self._passes.parts > 1:
            smallest, largest = self._passes.sizes()
        else:
            return None
        return smallest // size if self._last_batch == "drop" else -(-largest // size)

    def _run(self, epoch: int, start: int) -> Iterator[Any]:
        """The samples of `epoch` from `start` on."""
        left = None if self._length is None else max(self._length - start, 0)
        number = behind = 0
        if left is not None and start and self._passes.counted:
            number, start = divmod(start, int(self._passes.size()))
        while left is None or left > 0:
            self._pass, more = self._passes.open_at(_numbered(epoch, number), start)
            behind += more
            count = 0
            for sample in self._pass:
                if sample is SKIPPED:
                    continue
                count += 1
                if behind:
                    behind -= 1
                    continue
                self._last = sample
                yield sample
                if left is not None:
                    left -= 1
                    if not left:
                        break
            self._pass.close()
            if left is None or (not count and not start):
                return
            number, start = number + 1, 0


def _numbered(epoch: int, number: int) -> int:
    """A number for a further pass of an epoch, far from those of other epochs."""
    return epoch if not number else (epoch + number * 0x9E3779B1) & 0xFFFFFFFF
