"""Samples that are views of others: windows and mirror images, as columns."""

from __future__ import annotations

import numpy as np

from headrace.tensors.addresses import addresses_of
from headrace.tensors.rows import Rows


class StridedRows(Rows):
    """Views of samples.

    `strides`: bytes from each element to the next along each axis, int64 ``(samples, ndim)``.
    """

    __slots__ = ("_memory", "_starts", "strides")

    def __init__(
        self,
        memory: np.ndarray | list[np.ndarray],
        starts: np.ndarray,
        shapes: np.ndarray,
        strides: np.ndarray,
    ) -> None:
        super().__init__()
        self._memory = memory
        """All of it, flat; or a contiguous array for each sample."""
        self._starts = starts
        """Byte of it that each sample begins with, int64 ``(samples,)``."""
        self._shapes = shapes
        self.strides = strides

    @classmethod
    def of(cls, rows: Rows) -> StridedRows | None:
        """`rows` as views; `None` where some have gaps already."""
        if isinstance(rows, cls):
            return rows
        memory: np.ndarray | list[np.ndarray]
        if rows.flat is not None and rows.begins is not None:
            memory, starts = rows.flat, rows.begins * rows.flat.itemsize
        else:
            memory = rows.rows
            if not all(row.flags.c_contiguous for row in memory):
                return None
            starts = np.zeros(len(memory), np.int64)
        shapes = rows.shapes
        strides = np.empty_like(shapes)
        size: int | np.ndarray = rows.dtype.itemsize
        for axis in range(shapes.shape[1] - 1, -1, -1):
            strides[:, axis] = size
            size = size * shapes[:, axis]
        return cls(memory, starts, shapes, strides)

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
        memory = self._memory
        return memory.dtype if isinstance(memory, np.ndarray) else memory[0].dtype

    @property
    def origins(self) -> np.ndarray:
        """Addresses of the first elements, uint64 ``(samples,)``."""
        memory = self._memory
        if isinstance(memory, np.ndarray):
            start: int = memory.__array_interface__["data"][0]
            return (self._starts + start).astype(np.uint64)
        return addresses_of(memory) + self._starts.astype(np.uint64)

    def _made(self) -> list[np.ndarray]:
        # A window without elements may begin where the memory ends.
        starts = np.where(self.shapes.all(axis=1), self._starts, 0).tolist()
        memory, dtype = self._memory, self.dtype
        owners = [memory] * len(starts) if isinstance(memory, np.ndarray) else memory
        columns = self.shapes.tolist(), owners, starts, self.strides.tolist()
        return [
            np.ndarray(shape, dtype, owner, start, strides)
            for shape, owner, start, strides in zip(*columns, strict=True)
        ]
