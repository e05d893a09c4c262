"""Tensors and batches, and the memory behind them."""

from __future__ import annotations

from penstock.tensors.gpu.tensor import TensorGPU
from penstock.tensors.gpu.tensor_list import TensorListGPU
from penstock.tensors.tensor import TensorCPU
from penstock.tensors.tensor_list import TensorListCPU

__all__ = ["TensorCPU", "TensorGPU", "TensorListCPU", "TensorListGPU"]


def __dir__() -> list[str]:
    return [*__all__]
