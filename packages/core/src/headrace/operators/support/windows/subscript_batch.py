"""Python's indexing of all samples of a batch at once: views in device memory, as NumPy's are."""

from __future__ import annotations

import numpy as np

from headrace.operators.support.windows.arithmetic import FARTHEST
from headrace.tensors.gpu.batch import StridedBatch


def spans(
    extent: np.ndarray, low: np.ndarray | None, high: np.ndarray | None, step: np.ndarray | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """First index, count and step that ``slice(low, high, step)`` selects along axes of these
    extents.

    `extent`, `low`, `high`, `step`: int64, one a sample; `None` for what is not given.
    """
    step = np.ones_like(extent) if step is None else step
    forward = step > 0
    begin = np.where(forward, 0, -1)
    end = np.where(forward, extent, extent - 1)
    first = np.where(forward, begin, end) if low is None else _within(low, extent, begin, end)
    last = np.where(forward, end, begin) if high is None else _within(high, extent, begin, end)
    distance = np.where(forward, last - first, first - last)
    count = np.maximum(-(-distance // np.abs(step)), 0)
    return np.where(count > 0, first, 0), count, np.where(count > 1, step, 1)


def _within(
    index: np.ndarray, extent: np.ndarray, begin: np.ndarray, end: np.ndarray
) -> np.ndarray:
    """Indices counted from the front, and brought to the ends where they lie beyond."""
    return np.clip(np.where(index < 0, index + extent, index), begin, end)


def clipped(index: int) -> int:
    """`index`, or a number that lies beyond all data on the same side."""
    return min(max(index, -FARTHEST), FARTHEST)


class Subscripted:
    """A batch that is indexed axis by axis."""

    def __init__(self, data: StridedBatch) -> None:
        self._data = data
        self._offsets = np.zeros(len(data), np.int64)
        self._shapes = data.shapes.copy()
        self._strides = data.strides.copy()
        self._kept = list(range(data.ndim))

    def pick(self, axis: int, index: np.ndarray) -> None:
        """Take one index along an axis, which is then gone; negative ones count from the end."""
        extent = self._data.shapes[:, axis]
        self._offsets += np.where(index < 0, index + extent, index) * self._data.strides[:, axis]
        self._kept.remove(axis)

    def span(
        self, axis: int, low: np.ndarray | None, high: np.ndarray | None, step: np.ndarray | None
    ) -> None:
        """Take a range along an axis."""
        first, count, step = spans(self._data.shapes[:, axis], low, high, step)
        self._offsets += first * self._data.strides[:, axis]
        self._shapes[:, axis] = count
        self._strides[:, axis] *= step

    def view(self) -> StridedBatch:
        """View of the selected elements."""
        kept = self._kept
        return self._data.seen(self._shapes[:, kept], self._strides[:, kept], self._offsets)
