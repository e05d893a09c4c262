"""From Penstock's tensors to PyTorch's, without a copy wherever the memory allows it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch.utils.dlpack import from_dlpack

from penstock.errors import DataTypeError, ShapeError
from penstock.tensors import TensorCPU, TensorListCPU
from penstock.types import DALIDataType

if TYPE_CHECKING:
    from collections.abc import Sequence

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


def to_torch_tensor(dali_tensor: TensorCPU | TensorListCPU, copy: bool = False) -> torch.Tensor:
    """`dali_tensor` as a PyTorch tensor, a batch with its samples along the first dimension.

    Parameters
    ----------
    dali_tensor
        A tensor, or a batch whose samples have one shape.
    copy
        Whether the result gets memory of its own. Otherwise it shares that of a tensor or of a
        dense batch, which goes back to its pool when the result and all its views are gone.

    Raises
    ------
    ShapeError
        If the shapes of a batch differ.
    """
    tensor = dali_tensor.as_tensor() if isinstance(dali_tensor, TensorListCPU) else dali_tensor
    result: torch.Tensor = from_dlpack(tensor)
    return result.clone() if copy else result


def to_dense(batch: TensorListCPU, kept: int | list[int], output: str) -> torch.Tensor:
    """The kept samples of `batch` as one tensor.

    Parameters
    ----------
    batch
        Samples of one shape.
    kept
        That many from the front, as a view; or those with these numbers, copied.
    output
        Name of the output, for errors.

    Raises
    ------
    ShapeError
        If the shapes of the samples differ.
    """
    if not kept:
        batch = batch[:0]
    elif not isinstance(kept, int):
        batch = TensorListCPU([batch[i] for i in kept])
    elif kept < len(batch):
        batch = batch[:kept]
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


def to_list(batch: TensorListCPU, kept: int | list[int]) -> list[torch.Tensor]:
    """The kept samples of `batch`, one tensor each, sharing its memory."""
    numbers = range(kept) if isinstance(kept, int) else kept
    return [to_torch_tensor(batch[i]) for i in numbers]


def to_sparse_coo(batch: TensorListCPU, kept: int | list[int]) -> torch.Tensor:
    """The kept samples of `batch` as one sparse tensor that holds all their elements.

    Its first dimension counts the samples. The others are as large as the largest sample;
    what lies beyond the end of a smaller one is not stored. Stored elements may be zero.
    """
    numbers = range(kept) if isinstance(kept, int) else kept
    samples = [batch.at(i) for i in numbers]
    ndim = batch.ndim()
    sizes = [max((s.shape[axis] for s in samples), default=0) for axis in range(ndim)]
    indices = [
        np.concatenate(
            (np.full((1, s.size), number), np.indices(s.shape).reshape(ndim, s.size)), axis=0
        )
        for number, s in enumerate(samples)
    ]
    values = torch.cat([to_torch_tensor(batch[i]).reshape(-1) for i in numbers] or [_none(batch)])
    every = np.concatenate([np.empty((ndim + 1, 0), np.int64), *indices], axis=1)
    return torch.sparse_coo_tensor(
        torch.from_numpy(every),
        values,
        (len(samples), *sizes),
        is_coalesced=True,
        check_invariants=False,
    )


def _none(batch: TensorListCPU) -> torch.Tensor:
    return torch.empty(0, dtype=to_torch_type[batch.dtype])


def feed_ndarray(
    dali_tensor: TensorCPU | TensorListCPU, arr: torch.Tensor, cuda_stream: Any = None
) -> torch.Tensor:
    """Copy a tensor, or a batch whose samples have one shape, into the PyTorch tensor `arr`.

    Parameters
    ----------
    dali_tensor
        Source.
    arr
        Destination, of the same shape and element type.
    cuda_stream
        Stream for a copy to the GPU.

    Returns
    -------
    `arr`.

    Raises
    ------
    DataTypeError
        If the element types differ.
    ShapeError
        If the shapes differ.
    """
    source = to_torch_tensor(dali_tensor)
    if source.dtype != arr.dtype:
        raise DataTypeError(
            f"The element type of the tensor, {source.dtype}, does not match that of the "
            f"destination, {arr.dtype}."
        )
    if source.shape != arr.shape:
        raise ShapeError(
            f"The shape of the tensor, {_shape(source.shape)}, does not match that of the "
            f"destination, {_shape(arr.shape)}."
        )
    if cuda_stream is None:
        return arr.copy_(source)
    with torch.cuda.stream(cuda_stream):
        return arr.copy_(source, non_blocking=True)


def _shape(shape: Sequence[int]) -> str:
    return str(tuple(shape))
