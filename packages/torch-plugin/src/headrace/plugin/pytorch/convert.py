"""From Headrace's tensors to PyTorch's, without a copy wherever the memory allows it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch
from torch.utils.dlpack import from_dlpack

from headrace.errors import DestinationShapeError, DestinationTypeError, ShapeError
from headrace.plugin.pytorch.page_locked import page_locked, tensor_of
from headrace.tensors import TensorCPU, TensorGPU, TensorListCPU, TensorListGPU
from headrace.tensors.gpu.streams import DEFAULT_STREAM, stream_number
from headrace.types import DALIDataType
from headrace.types.dtypes import SIDE_TYPES

if TYPE_CHECKING:
    from collections.abc import Sequence

    Batch = TensorListCPU | TensorListGPU

to_torch_type = {
    DALIDataType.FLOAT: torch.float32,
    DALIDataType.FLOAT64: torch.float64,
    DALIDataType.FLOAT16: torch.float16,
    DALIDataType.UINT8: torch.uint8,
    DALIDataType.UINT16: torch.uint16,
    DALIDataType.UINT32: torch.uint32,
    DALIDataType.UINT64: torch.uint64,
    DALIDataType.INT8: torch.int8,
    DALIDataType.BOOL: torch.bool,
    DALIDataType.INT16: torch.int16,
    DALIDataType.INT32: torch.int32,
    DALIDataType.INT64: torch.int64,
}
"""PyTorch's element type for each of the library's."""


def to_torch_tensor(
    dali_tensor: TensorCPU | TensorGPU | TensorListCPU | TensorListGPU, copy: bool = False
) -> torch.Tensor:
    """`dali_tensor` as a PyTorch tensor, a batch with its samples along the first dimension.

    On a GPU, PyTorch's current stream waits for the data, and the program does not.
    """
    if isinstance(dali_tensor, (TensorListCPU, TensorListGPU)):
        dali_tensor = dali_tensor.as_tensor()
    exported: Any = dali_tensor
    if isinstance(dali_tensor, TensorGPU):
        # `from_dlpack` would ask which device it is, and find the stream by the device's name.
        stream = torch.cuda.current_stream(dali_tensor.device_id()).cuda_stream
        exported = dali_tensor.__dlpack__(stream=stream or DEFAULT_STREAM)
    result: torch.Tensor = from_dlpack(exported)
    if isinstance(dali_tensor, TensorCPU):
        result = tensor_of(dali_tensor._array, result)
    return result.clone() if copy else result


def kept_samples(batch: Batch, kept: int | list[int]) -> Batch:
    """That many samples of `batch` from the front, or those with these numbers; shared."""
    if not kept:
        return batch[:0]
    if not isinstance(kept, int):
        return type(batch)([batch[i] for i in kept], contiguous=False)
    return batch[:kept] if kept < len(batch) else batch


def to_dense(batch: Batch, kept: int | list[int], output: str) -> Any:
    """The kept samples of `batch` as one tensor; side data as a list."""
    batch = kept_samples(batch, kept)
    if isinstance(batch, TensorListCPU) and batch.dtype in SIDE_TYPES:
        return batch.tolist()
    try:
        return to_torch_tensor(batch)
    except ShapeError as error:
        shapes = list(dict.fromkeys(batch.shape()))
        listed = ", ".join(map(str, shapes[:3])) + (", ..." if len(shapes) > 3 else "")
        raise ShapeError(
            f'The samples of output "{output}" do not all have the same shape ({listed}), so they '
            "cannot be one dense tensor: the batch must be representable as a tensor. Pad or "
            "resize them in the pipeline (`fn.pad`, `fn.resize`, `fn.crop`), or use "
            'DALIRaggedIterator, which gives them as a list ("sparse_list").'
        ) from error


def to_list(batch: Batch, kept: int | list[int]) -> list[Any]:
    """The kept samples of `batch`, one tensor each, sharing its memory; side data as it is."""
    batch = kept_samples(batch, kept)
    if isinstance(batch, TensorListCPU) and batch.dtype in SIDE_TYPES:
        return batch.tolist()
    if isinstance(batch, TensorListGPU):
        whole = batch._whole_memory()
        if whole is not None:
            return _cut(to_torch_tensor(whole), batch)
    return [to_torch_tensor(sample) for sample in batch]


def _cut(whole: torch.Tensor, batch: TensorListGPU) -> list[torch.Tensor]:
    """The samples of `batch` as parts of a tensor of all memory they are in.

    One hand-over serves all of them.
    """
    pointers = batch._batch.pointers
    offsets = (pointers - pointers.min()) // whole.element_size()
    return [
        whole[offset : offset + math.prod(shape)].view(shape)
        for offset, shape in zip(offsets.tolist(), batch.shape(), strict=True)
    ]


def separate(outputs: dict[str, Any], *, pins: bool = False) -> dict[str, Any]:
    """Give memory of its own to each output that shares that of another one; with `pins`,
    page-locked memory to all on the host.

    A program may change its tensors in place. What shares memory is one output under two names, one
    that another is a view of (`fn.reshape`), and what comes of a branch that no sample took.
    """
    begins: set[int] = set()
    for name, output in outputs.items():
        own = {tensor.data_ptr() for tensor in _parts(output) if tensor.numel()}
        if begins.isdisjoint(own):
            begins |= own
        else:
            outputs[name] = _copied(output)
    return {name: page_locked(output) for name, output in outputs.items()} if pins else outputs


def _parts(output: torch.Tensor | list[torch.Tensor]) -> list[torch.Tensor]:
    if isinstance(output, list):
        return [each for each in output if isinstance(each, torch.Tensor)]
    return [output._values() if output.is_sparse else output]


def _copied(output: torch.Tensor | list[torch.Tensor]) -> torch.Tensor | list[torch.Tensor]:
    return [each.clone() for each in output] if isinstance(output, list) else output.clone()


def feed_ndarray(
    dali_tensor: TensorCPU | TensorGPU | TensorListCPU | TensorListGPU,
    arr: torch.Tensor,
    cuda_stream: Any = None,
) -> torch.Tensor:
    """Copy a tensor, or a batch whose samples have one shape, into the PyTorch tensor `arr`.

    Parameters
    ----------
    dali_tensor
        Source.
    arr
        Destination, of the same shape and element type, on the host or on a GPU.
    cuda_stream
        Stream for a copy to a GPU: PyTorch's, an integer or a ``ctypes.c_void_p``. The current one
        if None.

    Returns
    -------
    `arr`.

    Raises
    ------
    DestinationTypeError
        If the element types differ.
    DestinationShapeError
        If the shapes differ.
    """
    if cuda_stream is not None and arr.is_cuda:
        with torch.cuda.stream(_stream(cuda_stream, arr.device)):
            return feed_ndarray(dali_tensor, arr)
    source = to_torch_tensor(dali_tensor)
    if source.dtype != arr.dtype:
        raise DestinationTypeError(
            "The element type of DALI Tensor/TensorList doesn't match the element type of the "
            f"target PyTorch Tensor: {source.dtype} and {arr.dtype}."
        )
    if source.shape != arr.shape:
        raise DestinationShapeError(
            f"The shape of the tensor, {_shape(source.shape)}, does not match that of the "
            f"destination, {_shape(arr.shape)}."
        )
    # From the host it is waited for: its memory may be filled anew as soon as this returns.
    return arr.copy_(source, non_blocking=source.is_cuda and arr.is_cuda)


def _stream(stream: Any, device: torch.device) -> torch.cuda.Stream:
    if isinstance(stream, torch.cuda.Stream):
        return stream
    number = stream_number(stream)
    if number == DEFAULT_STREAM:
        return torch.cuda.default_stream(device)
    return torch.cuda.ExternalStream(number, device)  # type: ignore[no-untyped-call]


def _shape(shape: Sequence[int]) -> str:
    return str(tuple(shape))
