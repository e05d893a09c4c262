"""The type of data that may stand in the place of a node; for annotations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias


class TensorLike(Protocol):
    """Arrays of any library, numbers, and nested lists of them.

    What these have in common is that all can be multiplied. One short name stands for them in what
    type checkers say of a wrong call, where NumPy's ``ArrayLike`` takes three lines each time.
    """

    def __rmul__(self, other: Any, /) -> Any: ...


class ArrayLike(Protocol):
    """Arrays of any library and numbers; no nodes, and no lists."""

    def __float__(self) -> float: ...


ConstantLike: TypeAlias = (
    ArrayLike
    | Sequence[ArrayLike]
    | Sequence[Sequence[ArrayLike]]
    | Sequence[Sequence[Sequence[ArrayLike]]]
    | Sequence[Sequence[Sequence[Sequence[ArrayLike]]]]
)
"""A `TensorLike` that is no list of nodes, for each of which an operator would run.

It is not defined by itself: mypy would expect numbers in the list of nodes of a call.
"""
