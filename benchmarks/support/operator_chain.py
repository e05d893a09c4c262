"""Operators, one behind the other, on batches in device memory, without a pipeline."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace.executor.gpu.frames import GpuFrames
from headrace.operators.support.batch_context import BatchContext
from headrace.tensors.gpu.batch import DeviceBatch
from headrace.tensors.gpu.device import GpuDevice
from tests.support.gpu.prepared import Prepared
from tests.support.run_operator import draw_seed

Call = tuple[str, dict[str, Any]]
"""Name of an operator, and its arguments: constants, or lists of arrays, one a sample."""


class OperatorChain:
    """Queues the work of one or more operators on one batch, as the engine does.

    What an operator only describes is taken over by the next one where it understands that, and
    made into memory at the end.

    `device`: the GPU. `stream`: where the work goes. `calls`: the operators. `dtype`, `layout`,
    `ndim`: of the input; `dtype` is `None` where the first operator takes none. `batch_size`:
    number of samples.
    """

    def __init__(
        self,
        device: GpuDevice,
        stream: int,
        calls: Sequence[Call],
        dtype: np.dtype | None,
        ndim: int,
        layout: str,
        batch_size: int,
    ) -> None:
        self.queue = device.queue(stream)
        self._steps: list[Prepared] = []
        inputs = () if dtype is None else ([np.empty((1,) * ndim, dtype)] * batch_size,)
        for name, args in calls:
            step = Prepared(name, inputs, layout, {}, batch_size, GpuFrames, args)
            self._steps.append(step)
            spec = step.specs[0]
            layout = spec.layout or ""
            found = np.empty((1,) * (spec.ndim or 0), np.dtype(_numpy_type(spec)))
            inputs = ([found] * batch_size,)

    def __call__(self, batch: DeviceBatch | None, seed: int = 0) -> DeviceBatch:
        """Queue the work; the output is in device memory."""
        value: Any = batch
        for step in self._steps:
            context = BatchContext(
                step.node,
                step.constants,
                step.tensors,
                self.queue,
                range(step.size),
                draw_seed(seed),
            )
            if value is None:
                value = step.op.gpu(context)
                continue
            if type(value) is not DeviceBatch and not isinstance(value, step.op.takes):
                value = value.materialise(self.queue)
            value = step.op.gpu(context, value)
        return value.materialise(self.queue)  # type: ignore[no-any-return]


def _numpy_type(spec: Any) -> Any:
    from headrace.types import storage_dtype

    return storage_dtype(spec.dtype)
