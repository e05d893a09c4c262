"""`fn.readers.ray`: rows of a Ray `Dataset`, with shards, shuffling and checkpoints."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import ray

from headrace.errors import ArgumentTypeError, ArgumentValueError, BadSampleError
from headrace.operators.readers.arrow_arrays import ArrowColumn
from headrace.operators.readers.base import Reader, reader
from headrace.operators.readers.grouped import GroupedIndex, Values
from headrace.operators.readers.index import Index
from headrace.operators.support.argument_types import ObjectArg
from headrace.operators.support.schema import REQUIRED, Arg
from headrace.plugin.ray.columns import TensorValues, checked_columns, is_ray_tensor, spec_of
from headrace.plugin.ray.ending import CALLS


class BlockIndex(GroupedIndex):
    """Rows of blocks in Ray's object store."""

    def __init__(self, blocks: list[Any], sizes: list[int], columns: list[str]) -> None:
        self._blocks = blocks
        self._names = columns
        first = self._values(next(k for k, size in enumerate(sizes) if size))[0]
        super().__init__(sizes, [spec_of(each) for each in first])

    def source(self, entry: int) -> str:
        """The block and the row in it."""
        block, row = self.place(entry)
        return f"block {block} of the data set, row {row}"

    def read_group(self, group: int) -> tuple[list[Values], int]:
        """The columns of a block."""
        values, size = self._values(group)
        for own, spec, name in zip(map(spec_of, values), self.specs, self._names, strict=True):
            if (own.dtype, own.ndim) != (spec.dtype, spec.ndim):
                raise BadSampleError(
                    f"The column {name!r} has {own.ndim} dimensions of {own.dtype.name} here, and "
                    f"{spec.ndim} of {spec.dtype.name} in its first row."
                )
        return values, size

    def _values(self, group: int) -> tuple[list[Any], int]:
        from ray.data.block import BlockAccessor  # which imports pandas

        try:
            with CALLS.inside():
                table = ray.get(self._blocks[group])
        except ray.exceptions.RayError as error:
            raise BadSampleError(f"The block cannot be had: {error}") from error
        schema = table.schema
        tensors = [f.name for f in schema if f.name in self._names and is_ray_tensor(f.type)]
        found = BlockAccessor.for_block(table).to_numpy(tensors) if tensors else {}
        values = [
            TensorValues(found[name])
            if name in found
            else ArrowColumn(schema, name).values(table, "")
            for name in self._names
        ]
        return values, table.nbytes


def _count(args: Mapping[str, Any]) -> int:
    return len(checked_columns(args["columns"]))


@reader(
    "readers.ray",
    args=(
        Arg("dataset", ObjectArg, REQUIRED, "The `ray.data.Dataset`."),
        Arg("columns", ObjectArg, REQUIRED, "Names of the columns that become outputs."),
    ),
    num_outputs=_count,
)
class RayReader(Reader):
    """Reads the rows of a Ray `Dataset`, one output for each column.

    Columns of Arrow are read as `fn.readers.parquet` reads them: numbers, lists of them, bytes
    (1-D, uint8), texts; and so are Ray's tensors. The data set is carried out when the pipeline is
    built, and its blocks stay in Ray's object store; for one that should not,
    ``headrace.plugin.ray.DatasetSource`` streams it. Blocks are fetched as a whole, by this
    process, and up to half a GiB of them are kept at hand. `random_shuffle` permutes blocks and
    shuffles their rows by a window.
    """

    permutes = False

    def list_entries(self) -> Index:
        """The rows of all blocks."""
        columns, dataset = checked_columns(self.args.columns), self.args.dataset
        if not hasattr(dataset, "materialize"):
            raise ArgumentTypeError(
                f"`dataset` is {dataset!r}; expected a `ray.data.Dataset`. A shard of one, from "
                "`get_dataset_shard`, is read by `headrace.plugin.ray.DatasetSource`."
            )
        whole = dataset.materialize()
        known = whole.columns() or []
        missing = [name for name in columns if name not in known]
        if missing:
            raise ArgumentValueError(f"The data set has the columns {known}, and not {missing}.")
        blocks = whole.to_arrow_refs()
        sizes = ray.get([_rows.remote(block) for block in blocks])
        if not sum(sizes):
            raise ArgumentValueError("The data set has no rows.")
        return BlockIndex(blocks, sizes, columns)


@ray.remote(num_cpus=0)
def _rows(block: Any) -> int:
    return int(block.num_rows)
