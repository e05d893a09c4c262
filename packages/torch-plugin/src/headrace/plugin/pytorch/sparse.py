"""Batches of samples that differ in shape as sparse PyTorch tensors."""

from __future__ import annotations

import functools
import warnings
from typing import TYPE_CHECKING

import numpy as np
import torch

from headrace.plugin.pytorch.convert import kept_samples, to_torch_tensor

if TYPE_CHECKING:
    from headrace.plugin.pytorch.convert import Batch


def to_sparse_coo(batch: Batch, kept: int | list[int]) -> torch.Tensor:
    """The kept samples of `batch` as one sparse tensor that holds all their elements.

    Its first dimension counts the samples. The others are as large as the largest sample;
    what lies beyond the end of a smaller one is not stored. Stored elements may be zero.
    """
    batch = kept_samples(batch, kept)
    shapes = np.array(batch.shape(), np.int64).reshape(len(batch), batch.ndim())
    size = int(shapes.prod(axis=1).sum())
    values = to_torch_tensor(batch.as_reshaped_tensor((size,)))
    _accept_unchecked()
    return torch.sparse_coo_tensor(
        _indices(shapes, size, values.device),
        values,
        (len(batch), *shapes.max(axis=0, initial=0).tolist()),
        is_coalesced=True,
        check_invariants=False,
    )


@functools.cache
def _accept_unchecked() -> None:
    """Take the one warning of some PyTorch releases that sparse tensors are not checked.

    They give it even where ``check_invariants=False`` asks for that.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Sparse invariant checks", category=UserWarning)
        indices = torch.zeros((1, 0), dtype=torch.int64)
        torch.sparse_coo_tensor(indices, torch.zeros(0), (0,), check_invariants=False)


def _indices(shapes: np.ndarray, size: int, device: torch.device) -> torch.Tensor:
    """Coordinates of all elements, ``(1 + axes, size)``, computed where the elements are."""
    sizes = shapes.prod(axis=1)
    table = torch.from_numpy(np.vstack([sizes, np.cumsum(sizes) - sizes, shapes.T]))
    if device.type == "cuda":  # page-locked, so that the host does not wait for the copy
        table = table.pin_memory().to(device, non_blocking=True)
    samples = torch.arange(len(shapes), device=device)
    owner = torch.repeat_interleave(samples, table[0], output_size=size)
    rest = torch.arange(size, device=device) - table[1][owner]
    coordinates = []
    for axis in reversed(range(shapes.shape[1])):
        extent = table[2 + axis][owner]
        coordinates.append(rest % extent)
        rest = rest // extent
    return torch.stack([owner, *reversed(coordinates)])
