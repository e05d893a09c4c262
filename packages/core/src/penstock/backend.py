"""Tensors, memory, devices and the list of operators, by the names that DALI programs look for.

Factors and thresholds of buffers tune DALI's memory. Penstock's pools take batches as they come, so
these are kept and change nothing.
"""

from __future__ import annotations

import os
import sys
import warnings
from typing import Any

import numpy as np

from penstock import plugin_manager, types
from penstock.errors import (
    ArgumentValueError,
    GpuNotAvailableError,
    UnknownNameError,
    UsageError,
)
from penstock.operators.support.schema_view import SchemaView as OpSchema
from penstock.operators.support.schema_view import find_view, names_on
from penstock.tensors.device import DLDeviceType
from penstock.tensors.gpu.runtime import (
    check_available,
    current_device,
    device_count,
    get_runtime,
    is_available,
)
from penstock.tensors.gpu.streams import stream_number
from penstock.tensors.gpu.tensor import TensorGPU
from penstock.tensors.gpu.tensor_list import TensorListGPU
from penstock.tensors.interop import is_dlpack_capsule
from penstock.tensors.pool import trim_host_pools
from penstock.tensors.tensor import TensorCPU
from penstock.tensors.tensor_list import TensorListCPU
from penstock.tracebacks import public

__all__ = [
    "CUDAStreamSynchronize",
    "CheckDLPackCapsule",
    "DLDeviceType",
    "GetCUDACurrentDevice",
    "GetCUDADeviceCount",
    "GetCudaVersion",
    "GetCufftVersion",
    "GetDeviceBufferGrowthFactor",
    "GetHostBufferGrowthFactor",
    "GetHostBufferShrinkThreshold",
    "GetNppVersion",
    "GetNvimgcodecVersion",
    "GetNvjpegVersion",
    "GetOpenCVVersion",
    "GetSchema",
    "IsDriverInitialized",
    "LoadDefaultPlugins",
    "LoadDirectory",
    "LoadLibrary",
    "OpSchema",
    "PreallocateDeviceMemory",
    "PreallocatePinnedMemory",
    "RegisteredCPUOps",
    "RegisteredGPUOps",
    "RegisteredMixedOps",
    "ReleaseUnusedMemory",
    "RestrictPinnedMemUsage",
    "SetBufferGrowthFactor",
    "SetCUDACurrentDevice",
    "SetDeviceBufferGrowthFactor",
    "SetHostBufferGrowthFactor",
    "SetHostBufferShrinkThreshold",
    "TensorCPU",
    "TensorGPU",
    "TensorListCPU",
    "TensorListGPU",
    "TryGetSchema",
    "check_cuda_runtime",
    "types",
]

_ABSENT = -1
_kept = {"host": 1.1, "device": 1.1, "shrink": 0.5}


def __dir__() -> list[str]:
    return [*__all__]


# -- memory --------------------------------------------------------------------------------------


@public
def ReleaseUnusedMemory() -> None:
    """Give memory that waits to be reused back to the operating system, and to GPUs.

    Waits for work on GPUs that still uses memory of pipelines.
    """
    trim_host_pools()
    gpu = sys.modules.get("penstock.tensors.gpu.device")
    if gpu is not None:  # else there is no pipeline on a GPU
        gpu.trim_devices()


@public
def PreallocateDeviceMemory(bytes: int, device_id: int) -> None:
    """Have `bytes` of memory of a GPU in one piece ready for pipelines.

    Raises
    ------
    GpuNotAvailableError, ArgumentValueError
        If there is no such GPU.
    """
    from penstock.tensors.gpu.device import get_device

    device = get_device(device_id)
    with device.runtime.active():
        device.memory.take(bytes, stream_number(None))  # goes back to the pool at once


@public
def PreallocatePinnedMemory(bytes: int) -> None:
    """Have `bytes` of page-locked memory in one piece ready for pipelines on the current GPU.

    Raises
    ------
    GpuNotAvailableError
        If there is no GPU.
    """
    from penstock.tensors.gpu.device import get_device

    check_available()
    device = get_device(current_device())
    with device.runtime.active():
        device.pinned.empty(bytes, np.uint8)


@public
def RestrictPinnedMemUsage() -> bool:
    """Whether page-locked memory is avoided: never."""
    return False


def _set_factor(factor: float, *names: str) -> None:
    if not 1 <= factor <= 4:
        raise ArgumentValueError(f"Growth factor must be between 1 and 4, got {factor}.")
    for name in names:
        _kept[name] = float(factor)


@public
def SetBufferGrowthFactor(factor: float) -> None:
    """`SetHostBufferGrowthFactor` and `SetDeviceBufferGrowthFactor`."""
    _set_factor(factor, "host", "device")


@public
def SetHostBufferGrowthFactor(factor: float) -> None:
    """Keep a number from 1 to 4, which changes nothing."""
    _set_factor(factor, "host")


@public
def SetDeviceBufferGrowthFactor(factor: float) -> None:
    """Keep a number from 1 to 4, which changes nothing."""
    _set_factor(factor, "device")


def GetHostBufferGrowthFactor() -> float:
    """What `SetHostBufferGrowthFactor` was given; 1.1."""
    return _kept["host"]


def GetDeviceBufferGrowthFactor() -> float:
    """What `SetDeviceBufferGrowthFactor` was given; 1.1."""
    return _kept["device"]


@public
def SetHostBufferShrinkThreshold(threshold: float) -> None:
    """Keep a number from 0 to 1, which changes nothing."""
    if not 0 <= threshold <= 1:
        raise ArgumentValueError(f"Shrink threshold must be between 0 and 1, got {threshold}.")
    _kept["shrink"] = float(threshold)


def GetHostBufferShrinkThreshold() -> float:
    """What `SetHostBufferShrinkThreshold` was given; 0.5."""
    return _kept["shrink"]


# -- devices and versions ------------------------------------------------------------------------


def GetCUDADeviceCount() -> int:
    """Number of GPUs; 0 where CUDA does not answer."""
    return device_count()


@public
def GetCUDACurrentDevice() -> int:
    """Number of the calling thread's current GPU.

    Raises
    ------
    GpuNotAvailableError
        If there is none.
    """
    return current_device()


@public
def SetCUDACurrentDevice(device_id: int) -> None:
    """Make a GPU the calling thread's current one.

    Raises
    ------
    GpuNotAvailableError, ArgumentValueError
        If there is no such GPU.
    """
    get_runtime(device_id).activate()


@public
def CUDAStreamSynchronize(stream: Any) -> None:
    """Wait for a stream of the current GPU: a number, or a stream of PyTorch or CuPy.

    Raises
    ------
    GpuNotAvailableError
        If there is no GPU.
    """
    get_runtime(current_device()).synchronize(stream_number(stream))


def IsDriverInitialized() -> bool:
    """Whether CUDA answers."""
    return is_available()


def check_cuda_runtime() -> None:
    """Warn if pipelines cannot run on a GPU here, and say what is missing."""
    try:
        check_available()
    except GpuNotAvailableError as error:
        warnings.warn(str(error), UserWarning, stacklevel=2)


def GetCudaVersion() -> int:
    """Version of the CUDA runtime, as 13000 for 13.0; 0 where CUDA does not answer."""
    if not is_available():
        return 0
    from penstock.tensors.gpu.cuda import check_cuda

    return int(check_cuda().cuda.runtime.runtimeGetVersion())


def GetCufftVersion() -> int:
    """Version of cuFFT, as 12000 for 12.0; -1 where CUDA does not answer."""
    if not is_available():
        return _ABSENT
    import cupy.cuda.cufft as cufft

    return int(cufft.getVersion())


def GetNppVersion() -> int:
    """-1: NPP is not used."""
    return _ABSENT


def GetNvjpegVersion() -> int:
    """-1: nvJPEG is used through nvImageCodec only."""
    return _ABSENT


def GetNvimgcodecVersion() -> int:
    """Version of nvImageCodec, as 900 for 0.9.0; -1 where it is not installed."""
    from penstock.kernels.cpu.decode.nvimagecodec import module

    try:
        version = module().__version__
    except ImportError:
        return _ABSENT
    major, minor, patch = (int(part) for part in version.split(".")[:3])
    return 10000 * major + 100 * minor + patch


def GetOpenCVVersion() -> str:
    """Version of OpenCV: ``"5.0.0"``."""
    import cv2

    return cv2.__version__


def CheckDLPackCapsule(ptr: Any) -> tuple[bool, bool]:
    """Whether `ptr` is a DLPack capsule that can be used, and whether its data is on a GPU."""
    from penstock.tensors.gpu.dlpack import device_of_capsule

    if not is_dlpack_capsule(ptr):
        return False, False
    try:
        kind, _ = device_of_capsule(ptr)
    except UsageError:
        return False, False
    return True, kind == DLDeviceType.kDLCUDA


# -- operators -----------------------------------------------------------------------------------


def RegisteredCPUOps() -> list[str]:
    """What DALI calls the operators that run on the CPU: ``"readers__File"``."""
    return [*names_on("cpu")]


def RegisteredGPUOps() -> list[str]:
    """What DALI calls the operators that run on the GPU."""
    return [*names_on("gpu")]


def RegisteredMixedOps() -> list[str]:
    """What DALI calls the operators that take data on the CPU and return it on the GPU."""
    return [*names_on("mixed")]


def TryGetSchema(name: str) -> OpSchema | None:
    """The declaration of the operator that DALI calls `name`; None if there is none."""
    return find_view(name)


@public
def GetSchema(name: str) -> OpSchema:
    """The declaration of the operator that DALI calls `name`: ``"readers__File"``.

    Raises
    ------
    UnknownNameError
        If there is none.
    """
    found = find_view(name)
    if found is None:
        raise UnknownNameError(f"Schema for operator '{name}' not registered.")
    return found


@public
def LoadLibrary(
    lib_path: str | os.PathLike[str], global_symbols: bool = False, allow_fail: bool = False
) -> None:
    """`penstock.plugin_manager.load_library`.

    Raises
    ------
    UsageError
        If it fails, unless `allow_fail`.
    """
    try:
        plugin_manager.load_library(lib_path, global_symbols)
    except UsageError:
        if not allow_fail:
            raise


@public
def LoadDirectory(
    dir_path: str | os.PathLike[str], global_symbols: bool = False, allow_fail: bool = False
) -> None:
    """`penstock.plugin_manager.load_directory`.

    Raises
    ------
    UsageError
        If it fails, unless `allow_fail`.
    """
    try:
        plugin_manager.load_directory(dir_path, global_symbols)
    except UsageError:
        if not allow_fail:
            raise


def LoadDefaultPlugins() -> None:
    """Nothing: there is no folder of plugins that is loaded unasked."""
