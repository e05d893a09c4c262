"""Free ranges of a piece of memory."""

from __future__ import annotations

import bisect


class FreeRanges:
    """Free ranges of `size` bytes, all free at first. Not for several threads at once."""

    __slots__ = ("_free", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self._free = [(0, size)]
        """Begin and end of each free range, in order; neighbours are joined."""

    @property
    def bytes_free(self) -> int:
        """Free bytes."""
        return sum(end - begin for begin, end in self._free)

    def take(self, size: int) -> int | None:
        """Take the first free range of `size` bytes; return its offset, or `None` if there is
        none.
        """
        for k, (begin, end) in enumerate(self._free):
            if end - begin >= size:
                if end - begin == size:
                    del self._free[k]
                else:
                    self._free[k] = begin + size, end
                return begin
        return None

    def give_back(self, begin: int, size: int) -> None:
        """Take a range back."""
        end = begin + size
        k = bisect.bisect(self._free, (begin, end))
        if k < len(self._free) and self._free[k][0] == end:
            end = self._free.pop(k)[1]
        if k and self._free[k - 1][1] == begin:
            k -= 1
            begin = self._free.pop(k)[0]
        self._free.insert(k, (begin, end))
