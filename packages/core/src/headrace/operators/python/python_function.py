"""Functions of NumPy's arrays, and of CuPy's on the GPU."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.operators.support.function_operator import address_of
from headrace.operators.support.function_results import GpuArray, not_an_array
from headrace.operators.support.operator import operator
from headrace.operators.support.python_function import TRAITS, FunctionCaller, function_args
from headrace.tensors.gpu.foreign_memory import ForeignMemory

if TYPE_CHECKING:
    from headrace.operators.support.schema import Spec
    from headrace.tensors.gpu.batch import DeviceBatch
    from headrace.tensors.gpu.queue import Queue


@operator(
    "python_function",
    args=function_args("arrays"),
    output_docs=("What the function returns.",),
    **TRAITS,
)
class PythonFunction(FunctionCaller):
    """Calls a Python function with NumPy's arrays, or with CuPy's on the GPU.

    It is called in a thread of the pipeline, for one batch after the other and, without
    `batch_processing`, for one sample after the other, in their order. Shapes may differ from
    sample to sample; types and numbers of axes may not. What the function gets is its own, which it
    may write to; what it returns is copied before the next call.

    On the GPU its work goes to the operator's stream, which is CuPy's current one; the host
    does not wait for it. There it must not write to what it gets, and what it returns is copied
    after the calls for all samples.

    The operator is kept in the pipeline also where nothing uses what it returns, and outputs carry
    on the source information of the first input.
    """

    may_travel = True

    def taken(self, value: Any) -> np.ndarray:
        """The function's array, without what sub-classes of arrays add."""
        if not isinstance(value, np.ndarray):
            raise not_an_array(value, "an array of NumPy", "`np.asarray` makes one.")
        return np.asarray(value)

    def shown_on_gpu(self, queue: Queue, batch: DeviceBatch, spec: Spec) -> Iterable[Any]:
        """CuPy's arrays over the memory of the batch."""
        return [batch.array(index) for index in range(len(batch))]

    def taken_on_gpu(self, queue: Queue, value: Any) -> GpuArray:
        """The function's array in one piece."""
        xp = queue.runtime.xp
        if not isinstance(value, xp.ndarray):
            raise not_an_array(value, "an array of CuPy", "`cupy.asarray` makes one.")
        array = xp.ascontiguousarray(value)
        owner = ForeignMemory(queue.runtime, array)
        owner.record_stream(queue.stream)
        return GpuArray(address_of(array), value.shape, value.dtype, (owner,))
