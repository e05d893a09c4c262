"""`readers.pack`: sequences of another reader, packed into rows of one length."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.errors import (
    ArgumentValueError,
    MisusedArgumentError,
    ShapeError,
)
from headrace.operators.readers.base import EPOCH_SHUFFLE_ARGS, READER_ARGS, Reader
from headrace.operators.readers.buckets import bucket_identity, lengths_of, padding
from headrace.operators.readers.given_readers import GivenReader, given_reader, made
from headrace.operators.readers.index import FileIndex, Index
from headrace.operators.readers.packed_index import PackedIndex, packed
from headrace.operators.readers.parsed_index import ParsedIndex
from headrace.operators.support.argument_types import (
    ArgType,
    FloatListArg,
    IntArg,
    ObjectArg,
    StringArg,
)
from headrace.operators.support.operator import operator
from headrace.operators.support.schema import REQUIRED, Arg
from headrace.types import storage_dtype

_ORDER = (
    *("num_shards", "shard_id", "stick_to_shard", "pad_last_batch", "random_shuffle", "sampler"),
    *("shuffle_after_epoch", "bucket_by"),
)
"""Arguments of readers that are given to this one, and not to the reader of the sequences."""


@operator(
    "readers.pack",
    args=(
        Arg(
            "reader",
            ArgType(
                "outputs of a reader", "Any", lambda given: given_reader(given, "it"), edges=True
            ),
            REQUIRED,
            "The sequences: outputs of one reader, such as a column of lists, or several of equal "
            "lengths. Shards and shuffling are arguments of `pack`, of rows.",
        ),
        Arg("length", IntArg, REQUIRED, "Elements of a row."),
        Arg(
            "lengths",
            ObjectArg,
            None,
            "Length of each sequence, as of `bucket_by`: an array or a name. By default that of "
            "the first output.",
        ),
        Arg(
            "too_long",
            StringArg,
            "error",
            'Sequences above `length` are ``"error"``; or ``"split"``: several sequences; or '
            '``"cut"``: their end is left out.',
            choices=("error", "split", "cut"),
        ),
        Arg(
            "fill_value",
            FloatListArg,
            (0.0,),
            "What follows after the last sequence of a row: a number, or one for each output.",
        ),
        *(
            a
            for a in READER_ARGS
            if a.name not in ("bucket_by", "buckets", "max_batch", "side_data")
        ),
        *EPOCH_SHUFFLE_ARGS,
    ),
    num_outputs=lambda args: len(args["reader"]["outputs"]) + 2 if args["reader"] else 3,
    output_docs=(
        "Rows ``(length, ...)`` of each output.",
        "Of each element the number of its sequence in the row, from 1 on, int32; 0 is padding.",
        "Its place in the sequence, from 0 on, int32.",
    ),
    positional=("reader", "length"),
    reader=True,
    random=True,
    devices=("cpu", "gpu"),
    given_readers=lambda args: [args["reader"]],
)
class PackReader(Reader):
    """Packs sequences, such as the tokens of documents, into rows of one length.

    A sample is a row, and hardly any of it padding. The rows follow from the lengths alone, best
    fit among 8192 neighbours of the data set, so that each sequence comes once an epoch; shuffling,
    sharding and checkpoints are those of any reader, of rows. ``padding`` in `reader_meta` is the
    share of elements that are none. Where the reader is given ``device="gpu"``, rows are there.

    Examples
    --------
    >>> tokens = fn.readers.parquet(paths="train-*.parquet", columns=["input_ids"])
    >>> tokens, segments, positions = fn.readers.pack(tokens, length=2048, random_shuffle=True)
    """

    permutes = False

    def check(self) -> None:
        super().check()
        if self.args.length < 1:
            raise ArgumentValueError(f"`length` is {self.args.length}; give 1 or more.")

    def list_entries(self) -> Index:
        args, given = self.args, self.args.reader
        with made(given) as reader:
            index = self._sequences(reader, given)
        outputs, lengths = given["outputs"], args.lengths
        if lengths is None and isinstance(index, ParsedIndex):
            lengths = index.measured()
        elif lengths is None:
            columns = given["arguments"].get("columns")
            if isinstance(index, FileIndex) and len(index.specs) > 1:
                lengths = index.bytes_of(outputs[0])
            else:
                lengths = "bytes" if columns is None else columns[outputs[0]]
        if isinstance(index, ParsedIndex):
            outputs = list(range(len(outputs)))
        self._lengths = lengths_of(lengths, index, "lengths")
        whole = self._lengths.astype(np.int64)
        if (whole != self._lengths).any():
            raise ArgumentValueError("`lengths` are numbers of elements, and some are not whole.")
        longest = int(whole.max(initial=0))
        if args.too_long == "error" and longest > args.length:
            raise ArgumentValueError(
                f"The sequence from {index.source(int(whole.argmax()))!r} has {longest} elements, "
                f'and `length` is {args.length}. `too_long="split"` makes several of it, and '
                '`"cut"` leaves its end out.'
            )
        if not longest:
            raise ArgumentValueError("All sequences are empty.")
        rows = packed(whole, args.length, split=args.too_long == "split")
        self._taken = int(rows.sizes.sum())
        return PackedIndex(index, outputs, rows, args.length, self._fills(index, outputs))

    def _fills(self, index: Index, outputs: list[int]) -> list[Any]:
        """Elements of each output that rows are filled up with, in its type."""
        given = list(self.args.fill_value)
        if len(given) not in (1, len(outputs)):
            raise ArgumentValueError(
                f"`fill_value` is {given}: give one number, or one for each of {len(outputs)}."
            )
        found: list[Any] = []
        for output, value in zip(outputs, given * (len(outputs) // len(given)), strict=True):
            dtype = storage_dtype(index.specs[output].dtype)
            with np.errstate(invalid="ignore"):
                found.append(np.float64(value).astype(dtype))
            if dtype.kind in "iu" and found[-1] != value:
                raise ArgumentValueError(f"`fill_value` is {value:g}, and elements are {dtype}.")
        return found

    def _sequences(self, reader: Reader, given: GivenReader) -> Index:
        arguments, outputs = given["arguments"], given["outputs"]
        about_rows = [n for n in _ORDER if arguments.get(n) not in (None, False, 0)]
        about_rows = [n for n in about_rows if (n, arguments[n]) != ("num_shards", 1)]
        if about_rows:
            raise MisusedArgumentError(
                f"`{about_rows[0]}` is about rows: give it to `fn.readers.pack`, not to the reader "
                "of the sequences."
            )
        reader.checkpointing = self.checkpointing
        reader.open(self._batch_size, 0)
        index = reader.index
        if type(reader).draw is not Reader.draw:
            raise MisusedArgumentError(
                f"`fn.{reader.schema.name}` has an order of its own, and rows are packed of a data "
                "set. Pack each of its readers, and mix the rows."
            )
        if getattr(reader.args, "clip_starts", None) == "random":
            raise MisusedArgumentError(
                '`clip_starts="random"` draws other frames each time, and a row is always the '
                'same. Take "even".'
            )
        places = outputs
        if reader.parses or max(outputs) >= len(index.specs):
            index, places = ParsedIndex(reader, outputs), list(range(len(outputs)))
        for k, number in zip(places, outputs, strict=True):
            if index.specs[k].ndim == 0:
                raise ShapeError(f"Output {number} is one number for each sample, and no sequence.")
        return index

    def open(self, batch_size: int, seed: int) -> None:
        self._batch_size = batch_size
        super().open(batch_size, seed)

    def meta(self) -> dict[str, int]:
        found: Any = super().meta()
        found["padding"] = padding(self._taken, len(self.index) * self.args.length)
        return found  # type: ignore[no-any-return]

    def identity(self) -> dict[str, Any]:
        args = self.args
        lengths = bucket_identity(self._lengths)
        more = {"lengths": lengths, "length": args.length, "too_long": args.too_long}
        return {**super().identity(), **more, "reader": args.reader["operator"]}
