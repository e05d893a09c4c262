"""`fn.readers.ray`: rows of a Ray `Dataset`, with shards, shuffling and checkpoints."""

from __future__ import annotations

import bisect
import threading
from collections import OrderedDict
from collections.abc import Mapping
from typing import Any

import numpy as np
import ray

from headrace.errors import ArgumentTypeError, ArgumentValueError, BadSampleError
from headrace.operators.readers.base import Reader, reader
from headrace.operators.readers.index import Index
from headrace.operators.support.argument_types import ObjectArg
from headrace.operators.support.schema import REQUIRED, Arg, Spec
from headrace.plugin.ray.columns import as_sample, checked_columns
from headrace.types import to_dali_type

_OPEN_BLOCKS = 8
"""Blocks that are kept at hand: samples of one follow one another without `random_shuffle`."""


class BlockIndex(Index):
    """Rows of blocks in Ray's object store."""

    def __init__(self, blocks: list[Any], ends: list[int], columns: list[str]) -> None:
        self._blocks = blocks
        self._ends = ends
        self._columns = columns
        self._forget()
        first = self._row(0)
        super().__init__(ends[-1], [Spec(to_dali_type(a.dtype), a.ndim) for a in first])

    def _forget(self) -> None:
        self._open: OrderedDict[int, Any] = OrderedDict()
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        return {k: v for k, v in vars(self).items() if k not in ("_open", "_lock")}

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        self.__dict__.update(state)
        self._forget()

    def source(self, entry: int) -> str:
        """The block and the row in it."""
        block = bisect.bisect_right(self._ends, entry)
        return (
            f"block {block} of the data set, row {entry - (self._ends[block - 1] if block else 0)}"
        )

    def _row(self, entry: int) -> list[np.ndarray]:
        number = bisect.bisect_right(self._ends, entry)
        with self._lock:
            block = self._open.pop(number, None)
        from ray.data.block import BlockAccessor  # which imports pandas and pyarrow

        if block is None:
            block = BlockAccessor.for_block(ray.get(self._blocks[number]))
        with self._lock:
            self._open[number] = block
            while len(self._open) > _OPEN_BLOCKS:
                self._open.popitem(last=False)
        at = entry - (self._ends[number - 1] if number else 0)
        row = BlockAccessor.for_block(block.slice(at, at + 1, copy=False)).to_numpy(self._columns)
        return [as_sample(row[name][0], name) for name in self._columns]

    def fetch(self, entry: int) -> tuple[Any, ...]:
        """The columns of a row."""
        try:
            found = self._row(entry)
        except ray.exceptions.RayError as error:
            raise BadSampleError(f"The block cannot be had: {error}") from error
        for spec, value, name in zip(self.specs, found, self._columns, strict=True):
            if (to_dali_type(value.dtype), value.ndim) != (spec.dtype, spec.ndim):
                raise BadSampleError(
                    f"The column {name!r} has {value.ndim} dimensions of {value.dtype} here, and "
                    f"{spec.ndim} of {spec.dtype.name} in its first row."
                )
        return tuple(found)


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

    Numbers, arrays of numbers, and bytes (as uint8) can be samples. The data set is carried out
    when the pipeline is built, and its blocks stay in Ray's object store; for one that should not,
    ``headrace.plugin.ray.DatasetSource`` streams it.
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
        rows = ray.get([_rows.remote(block) for block in blocks])
        ends = np.cumsum(rows).tolist()
        if not sum(rows):
            raise ArgumentValueError("The data set has no rows.")
        return BlockIndex(blocks, ends, columns)


@ray.remote(num_cpus=0)
def _rows(block: Any) -> int:
    return int(block.num_rows)
