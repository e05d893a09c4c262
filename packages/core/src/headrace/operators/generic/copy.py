"""`copy`."""

from __future__ import annotations

import numpy as np

from headrace.operators.support.compiled_steps import CompiledStepContext, SampleColumns
from headrace.operators.support.operator import (
    BatchContext,
    SampleContext,
    SampleOperator,
    operator,
)
from headrace.operators.support.planning import PlanContext, Planned, Samples
from headrace.operators.support.schema import Input
from headrace.tensors.gpu.batch import DeviceBatch, StridedBatch


@operator(
    "copy",
    inputs=Input("data", "Data of any rank and layout."),
    output_docs=("Data equal to the input.",),
    takes_any_device=True,
    side_data=True,
)
class Copy(SampleOperator):
    """Copies data."""

    plans_values = True
    needs_plan = False

    def plan(self, c: PlanContext, data: Samples) -> Planned:
        values = data.values
        return Planned(data.shapes) if values is None else Planned(values=values.copy())

    def cpu(self, c: SampleContext, data: np.ndarray) -> np.ndarray:
        out = c.empty(data.shape, data.dtype)
        np.copyto(out, data)
        return out

    compiled_views = True

    def compiled(self, c: CompiledStepContext, data: SampleColumns) -> SampleColumns:
        return c.steps.copy(data, leaves=c.leaves[0])

    takes = (StridedBatch,)

    def gpu(self, c: BatchContext, data: DeviceBatch | StridedBatch) -> DeviceBatch:
        out = c.empty(data.shapes, data.dtype)
        c.queue.copy_strided(StridedBatch.of(data), out)
        return out
