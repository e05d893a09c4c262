"""Geometry that is worked out once for batches of the same shapes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import numpy as np

from headrace.tensors.gpu.batch import LazyBatch
from headrace.tensors.gpu.tracked import Tracked

T = TypeVar("T")

_MOST = 32


class ShapeMemo(Generic[T]):
    """Memo of results that follow from a batch's shapes and from constants, for recent batches.

    Belongs to an instance of an operator. Images of one size, and batches that come round again,
    are the rule where the GPU is so fast that geometry costs more than pixels.
    """

    __slots__ = ("_found",)

    def __init__(self) -> None:
        self._found: dict[Any, T] = {}

    def of(self, batch: LazyBatch, make: Callable[[], T]) -> T:
        """Return `make`'s result, from the memo if there was a batch of these shapes."""
        if isinstance(batch.shapes, Tracked):  # of one iteration, and others in the next
            return make()
        shape = batch.uniform_shape
        key = (len(batch), shape) if shape is not None else (batch.ndim, batch.shapes.tobytes())
        return self._of(key, make)

    def of_shapes(self, shapes: np.ndarray, make: Callable[[], T]) -> T:
        """The same for shapes that differ, int64 ``(samples, ndim)``."""
        return self._of((shapes.shape[1], shapes.tobytes()), make)

    def _of(self, key: Any, make: Callable[[], T]) -> T:
        found = self._found.get(key)
        if found is None:
            found = make()
            if len(self._found) >= _MOST:
                self._found.pop(next(iter(self._found)), None)
            self._found[key] = found
        return found
