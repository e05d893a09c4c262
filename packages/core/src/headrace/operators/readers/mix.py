"""`readers.mix`: samples of several readers, drawn by weight."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from headrace.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    DataTypeError,
    MisusedArgumentError,
)
from headrace.kernels.cpu import sample_orders
from headrace.operators.readers.base import READER_ARGS, Reader
from headrace.operators.readers.buckets import padding
from headrace.operators.readers.given_readers import GivenReader, given_reader, made
from headrace.operators.readers.mixed_index import MixedIndex
from headrace.operators.readers.mixed_turns import (
    AHEAD,
    EntriesAhead,
    LaterState,
    Turns,
    apportioned,
)
from headrace.operators.readers.parsed_index import parse
from headrace.operators.support.argument_types import ArgType, IntArg, StringArg
from headrace.operators.support.contexts import ChunkContext, SampleContext
from headrace.operators.support.operator import operator
from headrace.operators.support.schema import REQUIRED, Arg, Spec
from headrace.tensors.rows import Rows
from headrace.types import DALIDataType, storage_dtype

_SMALL = 1e-9
_ENDLESS = 1 << 62
"""Samples in an epoch that never ends."""


def _readers(given: Any) -> tuple[GivenReader, ...]:
    """Readers by their outputs, or by their objects in dynamic mode."""
    if not isinstance(given, (list, tuple)) or not given:
        raise ArgumentTypeError(
            f"expected a list of readers, as [fn.readers.file(...), ...], got {given!r}"
        )
    found = [given_reader(each, f"element {number}") for number, each in enumerate(given)]
    counts = {len(each["outputs"]) for each in found}
    if len(counts) > 1:
        raise ArgumentValueError(
            f"the readers have different numbers of outputs, {sorted(counts)}; name those that "
            "are alike: [(jpegs, labels), (others, other_labels)]"
        )
    return tuple(found)


def _weights(given: Any) -> Any:
    if callable(given):
        return given
    found = np.asarray(given)
    if found.ndim != 1 or found.dtype.kind not in "iuf":
        raise ArgumentTypeError(
            f"expected a number for each reader, or a function of the epoch, got {given!r}"
        )
    if not (np.isfinite(found).all() and (found >= 0).all() and found.sum() > 0):
        raise ArgumentValueError(
            f"weights are finite numbers, none below 0 and one at least above, got {given!r}"
        )
    return tuple(found.astype(float).tolist())


@operator(
    "readers.mix",
    args=(
        Arg(
            "readers",
            ArgType("list of readers", "Sequence[Any]", _readers),
            REQUIRED,
            "The outputs of each reader, of one kind: ``[fn.readers.file(...), ...]``. Each keeps "
            "its own epochs, shards and shuffling.",
        ),
        Arg(
            "weights",
            ArgType("list of float or function", "Sequence[float] | Any", _weights),
            None,
            "How often each is drawn, in proportion; or a function of the number of the epoch that "
            "returns it. Equally often when not given.",
        ),
        Arg(
            "stop",
            StringArg,
            "first",
            'End of an epoch: ``"first"``, when the first reader is through its shard; ``"all"``, '
            'when each has been, and those before begin anew; ``"never"``.',
            choices=("first", "all", "never"),
        ),
        Arg(
            "mix_seed",
            IntArg,
            0,
            "Seed of the order in which readers take turns; must be the same for all shards.",
        ),
        *(arg for arg in READER_ARGS if arg.name in ("lazy_init", "prefetch_queue_depth")),
    ),
    num_outputs=lambda args: len(args["readers"][0]["outputs"]) + 1 if args["readers"] else 2,
    output_docs=("Those of the reader that the sample comes from.", "Its number, int32, scalar."),
    positional=("readers", "weights"),
    reader=True,
    random=True,
    devices=("cpu", "gpu"),
    describes_video=True,
    given_readers=lambda args: args["readers"],
)
class MixReader(Reader):
    """Mixes several readers: each sample comes from one of them, drawn by weight.

    In an epoch every reader is drawn in exact proportion to its weight, in an order that follows
    from `mix_seed` and the epoch. With ``stop="first"`` the epoch is as long as the reader that
    would first be through its shard lasts, and with ``"all"`` as the one that would be last;
    where `weights` are a function, those of epoch 0 say how long. Readers go on in the next epoch
    where they were. Where the readers are given ``device="gpu"``, samples are there.

    Examples
    --------
    >>> encoded, labels, reader = fn.readers.mix(
    ...     [fn.readers.file(file_root="photos"), fn.readers.file(file_root="drawings")],
    ...     weights=[0.8, 0.2],
    ...     name="mix",
    ... )
    """

    index: MixedIndex
    _plans_batches = False

    def check(self) -> None:
        args = self.args
        given = args.weights
        if given is not None and not callable(given) and len(given) != len(args.readers):
            raise ArgumentValueError(
                f"`weights` has {len(given)} numbers for {len(args.readers)} readers."
            )

    def open(self, batch_size: int, seed: int) -> None:
        self.check()
        self._readers: list[Reader] = []
        for number, given in enumerate(self.args.readers):
            with made(given) as reader:
                reader.checkpointing = self.checkpointing
                own = given["arguments"].get("seed")
                own = int(sample_orders.key_of(seed, number)) >> 1 if own is None else own
                reader.open(batch_size, own)
                if self._readers and reader.plans_batches != self._plans_batches:
                    raise MisusedArgumentError(
                        "`bucket_by` is given to some readers of a mix and not to others: give it "
                        "to all, which are then mixed batch by batch, or to none."
                    )
            self._readers.append(reader)
            self._plans_batches = reader.plans_batches
        metas = [reader.meta() for reader in self._readers]
        for name, key in (("num_shards", "number_of_shards"), ("shard_id", "shard_id")):
            found = [meta[key] for meta in metas]
            if len(set(found)) > 1:
                raise MisusedArgumentError(
                    f"The readers of a mix read the same part: `{name}` is {found}."
                )
        if any(meta["pad_last_batch"] for meta in metas):
            raise MisusedArgumentError(
                "`pad_last_batch` has no meaning for a reader in a mix, where batches hold samples "
                "of several. Leave it out."
            )
        self._shards, self._shard = metas[0]["number_of_shards"], metas[0]["shard_id"]
        self.index = MixedIndex([reader.index for reader in self._readers], self._outputs())
        self.chunks_light = all(r.chunks_light for r in self._readers if r.parses)
        self._sizes = [meta.get("batches", meta["epoch_size"] / self._shards) for meta in metas]
        self._epoch = self._position = 0
        self._drawn = [0] * len(metas)
        self._rest: dict[str, Any] | None = None
        self._known_turns: tuple[int, Any, Turns] | None = None
        self._ahead: EntriesAhead | None = None
        """Entries that are drawn next; the readers have not drawn them. See `_settle`."""
        self._length = 0
        self._length = len(self._turns(0))

    def _outputs(self) -> list[list[int]] | None:
        """Of each reader the pieces and columns that are outputs, if these need no parser."""
        outputs = [part["outputs"] for part in self.args.readers]
        kinds = [
            [k >= len(reader.index.specs) for k in own]
            for own, reader in zip(outputs, self._readers, strict=True)
        ]
        alike = all(each == kinds[0] == sorted(each) for each in kinds)
        return outputs if alike and not any(reader.parses for reader in self._readers) else None

    @property
    def parses(self) -> bool:
        return self.index.is_parsed

    # -- types and parsers -------------------------------------------------------------------------

    def output_specs(self) -> tuple[Spec, ...]:
        cached = self.index.cached
        number = Spec(DALIDataType.INT32, 0)
        return (*self.infer(), number, *(() if cached is None else cached.specs))

    def infer(self, *data: Spec) -> tuple[Spec, ...]:
        found: list[Spec] = []
        self._dtypes: list[Any] = []
        for number, (part, reader) in enumerate(zip(self.args.readers, self._readers, strict=True)):
            every = reader.output_specs()
            own = [every[k] for k in part["outputs"]]
            for k, (mine, first) in enumerate(zip(own, found or own, strict=True)):
                if mine[:2] != first[:2]:
                    raise DataTypeError(
                        f"Readers of a mix have outputs of one kind: output {k} of reader "
                        f"{number}, `fn.{reader.schema.name}`, is {_shown(mine)}, and that of "
                        f"reader 0 is {_shown(first)}."
                    )
                if mine.layout != first.layout:
                    own[k] = mine._replace(layout="")
            found = own
            self._dtypes.append([storage_dtype(spec.dtype) for spec in every])
        self._kinds = self._alike()
        return tuple(found)

    def _alike(self) -> np.ndarray:
        """For each reader the first one whose records are parsed in the same way."""
        known: list[Any] = []
        for part, reader in zip(self.args.readers, self._readers, strict=True):
            columns = len(reader.index.columns), len(reader.index.details)
            known.append((type(reader), reader.chunk_kind(), part["outputs"], columns))
        return np.array([known.index(each) for each in known])

    def _split(self, number: int, data: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """The data that a reader's parser is handed, and its columns."""
        index, mixed = self._readers[number].index, self.index
        details, columns = len(mixed.specs) + 1, mixed.first_column
        handed = [*data[: len(index.specs)], *data[details : details + len(index.details)]]
        return handed, list(data[columns : columns + len(index.columns)])

    def cpu(self, c: SampleContext, *data: Any) -> tuple[Any, ...]:
        number = int(data[len(self.index.specs)])
        reader = self._readers[number]
        parsed, columns = self._split(number, data)
        if reader.parses:
            parsed = parse(reader, c, self._dtypes[number], parsed)
        every = [*parsed, *columns]
        return tuple([every[k] for k in self.args.readers[number]["outputs"]])

    def cpu_chunk(self, c: ChunkContext, *data: Rows) -> tuple[Rows, ...] | None:
        """Parse the records of readers that are alike at once; `None` where one cannot."""
        told = data[len(self.index.specs)]
        numbers = np.array(told.rows if told.dense is None else told.dense)
        kinds = self._kinds[numbers]
        places, made = [], []
        for number in np.unique(kinds).tolist():
            own, reader = np.flatnonzero(kinds == number), self._readers[number]
            is_all = len(own) == len(numbers)
            some = data if is_all else [rows.taken(own) for rows in data]
            parsed, columns = self._split(number, some)
            if reader.parses:
                part = c.part(own.tolist(), reader.args, len(self._dtypes[number]))
                found = reader.cpu_chunk(part, *parsed)
                if found is None:
                    return None
                parsed = list(found) if isinstance(found, (tuple, list)) else [found]
            every = [*parsed, *columns]
            made.append([every[k] for k in self.args.readers[number]["outputs"]])
            places.append(own)
        if len(made) == 1:
            return tuple(made[0])
        back = np.argsort(np.concatenate(places), kind="stable")
        return tuple([Rows.joined(rows).taken(back) for rows in zip(*made, strict=True)])

    # -- order -------------------------------------------------------------------------------------

    def _weights_of(self, epoch: int) -> np.ndarray:
        given = self.args.weights
        if callable(given):
            try:
                given = _weights(given(epoch))
            except (TypeError, ValueError) as error:
                raise ArgumentValueError(f"`weights` for epoch {epoch}: {error}.") from error
            if len(given) != len(self._readers):
                raise ArgumentValueError(
                    f"`weights` has {len(given)} numbers for epoch {epoch}, and there are "
                    f"{len(self._readers)} readers."
                )
        weights = np.ones(len(self._readers)) if given is None else np.array(given)
        found: np.ndarray = weights / weights.sum()
        return found

    def _turns(self, epoch: int) -> Turns:
        """The turns of an epoch of this shard."""
        known = self._known_turns
        if known is None or known[0] != epoch or known[1] is not self._rest:
            turns = Turns(self._counted(epoch), self.args.mix_seed, epoch)
            known = self._known_turns = epoch, self._rest, turns
        return known[2]

    def _counted(self, epoch: int) -> np.ndarray:
        """Number of samples of each reader in an epoch."""
        rest = self._rest
        if rest is not None and rest["epoch"] == epoch:
            return self._shares(rest["totals"])
        weights = self._weights_of(epoch)
        if self._length and callable(self.args.weights):
            return apportioned(self._length, weights)
        # An epoch ends with the first reader, or the last.
        limit = self._limiting(weights)
        counts: np.ndarray
        if self.args.stop == "first":
            counts = np.floor(math.floor(self._sizes[limit]) * weights / weights[limit] + _SMALL)
        else:
            counts = np.ceil(math.ceil(self._sizes[limit]) * weights / weights[limit] - _SMALL)
        return counts.astype(np.int64)

    def _limiting(self, weights: np.ndarray) -> int:
        drawn = np.flatnonzero(weights)
        lasts = np.array(self._sizes)[drawn] / weights[drawn]
        return int(drawn[lasts.argmin() if self.args.stop == "first" else lasts.argmax()])

    def _shares(self, totals: Sequence[int]) -> np.ndarray:
        """Part of this shard in so many samples of each reader, of the limiting one exactly."""
        limit = self._limiting(self._weights_of(0))
        order = [limit, *[k for k in range(len(totals)) if k != limit]]
        sums = np.cumsum([0, *[totals[k] for k in order]])
        upto = [s * sums // self._shards for s in (self._shard, self._shard + 1)]
        found = np.zeros(len(totals), np.int64)
        found[order] = np.diff(upto[1] - upto[0])
        return found

    @property
    def plans_batches(self) -> bool:
        return self._plans_batches

    def _draw_batch(self, count: int, refill: bool) -> list[int]:
        """The next batch of one of the readers, which counts as one turn; or more of the last."""
        if refill:
            self._position -= 1
        elif self._position == len(self._turns(self._epoch)):
            self._go_to(self._epoch + 1)
        number = int(self._turns(self._epoch).at(self._position, 1)[0])
        self._position += 1
        self._drawn[number] += not refill
        drawn = self._readers[number].draw(count, refill=refill)
        return [self.index.entry(number, entry) for entry in drawn]

    def _look_ahead(self) -> EntriesAhead | None:
        """Work out what is drawn next, until an epoch ends; `None` where a reader does more than to
        tell its entries.
        """
        turns = self._turns(self._epoch).at(self._position, AHEAD)
        entries, end = np.empty(len(turns), np.int64), len(turns)
        for number, reader in enumerate(self._readers):
            places = np.flatnonzero(turns == number)
            coming = reader.coming(len(places))
            if coming is None:
                return None
            entries[places[: len(coming)]] = coming + self.index.entry(number, 0)
            if len(coming) < len(places):
                end = min(end, int(places[len(coming)]))
        return EntriesAhead(entries[:end], turns[:end], self._state_now())

    def _settle(self) -> None:
        """Have the readers count what was taken of the entries ahead, which are dropped."""
        ahead, self._ahead = self._ahead, None
        if ahead is None:
            return
        for number, count in enumerate(ahead.shares(ahead.taken)):
            self._readers[number].pass_over(count)
            self._drawn[number] += count
        self._position += ahead.taken

    def coming(self, count: int) -> np.ndarray | None:
        return None

    def draw(self, count: int, *, refill: bool = False) -> list[int]:
        if self.plans_batches:
            return self._draw_batch(count, refill)
        found = None
        if not refill:
            found = None if self._ahead is None else self._ahead.take(count)
            if found is None:
                self._settle()
                self._ahead = self._look_ahead()
                found = None if self._ahead is None else self._ahead.take(count)
        if found is None:
            self._settle()
            found = self._draw_by_turns(count, refill)
        return found

    def _draw_by_turns(self, count: int, refill: bool) -> list[int]:
        found: list[int] = []
        while len(found) < count:
            turns = self._turns(self._epoch).at(self._position, count - len(found))
            if not len(turns):
                self._go_to(self._epoch + 1)
                continue
            entries = np.empty(len(turns), np.int64)
            for number, reader in enumerate(self._readers):
                places = np.flatnonzero(turns == number)
                if len(places):
                    drawn = np.array(reader.draw(len(places), refill=refill), np.int64)
                    entries[places] = drawn + self.index.entry(number, 0)
                    self._drawn[number] += len(places)
            self._position += len(turns)
            found += entries.tolist()
        return found

    def _go_to(self, epoch: int) -> None:
        self._epoch, self._position, self._ahead = epoch, 0, None
        self._drawn = [0] * len(self._readers)
        if self._rest is not None and self._rest["epoch"] < epoch:
            self._rest = None

    def before(self, entry: int) -> int:
        number, own = self.index.part_of(entry)
        return self.index.entry(number, self._readers[number].before(own))

    def meta(self) -> dict[str, int]:
        length = _ENDLESS if self.args.stop == "never" else self._length
        size = length * self._shards
        planned: dict[str, Any] = {}
        if self.plans_batches:
            size = len(self.index)
            orders: list[Any] = [reader._order for reader in self._readers]
            counts = self._turns(self._epoch).counts
            shares = counts / [order.steps for order in orders]
            totals = [
                sum(s * each for s, each in zip(shares, column, strict=True))
                for column in ([o.lengths.sum() for o in orders], [o.padded for o in orders])
            ]
            planned = {
                "batches": length,
                "batches_of_epoch": int(counts.sum()),
                "padding": padding(*totals),
            }
        return {
            **planned,
            "epoch_size": size,
            "epoch_size_padded": size,
            "number_of_shards": self._shards,
            "shard_id": self._shard,
            "pad_last_batch": 0,
            "stick_to_shard": 1,
        }

    # -- checkpoints -------------------------------------------------------------------------------

    def identity(self) -> dict[str, Any]:
        """Everything but the weights, which may change."""
        found: dict[str, Any] = {"num_shards": self._shards, "mix_seed": self.args.mix_seed}
        for number, reader in enumerate(self._readers):
            own = {k: v for k, v in reader.identity().items() if k != "num_shards"}
            found[f"reader {number}"] = {"operator": reader.schema.name, **own}
        return found

    def state(self) -> Mapping[str, Any]:
        ahead = self._ahead
        if ahead is None:
            return self._state_now()
        return LaterState(partial(self._state_after, ahead, ahead.taken))

    def _state_after(self, ahead: EntriesAhead, count: int) -> dict[str, Any]:
        """The state where so many of the entries ahead were taken."""
        state, shares = ahead.state, ahead.shares(count)
        readers = zip(self._readers, state["readers"], shares, strict=True)
        return {
            **state,
            "position": state["position"] + count,
            "drawn": [drawn + share for drawn, share in zip(state["drawn"], shares, strict=True)],
            "readers": [reader.state_after(own, share) for reader, own, share in readers],
        }

    def _state_now(self) -> dict[str, Any]:
        return {
            "epoch": self._epoch,
            "position": self._position,
            "drawn": list(self._drawn),
            "counts": self._turns(self._epoch).counts.tolist(),
            "rest": self._rest,
            "readers": [_told(reader.state()) for reader in self._readers],
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        self._at(state)
        for reader, own in zip(self._readers, state["readers"], strict=True):
            reader.restore(own)

    def follow(self, state: Mapping[str, Any]) -> None:
        self._at(state)
        for reader, own in zip(self._readers, state["readers"], strict=True):
            reader.follow(own)

    def _at(self, state: Mapping[str, Any]) -> None:
        self._rest, self._ahead = state["rest"], None
        self._epoch, self._position = state["epoch"], state["position"]
        self._drawn = list(state["drawn"])
        if self._position > len(self._turns(self._epoch)):  # of other weights
            self._go_to(self._epoch + 1)

    def why_fixed(self) -> str:
        if self.plans_batches:
            return "its readers are mixed batch by batch, by `bucket_by`"
        return next(filter(None, [reader.why_fixed() for reader in self._readers]), "")

    def deal(self, origin: Mapping[str, Any]) -> None:
        state = origin["state"]
        for reader, own in zip(self._readers, state["readers"], strict=True):
            reader.deal({**origin, "state": own})
        left = np.array(state["counts"]) - state["drawn"]
        totals = left * origin["shards"]
        if state["rest"] is not None and state["rest"]["epoch"] == state["epoch"]:
            totals = np.array(state["rest"]["totals"]) - np.array(state["drawn"]) * origin["shards"]
        totals = np.maximum(totals, 0)
        self._go_to(state["epoch"])
        self._rest = {"epoch": state["epoch"], "totals": totals.tolist()}
        if not state["position"]:
            self._rest = None
        elif not totals.sum():
            self._go_to(state["epoch"] + 1)

    def rest_size(self) -> int | None:
        rest = self._rest
        at_rest = rest is not None and rest["epoch"] == self._epoch
        return sum(rest["totals"]) if rest is not None and at_rest else None

    @property
    def epoch(self) -> int:
        return self._epoch

    def next_epoch(self, at_least: int = 0) -> int:
        self._settle()
        self._go_to(max(self._epoch + (self._position > 0), at_least))
        return self._shard


def _told(state: Any) -> Any:
    """The state of a reader, worked out if it is that of a mix."""
    return dict(state) if isinstance(state, LaterState) else state


def _shown(spec: Spec) -> str:
    return f"{spec.dtype.name} of {spec.ndim} dimensions"
