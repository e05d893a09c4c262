"""Tensors and memory under the name of the module where DALI programs look for them."""

from __future__ import annotations

import sys

from penstock import types
from penstock.tensors.device import DLDeviceType
from penstock.tensors.gpu.tensor import TensorGPU
from penstock.tensors.gpu.tensor_list import TensorListGPU
from penstock.tensors.pool import HOST_POOL
from penstock.tensors.tensor import TensorCPU
from penstock.tensors.tensor_list import TensorListCPU

__all__ = [
    "DLDeviceType",
    "ReleaseUnusedMemory",
    "TensorCPU",
    "TensorGPU",
    "TensorListCPU",
    "TensorListGPU",
    "types",
]


def __dir__() -> list[str]:
    return [*__all__]


def ReleaseUnusedMemory() -> None:  # noqa: N802 - DALI's name
    """Give memory that waits to be reused back to the operating system, and to GPUs.

    Waits for work on GPUs that still uses memory of pipelines.
    """
    HOST_POOL.trim()
    gpu = sys.modules.get("penstock.tensors.gpu.device")
    if gpu is not None:  # else there is no pipeline on a GPU
        gpu.trim_devices()
