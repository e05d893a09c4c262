"""Tensors under the name of the module where DALI programs look for them."""

from __future__ import annotations

from penstock import types
from penstock.tensors.device import DLDeviceType, TensorGPU, TensorListGPU
from penstock.tensors.tensor import TensorCPU
from penstock.tensors.tensor_list import TensorListCPU

__all__ = ["DLDeviceType", "TensorCPU", "TensorGPU", "TensorListCPU", "TensorListGPU", "types"]
