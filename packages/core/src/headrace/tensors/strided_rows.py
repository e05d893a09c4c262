"""Samples that are views of others: windows and mirror images, as columns."""

from __future__ import annotations

import numpy as np

from headrace.tensors.rows import Rows


class StridedRows(Rows):
    """Views of samples that lie in one piece of memory.

    Attributes
    ----------
    strides
        Bytes from each element to the next along each axis, int64 ``(samples, ndim)``.
    """

    __slots__ = ("_memory", "_starts", "strides")

    def __init__(
        self, memory: np.ndarray, starts: np.ndarray, shapes: np.ndarray, strides: np.ndarray
    ) -> None:
        super().__init__()
        self._memory = memory
        """All of it, flat."""
        self._starts = starts
        """Byte of it that each sample begins with, int64 ``(samples,)``."""
        self._shapes = shapes
        self.strides = strides

    @classmethod
    def of(cls, rows: Rows) -> StridedRows | None:
        """`rows` as views, where they lie in one piece of memory."""
        if isinstance(rows, cls):
            return rows
        if rows.flat is None or rows.begins is None:
            return None
        shapes, itemsize = rows.shapes, rows.flat.itemsize
        strides = np.empty_like(shapes)
        size: int | np.ndarray = itemsize
        for axis in range(shapes.shape[1] - 1, -1, -1):
            strides[:, axis] = size
            size = size * shapes[:, axis]
        return cls(rows.flat, rows.begins * itemsize, shapes, strides)

    def windows(self, anchors: np.ndarray, shapes: np.ndarray) -> StridedRows:
        """Windows that lie within the samples, int64 ``(samples, ndim)`` both."""
        starts = self._starts + (anchors * self.strides).sum(axis=1)
        return StridedRows(self._memory, starts, shapes, self.strides)

    def mirrored(self, axis: int, which: np.ndarray) -> StridedRows:
        """The samples, those that `which`, bool ``(samples,)``, says mirrored along an axis."""
        last = np.maximum(self.shapes[:, axis] - 1, 0)
        starts = self._starts + np.where(which, last * self.strides[:, axis], 0)
        strides = self.strides.copy()
        strides[which, axis] *= -1
        return StridedRows(self._memory, starts, self.shapes, strides)

    @property
    def dtype(self) -> np.dtype:
        """Type of the elements."""
        return self._memory.dtype

    @property
    def origins(self) -> np.ndarray:
        """Addresses of the first elements, uint64 ``(samples,)``."""
        start: int = self._memory.__array_interface__["data"][0]
        return (self._starts + start).astype(np.uint64)

    def _made(self) -> list[np.ndarray]:
        # A window without elements may begin where the memory ends.
        starts = np.where(self.shapes.all(axis=1), self._starts, 0).tolist()
        columns = self.shapes.tolist(), starts, self.strides.tolist()
        memory = self._memory
        return [
            np.ndarray(shape, memory.dtype, memory, start, strides)
            for shape, start, strides in zip(*columns, strict=True)
        ]
