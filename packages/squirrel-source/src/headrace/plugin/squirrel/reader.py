"""`fn.readers.squirrel`: a data set of Squirrel's with the arguments and epochs of a reader."""

from __future__ import annotations

import bisect
import contextlib
import itertools
import threading
from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.errors import ArgumentValueError, BadSampleError
from headrace.operators.readers.base import READER_ARGS, Reader
from headrace.operators.readers.index import Index
from headrace.operators.readers.order import ReadingOrder
from headrace.operators.support.argument_types import BoolArg, IntArg, ObjectArg, PathArg
from headrace.operators.support.operator import operator
from headrace.operators.support.schema import REQUIRED, Arg, Spec
from headrace.plugin.squirrel import settings
from headrace.plugin.squirrel.counts import count_samples
from headrace.plugin.squirrel.epoch import ReadSettings
from headrace.plugin.squirrel.fields import FieldReader, field_names
from headrace.plugin.squirrel.order import Counted, ShardSegment
from headrace.plugin.squirrel.recognise import folder_of
from headrace.types import to_dali_type

if TYPE_CHECKING:
    from headrace.plugin.squirrel.dataset import ShardFolder
    from headrace.plugin.squirrel.read_ahead import SegmentReader

_OWN = ("random_shuffle", "initial_fill", "sampler", "side_data")
_SHUFFLE = (
    Arg(
        "random_shuffle",
        BoolArg,
        False,
        "Shuffle: the shards are permuted for every epoch, in the same way on all ranks, and the "
        "samples drawn out of a window of `initial_fill`, which 8 shards fill side by side.",
    ),
    Arg(
        "initial_fill",
        IntArg,
        1024,
        "Size of the window of `random_shuffle`, in samples. They are held decoded.",
    ),
)


def _folder(args: Mapping[str, Any]) -> ShardFolder:
    folder = folder_of(args["path"], args["storage_options"])
    if folder is None:
        raise ArgumentValueError(
            f"`path` is a {type(args['path']).__name__}; expected the folder or address of the "
            "shards, or a MessagepackDriver, JsonlDriver or CatalogSource. Other objects of "
            "Squirrel's go into `external_source`, by `headrace.plugin.squirrel.source`."
        )
    if args["cache"] is not None:
        from headrace.plugin.squirrel.shard_cache import CachedFolder

        return CachedFolder(folder, args["cache"])
    return folder


def _output_count(args: Mapping[str, Any]) -> int:
    """Number of fields; looks into the data set if they are not named."""
    fields = args["fields"]
    if fields is not None:
        return len(field_names(fields, None))
    return len(field_names(None, _folder(args).first_sample(allow_pickle=args["allow_pickle"])))


class _Order(ReadingOrder):
    """The order of a reader of shards: `ReadSettings` says how an epoch goes."""

    def __init__(self, size: int, reader: SquirrelReader, **options: Any) -> None:
        super().__init__(size, **options)
        self._reader = reader

    def entries_of(self, epoch: int, shard: int) -> np.ndarray:
        """Numbers of the samples of part `shard` in `epoch`."""
        return np.frombuffer(self._reader.epoch_plan(epoch, shard)[1], np.int64)

    def why_fixed(self) -> str:
        """Files are read as streams, each by one reader."""
        return "files of shards are read from their beginning, by one reader each"


class _EpochReadAhead:
    """The reading of one epoch: which samples it still has to give, and who reads them."""

    def __init__(
        self,
        reading: ReadSettings,
        segments: Sequence[ShardSegment],
        starts: list[int],
        left: np.ndarray,
    ) -> None:
        self._slots = {s.shard: slot for slot, s in enumerate(segments)}
        self._starts = starts
        self.pending = bytearray(starts[-1])
        """For each sample, whether it is to be given."""
        np.frombuffer(self.pending, np.uint8)[left] = 1
        self.count = len(left)
        needed = bytes(self.pending)
        first = [starts[s.shard] for s in segments]
        self.reader: SegmentReader = reading.start(
            [
                _without_beginning(s, needed, begin)
                for s, begin in zip(segments, first, strict=True)
            ],
            lambda slot, number: not needed[first[slot] + number],
        )

    def take(self, shard: int, entry: int, *, keep: bool) -> Any:
        """Sample `entry`, which is one of `shard`."""
        return self.reader.take(self._slots[shard], entry - self._starts[shard], keep=keep)


def _without_beginning(segment: ShardSegment, needed: bytes, begin: int) -> ShardSegment:
    """`segment` without what is not needed at its beginning."""
    stop = segment.stop
    assert stop is not None
    found = needed.find(1, begin + segment.start, begin + stop)
    return ShardSegment(segment.shard, stop if found < 0 else found - begin, stop)


class _Samples(Index):
    """The samples of a data set, of which the reader's own threads inflate shards ahead."""

    def __init__(self, size: int, reader: SquirrelReader) -> None:
        super().__init__(size, reader.specs())
        self._reader = reader

    def source(self, entry: int) -> str:
        """The shard that a sample is in, and its number there."""
        return self._reader.source(entry)

    def fetch(self, entry: int) -> tuple[np.ndarray, ...]:
        """The fields of a sample."""
        return self._reader.take(entry)


@operator(
    "readers.squirrel",
    args=(
        Arg(
            "path",
            ObjectArg,
            REQUIRED,
            "Folder or address of the shards, or a driver or CatalogSource that reads such.",
        ),
        Arg(
            "fields",
            ObjectArg,
            None,
            "Names of the values of a sample that become outputs; all that the first sample has "
            "when not given.",
        ),
        Arg(
            "dtype",
            ObjectArg,
            None,
            "Element type to convert to, or a dictionary with that of some fields. What is stored "
            "is kept otherwise.",
        ),
        *(arg for arg in READER_ARGS if arg.name not in _OWN),
        *_SHUFFLE,
        Arg(
            "shuffle_seed",
            IntArg,
            0,
            "Seed of the order of the shards with `random_shuffle`: has to be the same on all "
            "ranks. (`seed`, of the window, may differ.)",
        ),
        Arg(
            "num_workers",
            IntArg,
            None,
            "Number of threads that read shards; as many as there are processors by default.",
        ),
        Arg(
            "readahead_bytes",
            IntArg,
            settings.READAHEAD_BYTES,
            "Largest number of bytes decoded before they are asked for.",
        ),
        Arg("cache", PathArg, None, "Folder in which inflated shards are kept for later epochs."),
        Arg(
            "allow_pickle",
            BoolArg,
            False,
            "Load arrays of Python objects, which are pickles: runs code that comes with the data.",
        ),
        Arg(
            "storage_options",
            ObjectArg,
            None,
            "For the file system, as Squirrel's drivers take it.",
        ),
    ),
    num_outputs=_output_count,
    reader=True,
    random=True,
    devices=("cpu",),
)
class SquirrelReader(Reader):
    """Reads a data set that Squirrel has written, one output for each field.

    Shards are files of samples one after another, each a dictionary in MessagePack or JSON,
    compressed by gzip. They are read natively, without Squirrel, by threads of their own that work
    ahead. Arrays keep their element type and may differ in shape; bytes become uint8, so that
    encoded images can be decoded.

    To know the size of an epoch, and to cut it into equal parts, the samples are counted when the
    pipeline is built, by reading through the shards once. The counts are remembered between runs.
    """

    def list_entries(self) -> Index:
        args = self.args
        folder = _folder(vars(args))
        first = folder.first_sample(allow_pickle=args.allow_pickle)
        self._fields = FieldReader(field_names(args.fields, first), dtype=args.dtype)
        self._fields.learn(first)
        workers = settings.worker_count(args.num_workers)
        self._keys, self._counts = count_samples(folder, workers)
        self._starts = [0, *itertools.accumulate(self._counts)]
        shuffled = args.random_shuffle
        self._reading = ReadSettings(
            folder=folder,
            keys=self._keys,
            fields=frozenset(self._fields.names),
            convert=self._fields,
            workers=workers,
            readahead_bytes=settings.at_least("readahead_bytes", args.readahead_bytes, 1),
            allow_pickle=args.allow_pickle,
            lanes=settings.LANES if shuffled else 1,
            shuffled=shuffled,
            buffer=args.initial_fill if shuffled else 1,
            keys_seed=args.shuffle_seed,
        )
        return _Samples(self._starts[-1], self)

    def make_order(self, size: int, seed: int) -> ReadingOrder:
        args = self.args
        if args.initial_fill < 1:
            raise ArgumentValueError(
                f"`initial_fill` is {args.initial_fill}, but `random_shuffle` draws out of that "
                "many samples: give at least 1."
            )
        self._reading = self._reading.seeded(seed)
        self._lock = threading.Lock()
        self._ahead: list[_EpochReadAhead] = []
        self._begun: tuple[int, int] | None = None
        """Epoch and position up to which `_ahead` knows of what is drawn."""
        self._demand: Counter[int] = Counter()
        self._planned: tuple[int, int, list[ShardSegment], array[int]] | None = None
        return _Order(
            size,
            self,
            shard_id=args.shard_id,
            num_shards=args.num_shards,
            stick_to_shard=args.stick_to_shard,
            pad_last_batch=args.pad_last_batch,
        )

    def specs(self) -> list[Spec]:
        """Types of the fields."""
        outputs = map(self._fields.output, self._fields.names)
        return [Spec(to_dali_type(dtype), ndim) for dtype, ndim in outputs]

    def epoch_plan(self, epoch: int, shard: int) -> tuple[list[ShardSegment], array[int]]:
        """Plan of what part `shard` reads in `epoch`: its segments, and the numbers of its
        samples.
        """
        if self._planned is None or self._planned[:2] != (epoch, shard):
            segments = self._reading.segments(epoch, shard, self._order.num_shards, self._counts)
            first = [self._starts[s.shard] for s in segments]
            numbers = array("q")
            if self._reading.in_order:
                for begin, s in zip(first, segments, strict=True):
                    numbers.extend(range(begin + s.start, begin + (s.stop or 0)))
            else:
                places = self._reading.emission(Counted(segments), epoch, shard)
                numbers.extend(first[slot] + number for slot, number in places)
            self._planned = (epoch, shard, segments, numbers)
        return self._planned[2:]

    # -- drawing: one call at a time, in the order of iterations -------------------------------

    def draw(self, count: int, *, refill: bool = False) -> list[int]:
        order = self._order
        if self._begun != (order.epoch, order.position):
            self._forget()
            self._begin(order.epoch, order.position)
        drawn = order.draw(count, refill=refill)
        with self._lock:
            self._demand.update(drawn)
        # Which epochs the samples are of makes no difference: they are the same in all of them.
        for epoch in range(self._last_begun + 1, order.epoch + 1):
            self._begin(epoch, 0)
        self._begun = (order.epoch, order.position)
        return drawn

    def _begin(self, epoch: int, position: int) -> None:
        """Have the samples of `epoch` read, from `position` on."""
        shard = self._order.shard_in(epoch)
        segments, numbers = self.epoch_plan(epoch, shard)
        self._last_begun = epoch
        left = np.frombuffer(numbers, np.int64)[position:]
        if len(left):
            ahead = _EpochReadAhead(self._reading, segments, self._starts, left)
            with self._lock:
                self._ahead.append(ahead)

    def _forget(self) -> None:
        with self._lock:
            ahead, self._ahead = self._ahead, []
            self._demand.clear()
        for each in ahead:
            each.reader.close()

    # -- loading: by many threads at once, in any order -----------------------------------------

    def source(self, entry: int) -> str:
        """The shard that a sample is in, and its number there."""
        shard = self._shard_of(entry)
        return f"{self._reading.folder.path(self._keys[shard])}#{entry - self._starts[shard]}"

    def take(self, entry: int) -> tuple[np.ndarray, ...]:
        """The fields of a sample, which the threads have read ahead, or read now."""
        with self._lock:
            # A sample may be wanted several times: as padding, and by the next epoch, which reads
            # it once more by itself.
            having = [ahead for ahead in self._ahead if ahead.pending[entry]]
            self._demand[entry] -= 1
            keep = self._demand[entry] >= max(len(having), 1)
            if self._demand[entry] <= 0:
                del self._demand[entry]
            if having and not keep:
                having[0].pending[entry] = 0
                having[0].count -= 1
                if not having[0].count:
                    self._ahead.remove(having[0])
        if not having:
            return self._load_alone(entry)
        try:
            values: tuple[np.ndarray, ...] = having[0].take(self._shard_of(entry), entry, keep=keep)
        except KeyError:
            return self._load_alone(entry)
        return values

    def _load_alone(self, entry: int) -> tuple[np.ndarray, ...]:
        """Load sample `entry`, which was not read ahead: it was loaded before, or never drawn."""
        shard = self._shard_of(entry)
        number = entry - self._starts[shard]
        key = self._keys[shard]
        names = frozenset(self._fields.names)
        with contextlib.closing(
            self._reading.folder.open(key, names, allow_pickle=self.args.allow_pickle)
        ) as samples:
            while samples.number < number and samples.skip():
                pass
            sample = samples.next()
            if sample is None:
                raise BadSampleError(
                    f"The shard {key!r} has {samples.number} samples, where it had more when they "
                    "were counted. Was it written anew?"
                )
        values: tuple[np.ndarray, ...] = self._fields(sample, key, number)[0]
        return values

    def _shard_of(self, entry: int) -> int:
        return bisect.bisect_right(self._starts, entry) - 1
