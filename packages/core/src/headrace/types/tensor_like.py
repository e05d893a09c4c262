"""The type of data that may stand in the place of a node; for annotations."""

from __future__ import annotations

from typing import Any, Protocol


class TensorLike(Protocol):
    """Arrays of any library, numbers, and nested lists of them.

    What these have in common is that all can be multiplied. One short name stands for them in what
    type checkers say of a wrong call, where NumPy's ``ArrayLike`` takes three lines each time.
    """

    def __rmul__(self, other: Any, /) -> Any: ...
