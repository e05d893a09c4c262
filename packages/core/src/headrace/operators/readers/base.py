"""Shared code of all readers: arguments, order of samples, and public interface."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar

import numpy as np

from headrace.errors import ArgumentValueError, MisusedArgumentError, NotYetSupportedError
from headrace.operators.readers.buckets import (
    BucketOrder,
    Buckets,
    bucket_identity,
    check_alone,
    lengths_of,
    padding,
)
from headrace.operators.readers.given_orders import SamplerArg, identity_of, orders_of
from headrace.operators.readers.index import Index, specs_of
from headrace.operators.readers.order import FIXED_SEED, ReadingOrder, check_order
from headrace.operators.readers.samplers import Shuffled
from headrace.operators.readers.side_columns import SIDE_DATA_ARG, check_side_data, side_columns
from headrace.operators.support.argument_types import BoolArg, FloatArg, IntArg, ObjectArg
from headrace.operators.support.contexts import ChunkContext
from headrace.operators.support.operator import Operator, SampleContext, operator
from headrace.operators.support.schema import Arg, Spec, as_specs
from headrace.tensors.rows import Rows
from headrace.tracebacks import stack_level

READER_ARGS = (
    Arg("shard_id", IntArg, 0, "Index of the shard to read in the first epoch."),
    Arg("num_shards", IntArg, 1, "Number of parts the data set is divided into."),
    Arg(
        "stick_to_shard",
        BoolArg,
        False,
        "Read the same shard in every epoch, in place of the next one each time.",
    ),
    Arg(
        "pad_last_batch",
        BoolArg,
        False,
        "Repeat the last sample of an epoch until its last batch is full and every shard has given "
        "the same number of batches. Otherwise the samples of the next epoch follow at once.",
    ),
    Arg(
        "random_shuffle",
        BoolArg,
        False,
        "Shuffle the samples of every epoch by a window of `initial_fill` samples, out of which "
        "the next one is drawn. The list is first permuted once, in a fixed way.",
    ),
    Arg(
        "initial_fill",
        IntArg,
        1024,
        "Size of the window of `random_shuffle`, in samples: how far a sample may move.",
    ),
    Arg(
        "sampler",
        SamplerArg,
        None,
        "Which samples come, and in which order, in each epoch of all shards together: an array of "
        "indices, the name of a file of them, an iterable such as a `Sampler` of PyTorch, a "
        "function that returns those of an epoch, or one of `headrace.samplers`. Excludes "
        "`random_shuffle` and `shuffle_after_epoch`.",
    ),
    Arg(
        "bucket_by",
        ObjectArg,
        None,
        "Makes batches of samples of about one length: an array with the length of each sample, or "
        'the name of one that the reader knows: of files `"bytes"` or, of images, `"pixels"`; of '
        'manifests `"duration"`; of tables any column, numbers or lists, text and bytes, which are '
        "counted. All shards have the same number of batches, each sample comes once an epoch, and "
        "batches may have fewer samples than the batch size.",
    ),
    Arg(
        "buckets",
        ObjectArg,
        None,
        "With `bucket_by`: the number of buckets, each with as many samples, or a list of lengths "
        "at which the next bucket begins. Chosen by the number of samples if not given.",
    ),
    Arg(
        "max_batch",
        FloatArg,
        None,
        "With `bucket_by`: how much a batch may have after padding, its number of samples times "
        "the longest of them, in units of the lengths: seconds, tokens, pixels, bytes.",
    ),
    SIDE_DATA_ARG,
    Arg(
        "prefetch_queue_depth",
        IntArg,
        1,
        "Number of batches read ahead by the reader, beyond what the pipeline works on ahead, "
        "where a GPU decodes them; elsewhere the pipeline's depth is all there is.",
        hint=True,
    ),
    Arg("read_ahead", BoolArg, False, "Read the whole file ahead of its use.", hint=True),
    Arg(
        "skip_cached_images",
        BoolArg,
        False,
        "Do not read samples that are in a decoder's cache; there is no such cache.",
        hint=True,
    ),
    Arg(
        "lazy_init",
        BoolArg,
        False,
        "List the data set, and open files, when the pipeline is first used, not when it is built.",
    ),
    Arg(
        "dont_use_mmap",
        BoolArg,
        False,
        "Allow empty files, which are otherwise errors. Files are never mapped to memory.",
    ),
    Arg(
        "tensor_init_bytes", IntArg, 1048576, "Memory to prepare for a sample, in bytes.", hint=True
    ),
)
"""Arguments of every reader."""

EPOCH_SHUFFLE_ARGS = (
    Arg(
        "shuffle_after_epoch",
        BoolArg,
        False,
        "Permute the whole data set before every epoch, in the same way for all shards. Excludes "
        "`stick_to_shard` and `random_shuffle`; readers with an index take the latter, and then "
        "shuffle by it alone.",
    ),
    Arg(
        "shuffle_after_epoch_seed",
        IntArg,
        None,
        "Seed of `shuffle_after_epoch`; must be the same for all shards. Without it the order of "
        "each epoch is fixed.",
    ),
)
"""Arguments of readers that can shuffle everything between epochs."""


_ORDER_ARGS = (
    "num_shards",
    "stick_to_shard",
    "pad_last_batch",
    "random_shuffle",
    "initial_fill",
    "shuffle_after_epoch",
    "shuffle_after_epoch_seed",
    "shuffle_seed",
)
"""Arguments of readers that say in which order samples come."""


def reader(
    name: str, *, args: Iterable[Arg] = (), epoch_shuffle: bool = True, **traits: Any
) -> Callable[[Any], type[Operator]]:
    """Declare a reader: a sub-class of `Reader`.

    Parameters
    ----------
    name
        Public name below ``fn``: ``"readers.<format>"``.
    args
        The arguments of its own. Those of every reader, for shards, shuffling and the last batch,
        are added.
    epoch_shuffle
        Whether it has the arguments of readers that can shuffle everything between epochs.
    **traits
        Any other field of `OpSchema`, as `num_outputs` and `output_docs`.
    """
    every = (*args, *READER_ARGS, *(EPOCH_SHUFFLE_ARGS if epoch_shuffle else ()))
    traits = {"devices": ("cpu",), **traits}
    return operator(name, args=every, reader=True, random=True, **traits)


class ReaderMeta(dict[str, int]):
    """Sizes and shards of a reader.

    Attributes
    ----------
    classes
        Labels by the names of classes, where these have names.
    """

    def __init__(self, numbers: Mapping[str, int], classes: Mapping[str, int]) -> None:
        super().__init__(numbers)
        self.classes = dict(classes)


class Reader(Operator):
    """A source of samples with epochs and shards: an index and a parser.

    A sub-class says which entries there are (`list_entries`): where the bytes of each lie, and
    columns that need no bytes. Entries are numbers. The engine draws them, one call at a time and
    in the order of iterations, and brings in the bytes of several at once. What `cpu` (and `plan`,
    as of any operator) then makes of the bytes of one entry are the first outputs; the columns of
    the index are the last ones. Without a `cpu`, bytes are an output as they are.

    Attributes
    ----------
    index
        The entries, from `open` on.
    checkpointing
        Set before `open` where the pipeline can save its state: an epoch's order must then follow
        from its number alone, which changes the order of `shuffle_after_epoch`.
    """

    checkpointing: bool = False
    permutes: ClassVar[bool] = True
    """True if `random_shuffle` begins with a list that is permuted once, as in DALI where the
    reader lists files; false where it reads an index.
    """
    chunks_light: bool = False
    """True if there is a `cpu_chunk`, the parser of several entries that have few bytes; see
    `SampleOperator.chunks_light`.
    """
    index: Index
    _order: ReadingOrder

    @classmethod
    def has_gpu(cls) -> bool:
        """True: what is read is uploaded where it is wanted on a GPU."""
        return True

    def list_entries(self) -> Index:
        """Find the entries, those of all shards together.

        Raises
        ------
        ArgumentValueError
            If an argument does not make sense or there are none.
        """
        raise NotYetSupportedError(f"`{self.schema.name}` does not list its entries.")

    def infer(self, *data: Spec) -> Spec | tuple[Spec, ...]:
        """Types of what `cpu` makes of the pieces of an entry, and of its details, if there are
        any.
        """
        return data

    def cpu(self, c: SampleContext, *data: np.ndarray) -> Any:
        """The parser: make outputs of the pieces of an entry, and of its details."""
        return data

    def cpu_chunk(self, c: ChunkContext, *data: Rows) -> Any:
        """The parser of several entries at once: return a `Rows` for each output, or `None` where
        `cpu` is to parse each.
        """
        return None

    def chunk_kind(self) -> Any:
        """Everything that `cpu_chunk` depends on besides the records, to be compared: in a mix,
        records of readers of one class that are of one kind are parsed together.
        """
        return id(self)

    @property
    def parses(self) -> bool:
        """True if there is a parser."""
        return type(self).cpu is not Reader.cpu

    def parser_inputs(self) -> tuple[Spec, ...]:
        """Types of what the parser is handed."""
        return (*self.index.specs, *specs_of(self.index.details))

    def output_specs(self) -> tuple[Spec, ...]:
        """Types of all outputs."""
        parsed = as_specs(self.infer(*self.parser_inputs()))
        cached = self.index.cached
        known = () if cached is None else cached.specs
        return (*parsed, *specs_of(self.index.columns), *known)

    def check(self) -> None:
        """Check the arguments that every reader has; no data is needed.

        Raises
        ------
        ArgumentValueError
            If one does not make sense.
        """
        args, all_anew = self.args, getattr(self.args, "shuffle_after_epoch", False)
        if args.prefetch_queue_depth < 1:
            raise ArgumentValueError(
                f"`prefetch_queue_depth` is {args.prefetch_queue_depth}, but must be at least 1."
            )
        if getattr(args, "shuffle_after_epoch_seed", None) is not None and not all_anew:
            warnings.warn(
                f"`shuffle_after_epoch_seed` has no effect on `{self.schema.name}` without "
                "`shuffle_after_epoch`.",
                UserWarning,
                stacklevel=stack_level(),
            )
        if all_anew and not self._shuffles_all:
            warnings.warn(
                f"`shuffle_after_epoch` has no effect on `{self.schema.name}` beside "
                "`random_shuffle`, as in DALI: without that one it shuffles all samples.",
                UserWarning,
                stacklevel=stack_level(),
            )
        if self._sampler is not None and (args.random_shuffle or all_anew):
            raise MisusedArgumentError(
                "`sampler` says in which order samples come, as do `random_shuffle` and "
                "`shuffle_after_epoch`: give one of them. `sampler=samplers.Shuffled()` shuffles."
            )
        check_side_data(getattr(args, "side_data", None) or ())
        if getattr(args, "bucket_by", None) is not None:
            check_alone(("sampler", "pad_last_batch", "stick_to_shard"), vars(args))
            if args.max_batch is not None and not args.max_batch > 0:
                raise ArgumentValueError(f"`max_batch` is {args.max_batch:g}, but must be above 0.")
        elif getattr(args, "buckets", None) is not None or getattr(args, "max_batch", None):
            raise ArgumentValueError(
                "`buckets` and `max_batch` are about batches of samples of about one length: give "
                "`bucket_by`, the lengths, as well."
            )
        check_order(
            shard_id=args.shard_id,
            num_shards=args.num_shards,
            stick_to_shard=args.stick_to_shard,
            random_shuffle=args.random_shuffle,
            initial_fill=args.initial_fill,
            shuffle_after_epoch=self._shuffles_all,
        )

    @property
    def _sampler(self) -> Any:
        return getattr(self.args, "sampler", None)

    @property
    def _shuffles_all(self) -> bool:
        """True if all samples are permuted for each epoch."""
        wanted = getattr(self.args, "shuffle_after_epoch", False)
        return wanted and (self.permutes or not self.args.random_shuffle)

    def open(self, batch_size: int, seed: int) -> None:
        """List the entries and put them into order.

        Raises
        ------
        ArgumentValueError
            If an argument does not make sense or no samples are found.
        """
        self.check()
        self.index = self.list_entries()
        side = getattr(self.args, "side_data", None)
        if side:
            columns = side_columns(self.index, side, self.schema.name)
            self.index.columns = (*self.index.columns, *columns)
        self._batch_size = batch_size
        self._order = self.make_order(len(self.index), seed)

    def make_order(self, size: int, seed: int) -> ReadingOrder:
        """The order in which `size` samples are read; readers with one of their own replace it."""
        args = self.args
        if getattr(args, "bucket_by", None) is not None:
            return self._bucket_order()  # type: ignore[return-value]
        given = self._sampler
        epochs = None if given is None else orders_of(given, self.index)
        listed = None
        if self.index.orders_groups:  # few groups of entries are to be needed at a time
            if self._shuffles_all:
                sampler = Shuffled(args.initial_fill, seed=args.shuffle_after_epoch_seed or 0)
                epochs = sampler.orders(self.index)
            elif args.random_shuffle:
                listed = np.asarray(Shuffled(1, seed=FIXED_SEED).orders(self.index).at(0)[0:size])
        return ReadingOrder(
            size,
            epochs=epochs,
            listed=listed,
            shard_id=args.shard_id,
            num_shards=args.num_shards,
            stick_to_shard=args.stick_to_shard,
            pad_last_batch=args.pad_last_batch,
            random_shuffle=args.random_shuffle,
            initial_fill=args.initial_fill,
            seed=seed,
            shuffle_after_epoch=self._shuffles_all,
            shuffle_after_epoch_seed=getattr(args, "shuffle_after_epoch_seed", None),
            cumulative=not self.checkpointing,
            permuted=self.permutes,
        )

    def _bucket_order(self) -> BucketOrder:
        """The order of batches of samples of about one length."""
        args = self.args
        lengths = lengths_of(args.bucket_by, self.index)
        buckets = Buckets(lengths, self._batch_size, args.buckets, args.max_batch)
        shuffles = args.random_shuffle or getattr(args, "shuffle_after_epoch", False)
        seed = getattr(args, "shuffle_after_epoch_seed", None)
        seed = (FIXED_SEED if seed is None else seed) if shuffles else None
        return BucketOrder(buckets, args.shard_id, args.num_shards, seed)

    @property
    def plans_batches(self) -> bool:
        """True if it says how many samples a batch has: `draw` may return fewer."""
        return isinstance(getattr(self, "_order", None), BucketOrder)

    def draw(self, count: int, *, refill: bool = False) -> list[int]:
        """Entries of the next `count` samples.

        Parameters
        ----------
        count
            How many.
        refill
            They replace bad samples of a batch that was drawn before.
        """
        drawn = self._order.draw(count, refill=refill)
        if self.index.cached is None:  # else hardly any may be read
            ahead = self.index.looks_ahead
            coming = self._order.coming(ahead).tolist() if ahead else []
            self.index.expect(drawn + coming)
        return drawn

    def coming(self, count: int) -> np.ndarray | None:
        """Up to `count` entries of this epoch that `draw` returns next, int64; `None` where it does
        more than to tell them.
        """
        order = self._order
        if not (self._only_counts and isinstance(order, ReadingOrder)):
            return None
        return None if order.pad_last_batch else order.coming(count)

    @property
    def _only_counts(self) -> bool:
        """True if drawing does no more than to move on in a `ReadingOrder`."""
        index = self.index
        told = index.local is not None or type(index).expect is Index.expect
        is_plain = type(self).draw is Reader.draw and isinstance(self._order, ReadingOrder)
        return told and is_plain

    @property
    def draws_again(self) -> bool:
        """True if what was drawn last may be drawn once more, after `go_back`."""
        return self._only_counts and self._sampler is None

    def go_back(self, state: Mapping[str, Any]) -> None:
        """Go to where `state` was taken, before the last draw, which may have been interrupted."""
        self._order.drop()
        self._order.restore(state)

    def pass_over(self, count: int) -> None:
        """Count as many entries as drawn, which `coming` has told."""
        self._order.pass_over(count)

    def before(self, entry: int) -> int:
        """The entry to try in place of one that turned out to be bad."""
        return self._order.before(entry)

    def meta(self) -> dict[str, int]:
        """Sizes and shards, under the names that `Pipeline.reader_meta` gives them."""
        order = self._order
        padded = -(-order.size // order.num_shards) * order.num_shards
        planned: dict[str, Any] = {}
        if isinstance(order, BucketOrder):
            planned = {
                "batches": order.steps,
                "batches_of_epoch": order.steps_of_epoch(),
                "padding": padding(order.lengths.sum(), order.padded),
            }
        found = {
            **planned,
            "epoch_size": order.size,
            "epoch_size_padded": padded if order.pad_last_batch else order.size,
            "number_of_shards": order.num_shards,
            "shard_id": order.shard_id,
            "pad_last_batch": int(order.pad_last_batch),
            "stick_to_shard": int(order.stick_to_shard),
        }
        return ReaderMeta(found, self.index.classes)

    def identity(self) -> dict[str, Any]:
        """Settings that must be the same for `restore` to go on exactly, in types that JSON
        keeps.
        """
        args = self.args
        found: dict[str, Any] = {"number of samples": self.meta()["epoch_size"]}
        if self.plans_batches:
            found["bucket_by"] = bucket_identity(self._order.lengths)  # type: ignore[attr-defined]
            found["buckets"] = _listed(args.buckets)
            found["max_batch"], found["batch size"] = args.max_batch, self._batch_size
        for name in _ORDER_ARGS:
            if hasattr(args, name):
                found[name] = getattr(args, name)
        if not found.get("random_shuffle"):
            found.pop("initial_fill", None)
        if self._sampler is not None:
            found["sampler"] = identity_of(self._sampler)
        return found

    def state(self) -> Mapping[str, Any]:
        """Everything that `restore` needs to go on from here; it may be worked out where somebody
        looks at it.
        """
        return self._order.state()

    def state_after(self, state: Mapping[str, Any], count: int) -> dict[str, Any]:
        """The state after `state` and so many entries, which `coming` has told."""
        return self._order.state_after(state, count)

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go to the position `state` was taken at."""
        self._order.restore(state)

    def follow(self, state: Mapping[str, Any]) -> None:
        """Go to where the reader of this shard is when that of another one is at `state`."""
        self._order.follow(state)

    def why_fixed(self) -> str:
        """Reason why another number of shards cannot go on with an epoch, or "" if it can."""
        return self._order.why_fixed()

    def deal(self, origin: Mapping[str, Any]) -> None:
        """Go on with a part of what readers of another number of shards have left.

        Parameters
        ----------
        origin
            ``shards``, how many there were; ``shard``, one of them; and its ``state``.
        """
        self._order.deal(origin)

    def rest_size(self) -> int | None:
        """Samples of all shards in this epoch, where it is what others have left; else `None`."""
        return self._order.rest_size()

    @property
    def epoch(self) -> int:
        """Number of the epoch that is being read."""
        return self._order.epoch

    def next_epoch(self, at_least: int = 0) -> int:
        """Go to the beginning of the next epoch, unless at one; return the shard it reads.

        An epoch before number `at_least` is left out.
        """
        return self._order.next_epoch(at_least)


def _listed(buckets: Any) -> Any:
    """`buckets` in types that JSON keeps."""
    return buckets if buckets is None or isinstance(buckets, int) else np.asarray(buckets).tolist()
