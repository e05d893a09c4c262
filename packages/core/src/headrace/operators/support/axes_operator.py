"""Base of operators that leave out axes of extent 1, or put some in."""

from __future__ import annotations

import numpy as np

from headrace.operators.support.operator import BatchContext, SampleContext, SampleOperator
from headrace.operators.support.planning import PlanContext, Planned, Samples, plan_batch, repeated
from headrace.tensors.gpu.batch import DeviceBatch, LazyBatch, StridedBatch


class AxesOperator(SampleOperator):
    """An operator that leaves elements where they are; a sub-class says which axes there are."""

    def axes(self, c: PlanContext, shapes: np.ndarray) -> np.ndarray:
        """For each axis of the output the one of the input that it is, or -1 for a new one.

        `shapes`: of the inputs, int64 ``(samples, ndim)``. Returns int64 ``(samples, axes)``, or
        ``(1, axes)`` for all samples.
        """
        raise NotImplementedError

    def plan(self, c: PlanContext, data: Samples) -> Planned:
        shapes = data.shapes
        axes = self.axes(c, shapes)
        return Planned(along_axes(shapes, axes, 1), (repeated(axes, len(shapes)),))

    def cpu(self, c: SampleContext, data: np.ndarray) -> np.ndarray:
        return data.reshape(c.shape)

    takes = (StridedBatch,)
    returns_lazy = (LazyBatch,)

    def gpu(self, c: BatchContext, data: DeviceBatch | StridedBatch) -> LazyBatch:
        planned = plan_batch(self, c, data)
        (shapes,) = planned.shapes
        if isinstance(data, DeviceBatch):
            return data.reshaped(shapes)
        strides = along_axes(data.strides, planned.table[0], 0)
        return data.seen(np.broadcast_to(shapes, strides.shape), strides)


def along_axes(values: np.ndarray, axes: np.ndarray, new: int) -> np.ndarray:
    """Columns of `values`, ``(samples, ndim)``, by number, ``(samples or 1, axes)``.

    Column -1, or `ndim`, has the value `new` in all samples.
    """
    column = np.full((len(values), 1), new, values.dtype)
    return np.take_along_axis(np.concatenate([values, column], axis=1), axes, axis=1)
