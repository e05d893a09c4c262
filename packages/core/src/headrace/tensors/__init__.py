"""Tensors and batches, and their memory."""

from __future__ import annotations

from headrace.tensors.gpu.tensor import TensorGPU
from headrace.tensors.gpu.tensor_list import TensorListGPU
from headrace.tensors.tensor import TensorCPU
from headrace.tensors.tensor_list import TensorListCPU

__all__ = ["TensorCPU", "TensorGPU", "TensorListCPU", "TensorListGPU"]


def __dir__() -> list[str]:
    return [*__all__]
