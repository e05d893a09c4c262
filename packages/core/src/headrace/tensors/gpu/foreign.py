"""Data on a GPU that other libraries own: CuPy, PyTorch, JAX and whatever speaks as they do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from headrace.errors import ArgumentTypeError, ArgumentValueError
from headrace.tensors.device import DLDeviceType
from headrace.tensors.gpu import libraries
from headrace.tensors.gpu.access import Access
from headrace.tensors.gpu.dlpack import consume, device_of_capsule
from headrace.tensors.gpu.foreign_memory import ForeignMemory
from headrace.tensors.gpu.runtime import current_device, device_of, get_runtime
from headrace.tensors.gpu.streams import DEFAULT_STREAM, stream_number
from headrace.tensors.interop import device_name, is_dlpack_capsule, strided

ON_GPU = (DLDeviceType.kDLCUDA, DLDeviceType.kDLCUDAManaged)
"""DLPack's devices whose memory a GPU reads as its own."""


@dataclass(frozen=True, slots=True)
class Foreign:
    """C-contiguous memory on a GPU.

    `access`: access tracking of the memory. `address`: of the first element. `shape`: extents of
    the axes. `dtype`: element type.
    """

    access: Access
    address: int
    shape: tuple[int, ...]
    dtype: np.dtype


def is_on_gpu(value: Any) -> bool:
    """Return True if `value` says that its data is on a GPU."""
    known = libraries.is_on_gpu(value)
    if known is not None:
        return known
    if is_dlpack_capsule(value):
        return device_of_capsule(value)[0] in ON_GPU
    device = getattr(value, "__dlpack_device__", None)
    if device is not None:
        return int(device()[0]) in ON_GPU
    return getattr(value, "__cuda_array_interface__", None) is not None


def on_gpu(value: Any, stream: Any = None, device_id: int | None = None) -> Foreign:
    """The memory of `value`, without a copy."""
    if is_dlpack_capsule(value):
        return _from_capsule(value, stream_number(stream))
    known = libraries.described((value,))
    if known is not None:
        access = access_behind(known, stream)
        return Foreign(access, known.addresses[0], tuple(known.shapes[0]), known.dtype)
    if not is_on_gpu(value):
        raise ArgumentTypeError(
            f"{type(value).__name__} has no data on a GPU that can be shared. Pass a CuPy array, "
            "a CUDA tensor, or an object with `__dlpack__` or `__cuda_array_interface__`; "
            "`TensorCPU` and `TensorListCPU` take data of the host."
        )
    if getattr(value, "__dlpack__", None) is not None:
        return _from_dlpack(value, stream)
    return _from_interface(value, stream, device_id)


def access_behind(known: libraries.Arrays, stream: Any) -> Access:
    """The way to memory that work on a library's current stream writes.

    `stream` is made to wait for that, where the user has said that the data is written there.
    """
    runtime = get_runtime(known.device_id)
    written_on = known.stream
    with runtime.active():
        event = runtime.record(written_on)
        if stream is not None and stream_number(stream) != written_on:
            written_on = stream_number(stream)
            runtime.wait(written_on, event)
            event = runtime.record(written_on)
    memory = ForeignMemory(runtime, known.owner, is_scattered=len(known.addresses) > 1)
    return Access(runtime, (memory,), written_on, event)


def _from_dlpack(value: Any, stream: Any) -> Foreign:
    """By the protocol, which makes a stream of ours wait for the producer's."""
    runtime = get_runtime(int(value.__dlpack_device__()[1]))
    own = runtime.acquire_stream() if stream is None else stream_number(stream)
    try:
        with runtime.active():
            return _from_capsule(_exported(value, own), own)
    finally:
        if stream is None:
            runtime.release_stream(own)


def _exported(value: Any, stream: int) -> Any:
    try:
        try:
            return value.__dlpack__(stream=stream, max_version=(1, 1))
        except TypeError:  # made before DLPack had versions
            return value.__dlpack__(stream=stream)
    except (BufferError, RuntimeError) as error:
        raise ArgumentTypeError(
            f"This {type(value).__name__} cannot be imported: {error}"
        ) from error


def _from_capsule(capsule: Any, stream: int) -> Foreign:
    found = consume(capsule)
    kind, device_id = found.device
    if kind not in ON_GPU:
        raise ArgumentTypeError(
            f"The data of this DLPack capsule is in the memory of {device_name(kind)}, not on a "
            "GPU; `TensorCPU` takes data of the host."
        )
    _check_contiguous(found.shape, found.strides, found.dtype)
    access = _access(device_id, found.owner, stream)
    return Foreign(access, found.address, found.shape, found.dtype)


def _from_interface(value: Any, stream: Any, device_id: int | None) -> Foreign:
    interface = value.__cuda_array_interface__
    shape = tuple(int(extent) for extent in interface["shape"])
    dtype = np.dtype(interface["typestr"])
    strides = interface.get("strides")
    _check_contiguous(shape, None if strides is None else tuple(strides), dtype)
    if interface.get("mask") is not None:
        raise ArgumentValueError("Arrays with a mask are not supported.")
    address = int(interface["data"][0] or 0)
    if device_id is None:
        device_id = device_of(address) if address else current_device()
    if stream is not None:
        written_on: int | None = stream_number(stream)
    else:
        written_on = told_stream(interface.get("version", 0), interface.get("stream"))
    return Foreign(_access(device_id, value, written_on), address, shape, dtype)


def told_stream(version: int, stream: Any) -> int | None:
    """The stream that a CUDA array interface of that version tells of; None if it is written."""
    if version < 3:  # it has no word for streams
        return DEFAULT_STREAM
    return None if stream is None else stream_number(stream)


def _access(device_id: int, owner: Any, stream: int | None) -> Access:
    runtime = get_runtime(device_id)
    owners = (ForeignMemory(runtime, owner),)
    if stream is None:
        return Access(runtime, owners, None, None)
    with runtime.active():
        return Access(runtime, owners, stream, runtime.record(stream))


def _check_contiguous(
    shape: tuple[int, ...], strides: tuple[int, ...] | None, dtype: np.dtype
) -> None:
    if strides is None or 0 in shape:
        return
    step = dtype.itemsize
    for extent, stride in zip(reversed(shape), reversed(strides), strict=True):
        if extent != 1 and stride != step:
            raise strided(shape, strides, "cupy")
        step *= extent
