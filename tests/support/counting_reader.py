"""A reader without files, whose samples may be bad: for tests of the engine."""

from __future__ import annotations

import numpy as np

from headrace.errors import BadSampleError
from headrace.operators.readers.base import Reader
from headrace.operators.readers.index import Index
from headrace.operators.support.argument_types import IntArg, IntListArg
from headrace.operators.support.operator import operator
from headrace.operators.support.schema import Arg, Spec
from headrace.types import DALIDataType


class Numbers(Index):
    """The numbers 0, 1, 2, ... as int32 scalars."""

    def __init__(self, count: int, bad: tuple[int, ...]) -> None:
        super().__init__(count, [Spec(DALIDataType.INT32, 0)])
        self._bad = bad

    def source(self, entry: int) -> str:
        """A name like that of a file."""
        return f"sample-{entry}"

    def fetch(self, entry: int) -> tuple[np.ndarray]:
        """The number, unless it is bad."""
        if entry in self._bad:
            raise BadSampleError(f"{entry} is bad")
        return (np.array(entry, np.int32),)


@operator(
    "testing.counting_reader",
    args=(
        Arg("count", IntArg, 10, "Number of samples."),
        Arg("bad", IntListArg, (), "Samples that cannot be loaded."),
    ),
    reader=True,
    random=True,
    hidden=True,
)
class CountingReader(Reader):
    """Gives the numbers 0, 1, 2, ... as int32 scalars, over and over."""

    position = 0

    def open(self, batch_size: int, seed: int) -> None:
        """Nothing is put into order."""
        self.index = Numbers(self.args.count, tuple(self.args.bad))

    def draw(self, count: int, *, refill: bool = False) -> list[int]:
        """The next numbers."""
        first = self.position
        self.position += count
        return [k % self.args.count for k in range(first, first + count)]

    def meta(self) -> dict[str, int]:
        """As of a reader with one shard."""
        n = self.args.count
        return {
            "epoch_size": n,
            "epoch_size_padded": n,
            "number_of_shards": 1,
            "shard_id": 0,
            "pad_last_batch": 0,
            "stick_to_shard": 0,
        }

    def before(self, entry: int) -> int:
        """The number before `entry`, or the last one."""
        return (entry - 1) % self.args.count

    def identity(self) -> dict[str, int]:
        """What the numbers depend on."""
        return {"number of samples": self.args.count}

    def state(self) -> int:
        """Where the reader is."""
        return self.position

    def restore(self, state: int) -> None:
        """Go back to where it was."""
        self.position = state

    @property
    def epoch(self) -> int:
        """Number of the epoch that is being read."""
        return self.position // self.args.count

    def next_epoch(self, at_least: int = 0) -> int:
        """Go on to the start of the next epoch; return the only shard."""
        n = self.args.count
        self.position = max(at_least, -(-self.position // n)) * n
        return 0
