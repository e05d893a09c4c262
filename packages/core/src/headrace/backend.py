"""Tensors, memory, devices and the list of operators, by the names that DALI programs look for."""

from __future__ import annotations

import importlib.util
import numbers
import os
import sys
import warnings
from typing import Any

from headrace import plugin_manager, types
from headrace.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    GpuNotAvailableError,
    UsageError,
)
from headrace.executor.fallback import absence, tell
from headrace.operators.support.schema_view import SchemaView as OpSchema
from headrace.operators.support.schema_view import find_schema, find_view, names_on
from headrace.tensors.buffer_sizes import BUFFER_SETTINGS
from headrace.tensors.device import DLDeviceType
from headrace.tensors.gpu.runtime import (
    check_available,
    current_device,
    device_count,
    get_runtime,
    is_available,
)
from headrace.tensors.gpu.streams import stream_number
from headrace.tensors.gpu.tensor import TensorGPU
from headrace.tensors.gpu.tensor_list import TensorListGPU
from headrace.tensors.interop import is_dlpack_capsule
from headrace.tensors.pool import trim_host_pools
from headrace.tensors.tensor import TensorCPU
from headrace.tensors.tensor_list import TensorListCPU
from headrace.tracebacks import public

__path__: list[str] = []
"""Makes `from headrace.backend import` of a misspelt name tell one that is alike."""

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
    "GetSchemaAndTarget",
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
_reserved: list[Any] = []
"""Memory that was preallocated, until `ReleaseUnusedMemory`."""


def __getattr__(name: str) -> Any:
    if name == "__cuda_version__":
        return _cuda_of_cupy()
    if name == "tfrecord":
        return importlib.import_module("headrace.tfrecord")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__]


# -- memory --------------------------------------------------------------------------------------


def _is_for_cpu(request: str) -> bool:
    """Return True if a GPU request is skipped because the program runs on the CPU."""
    reason = absence()
    if reason:
        tell(request, reason)
    return bool(reason)


@public
def ReleaseUnusedMemory() -> None:
    """Give memory that waits to be used back to the operating system, and to GPUs.

    Memory that was preallocated and is not in use is among it. Waits for work on GPUs that still
    uses memory of pipelines.
    """
    _reserved.clear()
    trim_host_pools()
    _trim_devices()


def _trim_devices() -> None:
    gpu = sys.modules.get("headrace.tensors.gpu.device")
    if gpu is not None:  # else there is no pipeline on a GPU
        gpu.trim_devices()


@public
def PreallocateDeviceMemory(bytes: int, device_id: int) -> None:
    """Have `bytes` of memory of a GPU ready: batches take it before the driver is asked for more.

    It is set aside in one piece, until `ReleaseUnusedMemory`.

    Raises
    ------
    ArgumentTypeError
        If `bytes` is negative, or no integer.
    GpuNotAvailableError, ArgumentValueError
        If there is no such GPU.
    MemoryError
        If it has not so much memory left.
    """
    from headrace.tensors.gpu.device import get_device

    size = _size(bytes)
    if _is_for_cpu("`PreallocateDeviceMemory`"):
        return
    device = get_device(device_id)
    if size:
        with device.runtime.active():
            _reserved.append(device.memory.reserve(size))


@public
def PreallocatePinnedMemory(bytes: int) -> None:
    """Have `bytes` of page-locked memory ready for batches on their way to the current GPU.

    It is set aside in one piece, until `ReleaseUnusedMemory`. Batches that worker processes fill
    lie in shared memory, which is page-locked when it is first used.

    Raises
    ------
    ArgumentTypeError
        If `bytes` is negative, or no integer.
    GpuNotAvailableError
        If there is no GPU.
    MemoryError
        If there is not so much memory.
    """
    from headrace.tensors.gpu.device import get_device

    size = _size(bytes)
    if _is_for_cpu("`PreallocatePinnedMemory`"):
        return
    check_available()
    device = get_device(current_device())
    if size:
        with device.runtime.active():
            _reserved.append(device.pinned.reserve(size))


def _size(value: Any) -> int:
    if not isinstance(value, numbers.Integral) or value < 0:
        raise ArgumentTypeError(f"`bytes` is {value!r}; expected an integer of at least 0.")
    return int(value)


@public
def RestrictPinnedMemUsage() -> bool:
    """Return False: page-locked memory is never avoided."""
    return False


def _number(what: str, value: Any, lowest: int, highest: int) -> float:
    if not isinstance(value, numbers.Real):
        raise ArgumentTypeError(f"{what} is {value!r}; expected a number.")
    number = float(value)
    if not lowest <= number <= highest:
        raise ArgumentValueError(f"{what} must be between {lowest} and {highest}, got {value}.")
    return number


@public
def SetBufferGrowthFactor(factor: float) -> None:
    """`SetHostBufferGrowthFactor` and `SetDeviceBufferGrowthFactor`."""
    SetHostBufferGrowthFactor(factor)
    SetDeviceBufferGrowthFactor(factor)


@public
def SetHostBufferGrowthFactor(factor: float) -> None:
    """Set how much larger each size of host buffers is than the one before: a number from 1 to 4.

    With 1, a buffer is as large as what it is first needed for. Larger ones serve later batches
    that are somewhat larger, and take more memory. Buffers that wait to be used are freed.
    """
    BUFFER_SETTINGS.host_growth = _number("Growth factor", factor, 1, 4)
    trim_host_pools()


@public
def SetDeviceBufferGrowthFactor(factor: float) -> None:
    """Set the same for memory of GPUs; waits for work that uses what is freed."""
    BUFFER_SETTINGS.device_growth = _number("Growth factor", factor, 1, 4)
    _trim_devices()


def GetHostBufferGrowthFactor() -> float:
    """The factor by which sizes of host buffers grow; 1.1 unless it was set."""
    return BUFFER_SETTINGS.host_growth


def GetDeviceBufferGrowthFactor() -> float:
    """The factor by which sizes of buffers on GPUs grow; 1.1 unless it was set."""
    return BUFFER_SETTINGS.device_growth


@public
def SetHostBufferShrinkThreshold(threshold: float) -> None:
    """Set when host memory is freed: where less than this share of it, from 0 to 1, is needed.

    What is needed is looked at about every thousand requests for memory. With 0, all memory is kept
    for later batches, up to an eighth of the machine's; with 1, none that was not needed for so
    long. Page-locked memory, and that of GPUs, is kept.
    """
    BUFFER_SETTINGS.host_shrink = _number("Shrink threshold", threshold, 0, 1)


def GetHostBufferShrinkThreshold() -> float:
    """The share of host memory that has to be needed; 0.5 unless it was set."""
    return BUFFER_SETTINGS.host_shrink


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
    if not _is_for_cpu("`SetCUDACurrentDevice`"):
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
    """Return True if the CUDA driver answers."""
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
    from headrace.tensors.gpu.cuda import check_cuda

    return int(check_cuda().cuda.runtime.runtimeGetVersion())


def _cuda_of_cupy() -> int:
    """Version of CUDA that code for GPUs is made for, with a GPU or without; 0 without CuPy."""
    if importlib.util.find_spec("cupy") is None:
        return 0
    return int(importlib.import_module("cupy").cuda.runtime.runtimeGetVersion())


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
    from headrace.kernels.cpu.decode.nvimagecodec_library import library

    try:
        return library().version
    except ImportError:
        return _ABSENT


def GetOpenCVVersion() -> str:
    """Version of OpenCV: ``"5.0.0"``."""
    from headrace.kernels.cpu.opencv import cv2

    return str(cv2().__version__)


def CheckDLPackCapsule(ptr: Any) -> tuple[bool, bool]:
    """Return whether `ptr` is a usable DLPack capsule, and whether its data is on a GPU."""
    from headrace.tensors.gpu.dlpack import device_of_capsule

    if not is_dlpack_capsule(ptr):
        return False, False
    try:
        kind, _ = device_of_capsule(ptr)
    except UsageError:
        return False, False
    return True, kind == DLDeviceType.kDLCUDA


# -- operators -----------------------------------------------------------------------------------


def RegisteredCPUOps(internal_ops: bool = False) -> list[str]:
    """Return DALI's names of the operators that run on the CPU: ``"readers__File"``."""
    return [*names_on("cpu", internal=internal_ops)]


def RegisteredGPUOps(internal_ops: bool = False) -> list[str]:
    """Return DALI's names of the operators that run on the GPU."""
    return [*names_on("gpu", internal=internal_ops)]


def RegisteredMixedOps(internal_ops: bool = False) -> list[str]:
    """Return DALI's names of the operators that take CPU data and return it on the GPU."""
    return [*names_on("mixed", internal=internal_ops)]


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
    return OpSchema(find_schema(name))


def GetSchemaAndTarget(name: str) -> tuple[OpSchema, OpSchema]:
    """The declaration of the operator that DALI calls `name`, twice: none stands for another."""
    return (schema := GetSchema(name)), schema


@public
def LoadLibrary(
    lib_path: str | os.PathLike[str], global_symbols: bool = False, allow_fail: bool = False
) -> None:
    """`headrace.plugin_manager.load_library`.

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
    """`headrace.plugin_manager.load_directory`.

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
