"""Side data that every reader offers: the file, key and number of each sample."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from headrace.errors import ArgumentChoiceError, ArgumentValueError
from headrace.operators.readers.index import Column, ComputedColumn, Index
from headrace.operators.support.argument_types import StringListArg
from headrace.operators.support.schema import Arg
from headrace.types import DALIDataType

SIDE_DATA = ("path", "key", "index")
SIDE_DATA_ARG = Arg(
    "side_data",
    StringListArg,
    None,
    'Further outputs, after all others, in this order: ``"path"``, the file or archive that a '
    'sample is in, and ``"key"``, its name in the data set (of files their names as listed, of '
    "archives all before the first dot, of LMDB the key), which are `types.STRING`; "
    '``"index"``, its number in the data set, int64.',
)


class _Texts(ComputedColumn):
    """Texts that are looked up."""

    dtype, ndim, layout = np.dtype(np.uint8), 2, ""
    dali_type = DALIDataType.STRING

    def __init__(self, index: Index, name: str) -> None:
        self._index, self._name = index, name

    def __len__(self) -> int:
        return len(self._index)

    def __getitem__(self, entries: np.ndarray) -> list[np.ndarray]:
        found: Sequence[str] = getattr(self._index, self._name)(entries)
        return [np.frombuffer(os.fsencode(text), np.uint8) for text in found]


class _Numbers(ComputedColumn):
    """The numbers of entries."""

    dtype, ndim, layout = np.dtype(np.int64), 1, ""

    def __init__(self, size: int) -> None:
        self._size = size

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, entries: np.ndarray) -> Any:
        return np.array(entries, np.int64)


def check_side_data(names: Sequence[str]) -> None:
    """Raise where there is no such side data."""
    for name in names:
        if name not in SIDE_DATA:
            known = ", ".join(map(repr, SIDE_DATA))
            raise ArgumentChoiceError(f"`side_data` has {name!r}; known are {known}.")


def side_columns(index: Index, names: Sequence[str], reader: str) -> list[Column]:
    """The columns of an index for side data of these names."""
    made: dict[str, Callable[[], Column]] = {
        "path": lambda: _Texts(index, "paths_of"),
        "key": lambda: _Texts(index, "keys_of"),
        "index": lambda: _Numbers(len(index)),
    }
    first = np.zeros(1, np.int64)
    has = [n for n in SIDE_DATA if n == "index" or getattr(index, f"{n}s_of")(first) is not None]
    for name in names:
        if name not in has:
            raise ArgumentValueError(
                f"`side_data`: samples of `{reader}` have no {name}. Take "
                f"{' or '.join(map(repr, has))}, or a column of the data set."
            )
    return [made[name]() for name in names]
