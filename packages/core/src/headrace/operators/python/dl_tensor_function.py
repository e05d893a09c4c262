"""Functions of DLPack tensors."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any

from headrace.operators.support.argument_types import BoolArg
from headrace.operators.support.function_results import GpuArray, not_an_array
from headrace.operators.support.operator import operator
from headrace.operators.support.python_function import TRAITS, FunctionCaller, function_args
from headrace.operators.support.schema import Arg
from headrace.tensors.interop import from_dlpack, is_dlpack_capsule

if TYPE_CHECKING:
    import numpy as np

    from headrace.operators.support.schema import Spec
    from headrace.tensors.gpu.batch import DeviceBatch
    from headrace.tensors.gpu.queue import Queue


@operator(
    "dl_tensor_python_function",
    args=(
        *function_args("DLPack capsules", batch_processing=None),
        Arg(
            "synchronize_stream",
            BoolArg,
            True,
            "On the GPU, wait for the operator's stream before the function is called. Without it "
            "the function has to give its work to that stream.",
        ),
    ),
    output_docs=("What the function returns.",),
    class_name="DLTensorPythonFunction",
    **{
        **TRAITS,
        "positional": (
            "function",
            "num_outputs",
            "device",
            "synchronize_stream",
            "batch_processing",
        ),
    },
)
class DLTensorFunction(FunctionCaller):
    """Calls a Python function with DLPack capsules, which any library can take over.

    It returns capsules, or objects with ``__dlpack__``. On the GPU its work has to be done when it
    returns, or to be given to the operator's stream.

    Order of calls, shapes and sources are as with `python_function`.
    """

    may_travel = True

    def shown(self, row: np.ndarray) -> Any:
        """A capsule of the first version of DLPack, which all libraries know."""
        return row.__dlpack__()

    def taken(self, value: Any) -> np.ndarray:
        """The array over the memory of what the function returned."""
        return from_dlpack(_checked(value))

    def running(self, queue: Queue) -> AbstractContextManager[Any]:
        """The operator's stream, if need be without work."""
        if self.args.synchronize_stream:
            queue.runtime.synchronize(queue.stream)
        return super().running(queue)

    def shown_on_gpu(self, queue: Queue, batch: DeviceBatch, spec: Spec) -> Iterable[Any]:
        """Capsules that may be read on the operator's stream."""
        from headrace.tensors import TensorListGPU

        event = queue.runtime.record(queue.stream)
        samples = TensorListGPU._from_batch(
            batch, spec.layout, spec.dtype, None, event, queue.stream
        )
        return [sample.__dlpack__(stream=queue.stream) for sample in samples]

    def taken_on_gpu(self, queue: Queue, value: Any) -> GpuArray:
        """The memory of what the function returned."""
        return GpuArray.of(_checked(value), queue)


def _checked(value: Any) -> Any:
    if not is_dlpack_capsule(value) and not hasattr(value, "__dlpack__"):
        raise not_an_array(value, "a DLPack capsule, or an object with `__dlpack__`,")
    return value
