"""Tensors and batches, and the memory behind them."""

from __future__ import annotations

from penstock.tensors.device import TensorGPU, TensorListGPU
from penstock.tensors.tensor import TensorCPU
from penstock.tensors.tensor_list import TensorListCPU

__all__ = ["TensorCPU", "TensorGPU", "TensorListCPU", "TensorListGPU"]
