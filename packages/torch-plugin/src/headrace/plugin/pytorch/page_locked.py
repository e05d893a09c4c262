"""Batches in page-locked memory of PyTorch's, from which copies to a GPU are asynchronous.

PyTorch notes which streams read memory of its own page-locked allocator, and lends it again when
they are through: a program may drop a tensor as soon as its copy is queued. It knows nothing of
memory that others have page-locked.
"""

from __future__ import annotations

import ctypes
import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from headrace.graph.user_line import stack_level
from headrace.pipeline.handed_over import hand_over_in
from headrace.tensors.pool import Block, HostPool, RawMemory, memory_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.pipeline import Pipeline


class _TorchMemory(RawMemory):
    """Memory of a tensor."""

    tensor: torch.Tensor


def _allocated(size: int) -> torch.Tensor:
    return torch.empty(size, dtype=torch.uint8, pin_memory=True)


class _TorchBlock(Block):
    """Page-locked memory of a new tensor."""

    __slots__ = ()

    def __init__(self, size: int) -> None:
        tensor = _allocated(size)
        # An array as its base NumPy would name as the base of views, too.
        raw = (ctypes.c_ubyte * size).from_address(tensor.data_ptr())
        memory = _TorchMemory.__new__(_TorchMemory, (size,), np.dtype(np.uint8), memoryview(raw))
        memory.tensor = tensor
        self.size, self.offset, self.idle_since, self.memory = size, 0, 0, memory


class PageLockedPool(HostPool):
    """Memory that PyTorch lends, and that goes back to it when no array is left."""

    memory = _TorchMemory
    is_page_locked = True
    shrinks = False

    def _fresh(self, size: int) -> Block:
        return _TorchBlock(size)

    def _file(self, block: Block) -> None:
        """Keep nothing: idle memory is PyTorch's, which knows when copies have read it."""


_POOL = PageLockedPool()


def page_lock_outputs(pipelines: Sequence[Pipeline]) -> bool:
    """Have outputs on the host written to page-locked memory; return False where there is no GPU
    to copy them to, as PyTorch's `DataLoader` goes on without it.
    """
    if not torch.cuda.is_available():
        warnings.warn(
            "`pin_memory` is True, but PyTorch finds no GPU (`torch.cuda.is_available()`): batches "
            "are in ordinary memory.",
            UserWarning,
            stacklevel=stack_level(),
        )
        return False
    _allocated(1)  # PyTorch begins to use the GPU, if it has not: this thread's current one
    for pipeline in pipelines:
        hand_over_in(pipeline, _POOL, "pin_memory")
    return True


def tensor_of(array: np.ndarray, shared: torch.Tensor) -> torch.Tensor:
    """The tensor `shared` over a C-contiguous array, as a view of the tensor whose memory it is.

    PyTorch knows its memory by the tensor that it was made for.
    """
    memory = memory_of(array)
    if not isinstance(memory, _TorchMemory):
        return shared
    begin = array.ctypes.data - memory.tensor.data_ptr()
    flat = memory.tensor[begin : begin + array.nbytes]
    return flat.view(shared.dtype).view(shared.shape)


def page_locked(output: Any) -> Any:
    """An output with its tensors on the host in page-locked memory, copied where they are not."""
    if isinstance(output, list):
        return [page_locked(each) for each in output]
    if not isinstance(output, torch.Tensor) or output.is_cuda:
        return output
    if output.is_sparse:
        return torch.sparse_coo_tensor(
            page_locked(output._indices()),
            page_locked(output._values()),
            output.shape,
            is_coalesced=True,
            check_invariants=False,
        )
    return output if output.is_pinned() else output.pin_memory()
