"""Names of files, packed: of millions, objects would take several times the memory."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Self, overload

import numpy as np


class PackedNames(Sequence[str]):
    """Names in one piece of memory; a string is made of one that is asked for.

    `text`: uint8, with a NUL after each name. `begins`: int64: where each begins. `longest`: length
    of the longest, in bytes. `remote`: true if one of them is an address.
    """

    def __init__(self, text: np.ndarray, begins: np.ndarray, longest: int, remote: bool) -> None:
        self.text = text
        self.begins = begins
        self.longest = longest
        self.remote = remote

    @classmethod
    def of(cls, parts: Iterable[Sequence[str]]) -> Self:
        """Pack the names of several lists, of which only one need be there at a time.

        One with a NUL counts as two.
        """
        texts, remote = [], False
        for part in parts:
            together = "\0".join((*part, ""))
            remote |= "://" in together
            texts.append(os.fsencode(together))
        text = np.frombuffer(b"".join(texts), np.uint8)
        del texts
        ends = np.flatnonzero(text == 0)
        begins = np.zeros(len(ends), np.int64)
        begins[1:] = ends[:-1] + 1
        return cls(text, begins, int((ends - begins).max(initial=0)), remote)

    def taken(self, numbers: np.ndarray) -> PackedNames:
        """Some of them, in this order."""
        return PackedNames(self.text, self.begins[numbers], self.longest, self.remote)

    def arrays(self) -> dict[str, np.ndarray]:
        """Everything, as arrays."""
        facts = np.array([self.longest, self.remote], np.int64)
        return {"text": self.text, "begins": self.begins, "facts": facts}

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, np.ndarray]) -> Self:
        """The names that `arrays` were those of."""
        longest, remote = arrays["facts"].tolist()
        return cls(arrays["text"], arrays["begins"], longest, bool(remote))

    @classmethod
    def joined(cls, parts: Sequence[PackedNames]) -> Self:
        """Those of several, one after another."""
        shifts = np.cumsum([0, *[len(part.text) for part in parts]])
        begins = [part.begins + shift for part, shift in zip(parts, shifts[:-1], strict=True)]
        longest = max((part.longest for part in parts), default=0)
        text = np.concatenate([part.text for part in parts])
        return cls(text, np.concatenate(begins), longest, any(part.remote for part in parts))

    def __len__(self) -> int:
        return len(self.begins)

    @overload
    def __getitem__(self, number: int) -> str: ...
    @overload
    def __getitem__(self, number: slice) -> list[str]: ...
    def __getitem__(self, number: int | slice) -> str | list[str]:
        if isinstance(number, slice):
            return [self[k] for k in range(*number.indices(len(self)))]
        begin = int(self.begins[number])
        name = self.text[begin : begin + self.longest + 1].tobytes()
        return os.fsdecode(name[: name.index(0)])
