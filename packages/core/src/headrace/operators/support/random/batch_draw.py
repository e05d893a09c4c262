"""Random tensors on the GPU: shapes and parameters of whole batches."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from headrace.errors import ArgumentValueError
from headrace.operators.support.arguments import rows_of
from headrace.operators.support.operator import BatchContext
from headrace.operators.support.random.draw import Draw, checked_shape
from headrace.tensors.gpu.batch import DeviceBatch, LazyBatch


class BatchDraw(Draw):
    """A `Draw` that the GPU can do as well, with the same numbers."""

    @abstractmethod
    def fill_batch(self, c: BatchContext, out: DeviceBatch) -> None:
        """Queue filling `out`, which has the output's type."""

    def gpu(self, c: BatchContext, shape_like: Any = None) -> DeviceBatch:
        out = c.empty(self._shapes(c, shape_like), self.dtype)
        self.fill_batch(c, out)
        return out

    def _shapes(self, c: BatchContext, like: Any) -> Any:
        """One shape for all samples, or one a sample."""
        if self.shape is not None:
            return self.shape
        if isinstance(like, LazyBatch):
            return like.shapes
        if like is not None:  # on the host
            rows = like.rows
            return np.array([row.shape for row in rows], np.int64).reshape(len(rows), -1)
        shapes = rows_of(c, "shape", np.int64)
        good = np.asarray((shapes >= 0).all(axis=1))
        check_each(c, good, checked_shape, lambda i: tuple(shapes[i].tolist()))
        return shapes


def check_each(
    c: BatchContext, good: np.ndarray, check: Callable[[Any], Any], value: Callable[[int], Any]
) -> None:
    """Raise what `check` says about the first sample that is not `good`, with its place."""
    if good.all():
        return
    index = int(np.argmin(good))
    try:
        check(value(index))
    except ArgumentValueError as error:
        raise c.located(error, index) from error
