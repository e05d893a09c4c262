"""The operator behind `torch_python_function`: calls a function with PyTorch's tensors."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import torch

from headrace.operators.support.function_results import GpuArray, not_an_array
from headrace.operators.support.operator import operator
from headrace.operators.support.python_function import TRAITS, FunctionCaller, function_args
from headrace.plugin.pytorch.convert import to_list
from headrace.tensors import TensorListGPU

if TYPE_CHECKING:
    import numpy as np

    from headrace.operators.support.schema import Spec
    from headrace.tensors.gpu.batch import DeviceBatch
    from headrace.tensors.gpu.queue import Queue


@operator(
    "_torch_python_function",
    args=function_args("tensors of PyTorch"),
    output_docs=("What the function returns.",),
    hidden=True,
    class_name="TorchPythonFunction",
    written="torch_python_function",
    **TRAITS,
)
class TorchFunction(FunctionCaller):
    """Calls a Python function with tensors of PyTorch, on the CPU or on the GPU.

    Order of calls, memory, shapes and sources are as with `fn.python_function`. On the GPU the
    operator's stream is PyTorch's current one while the function runs, and the host does not wait
    for it.
    """

    def shown(self, row: np.ndarray) -> torch.Tensor:
        """A tensor over the memory of the sample."""
        return torch.from_numpy(row)

    def taken(self, value: Any) -> np.ndarray:
        """The function's tensor as an array."""
        if not isinstance(value, torch.Tensor):
            raise not_an_array(value, "a tensor of PyTorch", "`torch.as_tensor` makes one.")
        if value.is_cuda:
            raise not_an_array(value, "a tensor of PyTorch on the CPU", "`tensor.cpu()` copies it.")
        found: np.ndarray = value.numpy()
        return found

    @contextlib.contextmanager
    def running(self, queue: Queue) -> Iterator[None]:
        """Let PyTorch's work go to the operator's stream."""
        device = torch.device("cuda", queue.runtime.device_id)
        stream = torch.cuda.ExternalStream(queue.stream, device=device)  # type: ignore[no-untyped-call]
        with super().running(queue), torch.cuda.stream(stream):
            yield

    def shown_on_gpu(self, queue: Queue, batch: DeviceBatch, spec: Spec) -> Sequence[torch.Tensor]:
        """Tensors over the memory of the batch."""
        event = queue.runtime.record(queue.stream)
        whole = TensorListGPU._from_batch(batch, spec.layout, spec.dtype, None, event, queue.stream)
        return to_list(whole, len(whole))

    def taken_on_gpu(self, queue: Queue, value: Any) -> GpuArray:
        """The memory of the function's tensor."""
        if not isinstance(value, torch.Tensor):
            raise not_an_array(value, "a tensor of PyTorch", "`torch.as_tensor` makes one.")
        return GpuArray.of(value.contiguous(), queue)
