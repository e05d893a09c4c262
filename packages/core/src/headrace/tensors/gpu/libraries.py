"""Metadata of CuPy's arrays and PyTorch's tensors, read for many at once.

The protocols that all libraries speak cost ten microseconds an array and more: a stream waits for
another one each time, and what is read is packed and unpacked. Attributes of many arrays are read
in a fraction of that. Neither library is imported here: where there is an array, it has been.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from headrace.tensors.gpu.streams import library_stream
from headrace.types.dtypes import DALI_OF_NUMPY

_OF_PYTORCH = {f"torch.{dtype.name}": dtype for dtype in DALI_OF_NUMPY}
"""NumPy's types by what PyTorch calls them."""


class Arrays(NamedTuple):
    """C-contiguous arrays of one element type, on one GPU.

    `device_id`: number of the GPU. `addresses`: of the first elements. `shapes`: extents of the
    axes. `dtype`: element type. `owner`: keeps the memory alive. `stream`: number of the library's
    current stream, in the calling thread: what writes the arrays is on it, or has been made to come
    before it.
    """

    device_id: int
    addresses: list[int]
    shapes: list[tuple[int, ...]]
    dtype: np.dtype
    owner: Any
    stream: int


def described(arrays: Sequence[Any]) -> Arrays | None:
    """Return the metadata of `arrays`, one or more, all of one type.

    None where they are of another library, or need a closer look: on different GPUs or none, of
    different types, with gaps, or not to be shared.
    """
    library = _library(type(arrays[0]))
    if library is None:
        return None
    _, several, one = _READERS[library.__name__]
    try:
        return one(library, arrays[0]) if len(arrays) == 1 else several(library, arrays)
    except (AttributeError, RuntimeError):  # what is wrong with them, the protocols will tell
        return None


def is_on_gpu(value: Any) -> bool | None:
    """Return True if an array is on a GPU; None if it is of another library."""
    library = _library(type(value))
    if library is None:
        return None
    return library.__name__ == "cupy" or bool(value.is_cuda)


def _library(kind: type) -> Any:
    """The library whose arrays are of this class; None for a subclass, which may be anything."""
    name = kind.__module__
    if name not in _READERS:
        return None
    library = sys.modules.get(name)
    return library if kind is getattr(library, _READERS[name][0], None) else None


def _of_cupy(cupy: Any, arrays: Sequence[Any]) -> Arrays | None:
    memory = [array.data for array in arrays]
    devices = [piece.device_id for piece in memory]
    dtypes = [array.dtype for array in arrays]
    # `array.flags` says the same, in an object made for it.
    packed = [array._c_contiguous for array in arrays]
    if False in packed or not (same(devices) and same(dtypes) and dtypes[0] in DALI_OF_NUMPY):
        return None
    return Arrays(
        devices[0],
        [piece.ptr for piece in memory],
        [array.shape for array in arrays],
        dtypes[0],
        memory,
        _cupy_stream(cupy, devices[0]),
    )


def _one_of_cupy(cupy: Any, array: Any) -> Arrays | None:
    """`_of_cupy` of a single array."""
    memory, dtype = array.data, array.dtype
    if not array._c_contiguous or dtype not in DALI_OF_NUMPY:
        return None
    device = memory.device_id
    stream = _cupy_stream(cupy, device)
    return Arrays(device, [memory.ptr], [array.shape], dtype, memory, stream)


def _cupy_stream(cupy: Any, device_id: int) -> int:
    stream = cupy.cuda.get_current_stream(device_id)
    return library_stream(stream.ptr, stream)


def _of_pytorch(torch: Any, tensors: Sequence[Any]) -> Arrays | None:
    dtypes = [tensor.dtype for tensor in tensors]
    dtype = _OF_PYTORCH.get(str(dtypes[0]))
    layouts = [tensor.layout for tensor in tensors]
    if dtype is None or not (same(dtypes) and same(layouts) and layouts[0] is torch.strided):
        return None
    devices = [tensor.get_device() for tensor in tensors]
    if not same(devices) or False in [tensor.is_cuda for tensor in tensors]:
        return None
    # Those that need a gradient are not to be shared, as PyTorch says.
    if True in [tensor.requires_grad for tensor in tensors]:
        return None
    if False in [tensor.is_contiguous() for tensor in tensors]:
        return None
    return Arrays(
        devices[0],
        [tensor.data_ptr() for tensor in tensors],
        [tensor.shape for tensor in tensors],
        dtype,
        [tensor.untyped_storage() for tensor in tensors],  # tensors can be given other memory
        _pytorch_stream(torch, devices[0]),
    )


def _one_of_pytorch(torch: Any, tensor: Any) -> Arrays | None:
    """`_of_pytorch` of a single tensor."""
    dtype = _OF_PYTORCH.get(str(tensor.dtype))
    if dtype is None or tensor.layout is not torch.strided or not tensor.is_cuda:
        return None
    if tensor.requires_grad or not tensor.is_contiguous():
        return None
    device = tensor.get_device()
    storage = tensor.untyped_storage()
    stream = _pytorch_stream(torch, device)
    return Arrays(device, [tensor.data_ptr()], [tensor.shape], dtype, storage, stream)


def _pytorch_stream(torch: Any, device_id: int) -> int:
    stream = torch.cuda.current_stream(device_id)
    return library_stream(stream.cuda_stream, stream)


_READERS: dict[
    str,
    tuple[str, Callable[[Any, Sequence[Any]], Arrays | None], Callable[[Any, Any], Arrays | None]],
] = {
    "cupy": ("ndarray", _of_cupy, _one_of_cupy),
    "torch": ("Tensor", _of_pytorch, _one_of_pytorch),
}
"""By the name of the library: what it calls its arrays, and how to read several, and one."""


def same(values: Sequence[Any]) -> bool:
    """Return True if all of `values`, one at least, are equal."""
    return values.count(values[0]) == len(values)
