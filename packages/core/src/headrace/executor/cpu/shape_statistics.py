"""Shapes of the samples that an edge has carried."""

from __future__ import annotations


class ShapeStatistics:
    """Shapes seen on one edge in earlier iterations."""

    __slots__ = ("bytes", "ragged", "shape")

    def __init__(self) -> None:
        self.ragged = False
        self.shape: tuple[int, ...] | None = None
        """The shape that all rows of the last batch had."""
        self.bytes = 0
        """Bytes of the rows of a ragged batch that is uploaded, with a margin."""
