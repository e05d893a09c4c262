"""Chains of functions of pixels on the GPU: how operators add to them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headrace.kernels.gpu import color_steps as _steps
from headrace.operators.support.pointwise.color_batch import ColorBatch, reads_elements
from headrace.operators.support.pointwise.pointwise_batch import PointwiseBatch
from headrace.tensors.gpu.batch import DeviceBatch, LazyBatch, StridedBatch
from headrace.tensors.gpu.queue import Queue

if TYPE_CHECKING:
    from headrace.kernels.gpu.color_steps import Step

TAKEN = (ColorBatch, PointwiseBatch, StridedBatch)
"""Recipes that `colored` takes over."""


def colored(
    queue: Queue,
    step: Step,
    batch: LazyBatch,
    shapes: np.ndarray,
    numbers: tuple[np.ndarray, ...] = (),
) -> ColorBatch:
    """The lazy batch for `step` of a batch that may be lazy itself.

    `batch`: device memory, dense or seen through strides, or a lazy batch of `TAKEN`. `shapes`:
    int64 ``(samples, ndim)`` of the result.
    """
    if isinstance(batch, PointwiseBatch):
        batch = _chain_of(batch) or batch.materialise(queue)
    if isinstance(batch, ColorBatch):
        further = batch.then(step, numbers, shapes)
        if further is not None:
            return further
        batch = batch.materialise(queue)
    assert isinstance(batch, (DeviceBatch, StridedBatch))
    return ColorBatch(batch, (step,), numbers, shapes)


def _chain_of(batch: PointwiseBatch) -> ColorBatch | None:
    """The same batch as a chain for pixels, if it is one of single elements."""
    if len(batch.sources) != 1 or batch.faults or not reads_elements(batch.term):
        return None
    (source,) = batch.sources
    if not (source.shapes is batch.shapes or np.array_equal(source.shapes, batch.shapes)):
        return None
    step = _steps.PerChannel(batch.term, len(batch.numbers), int(batch.shapes[0, -1]))
    return ColorBatch(source, (step,), batch.numbers, batch.shapes)
