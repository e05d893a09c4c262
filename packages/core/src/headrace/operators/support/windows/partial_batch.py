"""Batches on the GPU of which a part, or a mirror image, costs nothing until it is read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, cast

import numpy as np

from headrace.tensors.gpu.batch import DeviceBatch, LazyBatch, StridedBatch

if TYPE_CHECKING:
    from headrace.operators.support.operator import BatchContext


class PartialBatch(Protocol):
    """A lazy batch that takes requests for a part of its samples, and passes them on to its source.

    `StridedBatch` is one, and so are resized images: a crop of them computes no more than it shows.
    """

    def window(self, anchors: np.ndarray, shapes: np.ndarray) -> LazyBatch:
        """The part of each sample that begins at `anchors`, inside of it, ``(samples, ndim)``."""
        ...

    def flipped(self, axis: int, where: np.ndarray) -> LazyBatch:
        """Axis number `axis` in the opposite order, in the samples where `where` is true."""
        ...


def partial_batch(c: BatchContext, data: LazyBatch) -> PartialBatch:
    """`data` as one that takes requests; computed now if it is a lazy batch that does not."""
    # Asking whether it is an instance of the protocol takes longer than all that follows.
    if hasattr(data, "window"):
        return cast("PartialBatch", data)
    return strided_batch(c, data)


def strided_batch(c: BatchContext, data: LazyBatch) -> StridedBatch:
    """`data` in memory, computed now if it is a lazy batch."""
    if not isinstance(data, (DeviceBatch, StridedBatch)):
        data = data.materialise(c.queue)
    return StridedBatch.of(data)
