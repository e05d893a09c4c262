"""Files that samples come from, looked up on demand."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, overload

_finding = threading.RLock()
"""Held while names are found or changed: two lists would not learn of one another's changes."""


class SourceNames(Sequence[str]):
    """Files of samples, looked up when one is asked for.

    `size`: how many there are. `known`: they, or a function that returns a list of its own; empty
    ones if not given.
    """

    __slots__ = ("_changes", "_found", "_known", "_size")

    def __init__(
        self, size: int, known: Callable[[], list[str]] | Sequence[str] | None = None
    ) -> None:
        self._size = size
        self._known = known
        self._found: list[str] | None = None
        self._changes: list[tuple[Sequence[int], Sequence[str]]] = []
        """Those that were `put` before the others were found."""

    def put(self, indices: Sequence[int], names: Sequence[str]) -> None:
        """Change those of some samples."""
        with _finding:
            self._changes.append((indices, names))
            if self._found is not None:
                self._change(self._found)

    def _change(self, found: list[str]) -> None:
        for indices, names in self._changes:
            for index, name in zip(indices, names, strict=True):
                found[index] = name
        self._changes = []

    def taken(self, indices: Sequence[int]) -> SourceNames:
        """Those of some samples."""
        return SourceNames(len(indices), lambda: [self[k] for k in indices])

    def _all(self) -> list[str]:
        if self._found is None:
            with _finding:
                if self._found is None:
                    known = self._known
                    if callable(known):
                        known = known()
                    found = [""] * self._size if known is None else list(known)
                    self._change(found)
                    self._found, self._known = found, None
        return self._found

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> SourceNames: ...
    def __getitem__(self, index: int | slice) -> Any:
        if isinstance(index, slice):
            return self.taken(range(*index.indices(self._size)))
        return self._all()[index]

    def __setitem__(self, index: int, name: str) -> None:
        self.put((index,), (name,))

    def __len__(self) -> int:
        return self._size

    def __eq__(self, other: object) -> bool:
        return self._all() == (other._all() if isinstance(other, SourceNames) else other)

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        return list, (self._all(),)


def some_of(names: Sequence[str], indices: Sequence[int]) -> list[str] | SourceNames:
    """The names of some samples."""
    return names.taken(indices) if isinstance(names, SourceNames) else [names[k] for k in indices]
