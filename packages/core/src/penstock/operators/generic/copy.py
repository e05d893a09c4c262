"""`copy`."""

from __future__ import annotations

import numpy as np

from penstock.operators.support.operator import (
    BatchContext,
    SampleContext,
    SampleOperator,
    operator,
)
from penstock.operators.support.schema import Input
from penstock.tensors.gpu.batch import DeviceBatch, StridedBatch


@operator(
    "copy",
    inputs=Input("data", "Data of any rank and layout."),
    output_docs=("Data equal to the input.",),
    takes_any_device=True,
)
class Copy(SampleOperator):
    """Copies data."""

    def cpu(self, c: SampleContext, data: np.ndarray) -> np.ndarray:
        out = c.empty(data.shape, data.dtype)
        np.copyto(out, data)
        return out

    takes = (StridedBatch,)

    def gpu(self, c: BatchContext, data: DeviceBatch | StridedBatch) -> DeviceBatch:
        out = c.empty(data.shapes, data.dtype)
        c.queue.copy_strided(StridedBatch.of(data), out)
        return out
