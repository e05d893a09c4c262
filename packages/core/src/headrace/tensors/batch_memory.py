"""Memory of a batch's samples: one array, or one for each sample."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from headrace.errors import ShapeError
from headrace.tensors._repr import shapes_text
from headrace.tensors.pool import HOST_POOL

if TYPE_CHECKING:
    from headrace.tensors.rows import Rows

    Shape = tuple[int, ...]


class BatchMemory:
    """The samples of a batch as C-contiguous arrays of one dtype and number of axes.

    Never changes, so that batches can share it.

    `dense`: the whole batch as one array, outermost axis samples; None unless it is one.
    """

    __slots__ = ("_flat", "_packed", "_rows", "dense")

    def __init__(
        self,
        dense: np.ndarray | None,
        rows: list[np.ndarray] | None = None,
        flat: np.ndarray | None = None,
    ) -> None:
        self.dense = dense
        self._rows = rows
        self._flat = flat
        self._packed: list[Rows] = []

    @classmethod
    def of_packed(cls, packed: list[Rows]) -> BatchMemory:
        """The memory of two samples or more, one after the other; arrays are made when needed."""
        made = cls(None)
        made._packed = packed
        return made

    @classmethod
    def of_rows(cls, rows: list[np.ndarray]) -> BatchMemory:
        """The memory of a batch whose samples are `rows`, shared; the list is kept."""
        if len(rows) == 1:
            return cls(rows[0][np.newaxis])
        return cls(None, rows)

    @classmethod
    def of_flat(cls, flat: np.ndarray, shapes: Sequence[Shape]) -> BatchMemory:
        """The memory of a batch whose samples, of these shapes, follow one another in `flat`."""
        if shapes and all(shape == shapes[0] for shape in shapes):
            return cls(flat.reshape(len(shapes), *shapes[0]))
        rows = []
        start = 0
        for shape in shapes:
            size = math.prod(shape)
            rows.append(flat[start : start + size].reshape(shape))
            start += size
        return cls(None, rows, flat)

    @classmethod
    def copied(cls, rows: Sequence[np.ndarray]) -> BatchMemory:
        """A copy of the samples `rows` in one piece of memory."""
        return cls.of_flat(_concatenated(rows), [row.shape for row in rows])

    @property
    def rows(self) -> list[np.ndarray]:
        """One array a sample. Not to be changed."""
        if self._rows is None:
            dense = self.dense
            if dense is None:
                self._rows = [row for part in self._packed for row in part.rows]
            elif dense.ndim == 1:  # iterating would give NumPy scalars, which are copies
                self._rows = [dense[i, ...] for i in range(len(dense))]
            else:
                self._rows = list(dense)
        return self._rows

    def __len__(self) -> int:
        if self.dense is not None:
            return len(self.dense)
        return sum(map(len, self._packed)) if self._rows is None else len(self._rows)

    @property
    def size(self) -> int:
        """Number of elements of all samples."""
        if self.dense is not None:
            return self.dense.size
        return sum(row.size for row in self.rows)

    def shapes(self) -> list[Shape]:
        """Shape of each sample."""
        if self.dense is not None:
            return [self.dense.shape[1:]] * len(self.dense)
        if self._rows is None:
            return [tuple(shape) for part in self._packed for shape in part.shapes.tolist()]
        return [row.shape for row in self.rows]

    @property
    def in_one_piece(self) -> np.ndarray | None:
        """All elements as one array of any shape; None if they lie in several pieces."""
        return self.dense if self.dense is not None else self._flat

    def flat(self) -> np.ndarray:
        """All elements in one piece; a copy if they lie in several."""
        whole = self.in_one_piece
        return _concatenated(self.rows) if whole is None else whole

    def stacked(self) -> np.ndarray:
        """The batch as one array, outermost axis samples; a copy unless it is dense."""
        if self.dense is not None:
            return self.dense
        shapes = self.shapes()
        if any(shape != shapes[0] for shape in shapes):
            raise not_one_shape(shapes)
        return _concatenated(self.rows).reshape(len(shapes), *shapes[0])

    def part(self, numbers: range) -> BatchMemory:
        """The memory of the samples `numbers`, shared."""
        if numbers.step == 1:
            if self.dense is not None:
                return BatchMemory(self.dense[numbers.start : numbers.stop])
            if self._flat is not None:
                start = sum(row.size for row in self.rows[: numbers.start])
                shapes = [self.rows[n].shape for n in numbers]
                size = sum(math.prod(shape) for shape in shapes)
                return self.of_flat(self._flat[start : start + size], shapes)
        return self.of_rows([self.rows[n] for n in numbers])

    def viewed_as(self, dtype: np.dtype) -> BatchMemory:
        """The same bytes as elements of another type of the same size."""
        if self.dense is not None:
            return BatchMemory(self.dense.view(dtype))
        if self._flat is not None:
            return self.of_flat(self._flat.view(dtype), self.shapes())
        return self.of_rows([row.view(dtype) for row in self.rows])

    def copy(self) -> BatchMemory:
        """A copy in one piece."""
        if self.dense is not None:
            return BatchMemory(HOST_POOL.copy_of(self.dense))
        return self.copied(self.rows) if self.rows else self


def _concatenated(rows: Sequence[np.ndarray]) -> np.ndarray:
    """A copy of the elements of all arrays, one array after the other."""
    result = HOST_POOL.empty(sum(row.size for row in rows), rows[0].dtype)
    start = 0
    for row in rows:
        np.copyto(result[start : start + row.size].reshape(row.shape), row)
        start += row.size
    return result


_WAYS = "(`fn.pad`, `fn.crop`), or take them one by one: `batch[i]`, `batch.at(i)`"


def not_one_shape(shapes: list[Shape], ways: str = _WAYS) -> ShapeError:
    """The error of samples of these different shapes where one tensor is wanted.

    `ways`: calls that a user may make in its place.
    """
    return ShapeError(
        f"A batch of non-uniform shape is not one tensor: its samples do not all have the same "
        f"shape, but {shapes_text(shapes)}. Pad or crop them to a common shape {ways}."
    )
